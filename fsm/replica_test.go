package fsm_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/snapshot"
)

// TestReplicasAgree applies one history in three ways: one by one; in one batch;
// and as a follower may see it, decoded from the log in groups of any size, with
// a snapshot installed somewhere on the way. All come to the same bytes and say
// the same of every command.
func TestReplicasAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var first, last *fsm.State
		var log []entry
		var decisions []fsm.Decision
		run(t, scripts().Draw(t, "history"), func(_ *history, e entry, before, after *fsm.State, d fsm.Decision) {
			if first == nil {
				first = before
			}
			last, log, decisions = after, append(log, e), append(decisions, d)
		})
		if first == nil {
			return
		}
		want := image(t, last)
		batch := first.Begin()
		taken := map[*fsm.State][]byte{}
		for i, e := range log {
			same(t, "batch", i, batch.Apply(e.at, e.c), decisions[i])
			if rapid.IntRange(0, 9).Draw(t, "take") == 0 {
				s := batch.State()
				agreeWithHead(t, s, batch.Head())
				taken[s] = image(t, s)
			}
		}
		for s, was := range taken {
			if !bytes.Equal(image(t, s), was) {
				t.Fatal("a state changed when the batch it was taken from went on")
			}
		}
		if !bytes.Equal(image(t, batch.State()), want) {
			t.Fatal("one batch gave another state than one by one")
		}
		snapshotAt := rapid.IntRange(0, len(log)).Draw(t, "snapshot before")
		state := first
		for i := 0; i < len(log); {
			if i <= snapshotAt {
				state = reread(t, state)
			}
			size := min(rapid.IntRange(1, 8).Draw(t, "group"), len(log)-i)
			group := state.Begin()
			for _, e := range log[i : i+size] {
				same(t, "follower", i, group.Apply(e.at, decoded(t, e.c)), decisions[i])
				i++
			}
			state = group.State()
		}
		if !bytes.Equal(image(t, state), want) {
			t.Fatal("a follower came to another state than the leader")
		}
	})
}

func agreeWithHead(t *rapid.T, s *fsm.State, head fsm.Head) {
	t.Helper()
	deadline, _ := s.NextDeadline()
	if head.Index != s.Index() || head.ClockMs != s.ClockMs() || head.Deadline != deadline || head.EventSeq != s.EventSeq() || head.Settings != s.Settings() {
		t.Fatalf("head %+v is not the state's", head)
	}
	for m := range s.Members() {
		if head.Member(m.Name) != m {
			t.Fatalf("head has another member %s", m.Name)
		}
	}
}

func same(t *rapid.T, who string, i int, got, want fsm.Decision) {
	t.Helper()
	h := &history{t: t}
	h.same(who+" decision", got, want)
}

func image(t *rapid.T, s *fsm.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := snapshot.Write(&b, s); err != nil {
		t.Fatalf("write snapshot: %v", err)
	}
	return b.Bytes()
}

func reread(t *rapid.T, s *fsm.State) *fsm.State {
	t.Helper()
	next, _, err := snapshot.Read(bytes.NewReader(image(t, s)))
	if err != nil {
		t.Fatalf("read snapshot: %v", err)
	}
	return next
}

func decoded(t *rapid.T, c *fsm.Command) *fsm.Command {
	t.Helper()
	d, err := fsm.Decode(fsm.Encode(c))
	if err != nil {
		t.Fatalf("decode %T: %v", c.Op, err)
	}
	return d
}

// FuzzHistory lets the coverage-guided fuzzer make up histories for the model.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) <= 256*stepBytes {
			agree(t, script(b))
		}
	})
}

// FuzzDecode reads anything as a log entry: no panic, and what is accepted
// encodes to a command that reads the same and can be applied.
func FuzzDecode(f *testing.F) {
	for _, op := range []fsm.Op{
		&fsm.Put{Key: "a", Value: []byte("v"), Token: 1, Sequence: 1}, &fsm.Delete{Key: "a"},
		&fsm.Txn{Resource: "a", Tokens: []uint64{1}, Ops: []fsm.Op{&fsm.Put{Key: "a"}, &fsm.Check{Key: "b"}}},
		&fsm.Acquire{Resource: "a", Holder: "h", LeaseID: "l", TTLMs: 1000, WaitMs: 1}, &fsm.Renew{Resource: "a", LeaseID: "l"},
		&fsm.Release{Resource: "a", LeaseID: "l"}, &fsm.Withdraw{Resource: "a"}, &fsm.Revoke{Resource: "a"}, &fsm.Require{Resource: "a"},
		&fsm.Purge{Prefix: "a/"}, &fsm.Seal{Scope: "a"}, &fsm.Tick{}, &fsm.Configure{Settings: fsm.DefaultSettings()},
		&fsm.SetMember{Member: fsm.Member{Name: "n1"}}, &fsm.RemoveMember{Name: "n1"}, &fsm.Found{ClusterID: "c"},
	} {
		f.Add(fsm.Encode(fsm.NewCommand(fsm.Request{ID: "r", Author: "a", Reason: "why"}, op)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := fsm.Decode(b)
		if err != nil {
			return
		}
		again := fsm.Encode(c)
		d, err := fsm.Decode(again)
		if err != nil || !bytes.Equal(fsm.Encode(d), again) {
			t.Fatalf("%x decodes to a command that does not encode and decode again: %v", b, err)
		}
		if fsm.Validate(c) == nil {
			fsm.New().Apply(fsm.Position{Index: 1, Term: 1}, c)
		}
	})
}
