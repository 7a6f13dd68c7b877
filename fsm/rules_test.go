package fsm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/fsm"
)

// lock takes a lock that must be free.
func (w *world) lock(resource, holder string, mode fsm.Mode) fsm.Decision {
	w.t.Helper()
	id := fmt.Sprintf("lock-%s-%d", holder, w.at.Index)
	d := w.do(id, &fsm.Acquire{Resource: resource, Holder: holder, LeaseID: "lease-" + id, TTLMs: 10_000, Mode: mode})
	w.is(d, fsm.OutcomeApplied, fsm.Granted)
	return d
}

func (w *world) put(id, key, value string, token uint64) fsm.Decision {
	w.t.Helper()
	return w.do(id, &fsm.Put{Key: key, Value: []byte(value), Token: token})
}

func (w *world) value(key string) string {
	e := w.s.Entry(key)
	if e == nil || e.Now.Deleted {
		return ""
	}
	return string(e.Now.Data)
}

// TestTokenRule goes through every way a token can be wrong, on a key that is
// covered by a lock on its prefix and was written by two holders.
func TestTokenRule(t *testing.T) {
	w := newWorld(t)
	old := w.lock("app/", "old", fsm.ModeIssue)
	w.is(w.put("p1", "app/db/x", "old", old.Token), fsm.OutcomeApplied, fsm.Written)
	w.sleep(20_000)
	foreign := w.lock("other", "somebody", fsm.ModeIssue)
	now := w.lock("app/", "new", fsm.ModeIssue)
	w.is(w.put("p2", "app/db/x", "new", now.Token), fsm.OutcomeApplied, fsm.Written)

	for i, c := range []struct {
		name  string
		key   string
		token uint64
		code  fsm.Code
	}{
		{"none on a fenced key", "app/db/x", 0, fsm.TokenRequired},
		{"none on a key under a fenced prefix", "app/never", 0, fsm.TokenRequired},
		{"an older holder's", "app/db/x", old.Token, fsm.StaleOwner},
		{"an older holder's, where it never wrote", "app/never", old.Token, fsm.StaleOwner},
		{"another resource's, too low", "app/db/x", foreign.Token, fsm.StaleOwner},
		{"never issued", "app/db/x", fsm.MaxNumber, fsm.TokenNotIssued},
		{"never issued, on a key of its own", "app/never", now.Token + 1, fsm.TokenNotIssued},
	} {
		before := w.s.Header()
		d := w.put(fmt.Sprint("bad-", i), c.key, "bad", c.token)
		if d.Outcome != fsm.OutcomeRefused || d.Code != c.code {
			t.Errorf("%s: got %s %s, want refused %s", c.name, d.Outcome, d.Code, c.code)
		}
		after := w.s.Header()
		before.Index, before.ClockMs, before.EventSeq = after.Index, after.ClockMs, after.EventSeq
		if before != after || w.value("app/db/x") != "new" || w.s.Entry("app/never") != nil {
			t.Errorf("%s: the refusal changed something: %+v → %+v", c.name, before, after)
		}
		if w.s.Record(c.key, fmt.Sprint("bad-", i)) != nil {
			t.Errorf("%s: the refusal was recorded", c.name)
		}
	}
	w.is(w.do("r", &fsm.Release{Resource: "app/", LeaseID: now.LeaseID}), fsm.OutcomeApplied, fsm.Released)
	w.is(w.put("late", "app/db/x", "late", now.Token), fsm.OutcomeRefused, fsm.TokenRetired)
	if e := w.s.Entry("app/db/x"); e.Now.Version != 2 || e.Now.Holder != "new" {
		t.Errorf("the key was written %d times, last by %q; want 2, by new", e.Now.Version, e.Now.Holder)
	}
}

// TestModeWrite: until the new holder's first write the old one's late write
// passes, and never after.
func TestModeWrite(t *testing.T) {
	w := newWorld(t)
	a := w.lock("k", "A", fsm.ModeWrite)
	if f := w.s.Fence("k"); f.MaxToken != 0 || f.Issued != a.Token {
		t.Fatalf("after the grant: %+v", f)
	}
	w.is(w.put("1", "k", "A", a.Token), fsm.OutcomeApplied, fsm.Written)
	w.sleep(20_000)
	b := w.lock("k", "B", fsm.ModeWrite)
	w.is(w.put("2", "k", "A late", a.Token), fsm.OutcomeApplied, fsm.Written)
	w.is(w.put("3", "k", "B", b.Token), fsm.OutcomeApplied, fsm.Written)
	w.is(w.put("4", "k", "A later", a.Token), fsm.OutcomeRefused, fsm.StaleOwner)
	for range fsm.MaxIssues { // a ninth issue displaces the oldest kept
		w.sleep(20_000)
		w.lock("k", "C", fsm.ModeWrite)
	}
	if f := w.s.Fence("k"); len(f.Issues) != fsm.MaxIssues || f.MaxToken != b.Token+1 || f.Enforced.Cause != fsm.CauseDisplace {
		t.Fatalf("after %d more grants: %d issues, maxToken %d (%+v)", fsm.MaxIssues, len(f.Issues), f.MaxToken, f.Enforced)
	}
}

// TestExternalIssuer: a key's first token comes from outside; acquire takes it
// over only with adopt, and goes on above.
func TestExternalIssuer(t *testing.T) {
	w := newWorld(t)
	w.is(w.put("1", "ext", "a", 500), fsm.OutcomeApplied, fsm.Written)
	w.is(w.put("2", "ext", "b", 499), fsm.OutcomeRefused, fsm.StaleOwner)
	w.is(w.put("3", "ext", "c", 0), fsm.OutcomeRefused, fsm.TokenRequired)
	w.is(w.put("4", "ext", "d", 700), fsm.OutcomeApplied, fsm.Written)
	ask := &fsm.Acquire{Resource: "ext", Holder: "A", LeaseID: "l", TTLMs: 5_000}
	w.is(w.do("5", ask), fsm.OutcomeRefused, fsm.ExternallyFenced)
	ask.Adopt = true
	d := w.do("6", ask)
	w.is(d, fsm.OutcomeApplied, fsm.Granted)
	if d.Token != 701 || w.s.Fence("ext").External {
		t.Fatalf("adopted with token %d, fence %+v", d.Token, w.s.Fence("ext"))
	}
	w.is(w.put("7", "ext", "late", 700), fsm.OutcomeRefused, fsm.StaleOwner)
	w.is(w.put("8", "ext", "forged", 9_000), fsm.OutcomeRefused, fsm.TokenNotIssued)
	w.is(w.put("9", "huge", "x", fsm.MaxNumber), fsm.OutcomeApplied, fsm.Written)
	w.is(w.do("10", &fsm.Acquire{Resource: "huge", Holder: "A", LeaseID: "m", TTLMs: 5_000, Adopt: true}), fsm.OutcomeRefused, fsm.LimitExceeded)
	settings := w.s.Settings()
	settings.ExternalTokens = false
	w.do("", &fsm.Configure{Settings: settings})
	w.is(w.put("11", "ext2", "x", 5), fsm.OutcomeRefused, fsm.TokenNotIssued)
}

// TestRequestRule: one ID, one outcome.
func TestRequestRule(t *testing.T) {
	w := newWorld(t)
	first := w.put("id", "k", "v", 0)
	again := w.put("id", "k", "v", 0)
	w.is(again, fsm.OutcomeReplayed, fsm.Written)
	if again.Revision != first.Revision || again.Version != first.Version || again.Created != first.Created {
		t.Fatalf("replay differs: %+v, %+v", first, again)
	}
	w.is(w.put("id", "k", "other", 0), fsm.OutcomeRefused, fsm.RequestMismatch)
	w.is(w.put("id", "k2", "v", 0), fsm.OutcomeApplied, fsm.Written) // another scope
	w.is(w.do("sealed", &fsm.Seal{Scope: "k"}), fsm.OutcomeApplied, fsm.Sealed)
	w.is(w.do("sealed", &fsm.Seal{Scope: "k"}), fsm.OutcomeReplayed, fsm.Sealed)
	w.is(w.put("sealed", "k", "v", 0), fsm.OutcomeRefused, fsm.RequestSealed)
	w.is(w.do("id", &fsm.Seal{Scope: "k"}), fsm.OutcomeReplayed, fsm.Written)

	absent := &fsm.Put{Key: "k", Value: []byte("w"), If: fsm.Condition{Absent: true}}
	w.is(w.do("final", absent), fsm.OutcomeRefused, fsm.RevisionMismatch)
	w.is(w.do("gone", &fsm.Delete{Key: "k"}), fsm.OutcomeApplied, fsm.Deleted)
	w.is(w.do("final", absent), fsm.OutcomeRefused, fsm.RevisionMismatch) // though it would pass now
	w.is(w.do("gone2", &fsm.Delete{Key: "k"}), fsm.OutcomeRefused, fsm.KeyNotFound)
	if w.value("k") != "" || w.s.Entry("k").Now.Version != 2 {
		t.Fatalf("k: %+v", w.s.Entry("k").Now)
	}
}

// TestNewHolderFinishes: a new holder resends the old one's request; its token
// counts from then on.
func TestNewHolderFinishes(t *testing.T) {
	w := newWorld(t)
	a := w.lock("k", "A", fsm.ModeWrite)
	first := w.put("job", "k", "v", a.Token)
	w.sleep(20_000)
	b := w.lock("k", "B", fsm.ModeWrite)
	again := w.put("job", "k", "v", b.Token)
	w.is(again, fsm.OutcomeReplayed, fsm.Written)
	if again.Revision != first.Revision || w.s.Fence("k").MaxToken != b.Token {
		t.Fatalf("revision %d, maxToken %d", again.Revision, w.s.Fence("k").MaxToken)
	}
	late := w.put("job", "k", "v", a.Token)
	w.is(late, fsm.OutcomeRefused, fsm.StaleOwner)
	if late.Applied == nil || late.Applied.Revision != first.Revision || late.Applied.Token != a.Token {
		t.Fatalf("the fenced-out sender does not learn its write applied: %+v", late.Applied)
	}
}

// TestForgetting: past its retention or above the cap a record goes, and a
// caller that sent its base is told so instead of being run twice.
func TestForgetting(t *testing.T) {
	w := newWorld(t)
	settings := w.s.Settings()
	settings.RequestRetentionMs, settings.MaxRequests = 5_000, 3
	w.do("", &fsm.Configure{Settings: settings})
	base := w.s.Revision()
	w.put("first", "k", "v", 0)
	for i := range 3 {
		w.put(fmt.Sprint("more", i), "k", "w", 0)
	}
	w.do("", &fsm.Tick{}) // the cap is enforced ahead of each command
	if n := w.s.Counts().Requests; n != 3 || w.s.Record("k", "first") != nil {
		t.Fatalf("%d records kept, the first among them: %v", n, w.s.Record("k", "first"))
	}
	resend := fsm.NewCommand(fsm.Request{ID: "first", Base: base, HasBase: true}, &fsm.Put{Key: "k", Value: []byte("v")})
	w.is(w.send(resend), fsm.OutcomeRefused, fsm.RequestExpired)
	w.sleep(10_000)
	w.do("", &fsm.Tick{})
	if n := w.s.Counts().Requests; n != 0 || w.s.Horizon() == 0 {
		t.Fatalf("%d records past their time, horizon %d", n, w.s.Horizon())
	}
	fresh := fsm.NewCommand(fsm.Request{ID: "new", Base: w.s.Revision(), HasBase: true}, &fsm.Put{Key: "k", Value: []byte("x")})
	w.is(w.send(fresh), fsm.OutcomeApplied, fsm.Written)
}

// TestSequence: in order and once, at constant memory, inside one token.
func TestSequence(t *testing.T) {
	w := newWorld(t)
	a := w.lock("app/", "A", fsm.ModeIssue)
	step := func(n uint64, key, value string) fsm.Decision {
		return w.do("", &fsm.Put{Key: key, Value: []byte(value), Token: a.Token, Sequence: n})
	}
	w.is(step(2, "app/x", "b"), fsm.OutcomeRefused, fsm.SequenceGap)
	w.is(step(1, "app/x", "a"), fsm.OutcomeApplied, fsm.Written)
	w.is(step(1, "app/x", "a"), fsm.OutcomeReplayed, fsm.Written)
	w.is(step(1, "app/x", "other"), fsm.OutcomeRefused, fsm.RequestMismatch)
	w.is(step(2, "app/y", "b"), fsm.OutcomeApplied, fsm.Written)
	w.is(step(1, "app/x", "a"), fsm.OutcomeRefused, fsm.SequencePassed)
	gap := step(9, "app/y", "c")
	w.is(gap, fsm.OutcomeRefused, fsm.SequenceGap)
	if gap.Expected != 3 || w.s.Counts().Requests != 1 { // the acquire's record only
		t.Fatalf("expected %d, %d records", gap.Expected, w.s.Counts().Requests)
	}
}

// TestOverlapAndQueue: locks exclude each other along the tree, and nobody is
// overtaken.
func TestOverlapAndQueue(t *testing.T) {
	w := newWorld(t)
	a := w.lock("app/x", "A", fsm.ModeIssue)
	ask := func(id, resource string, wait int64) fsm.Decision {
		return w.do(id, &fsm.Acquire{Resource: resource, Holder: id, LeaseID: "l" + id, TTLMs: 60_000, WaitMs: wait})
	}
	held := ask("B", "app/", 0)
	w.is(held, fsm.OutcomeRefused, fsm.LockHeld)
	if held.Holder != "A" || held.RemainingMs != 10_000 || held.Key != "app/x" {
		t.Fatalf("who is in the way: %+v", held)
	}
	w.is(ask("B", "app/", 60_000), fsm.OutcomeWaiting, fsm.Waiting)
	w.is(ask("B", "app/", 60_000), fsm.OutcomeWaiting, fsm.Waiting)
	w.is(ask("C", "app/y", 0), fsm.OutcomeRefused, fsm.LockHeld) // free, but B waits for the tree
	w.is(ask("C", "app/y", 60_000), fsm.OutcomeWaiting, fsm.Waiting)
	w.is(ask("D", "app/x", 1_000), fsm.OutcomeWaiting, fsm.Waiting)
	w.is(ask("E", "apple", 0), fsm.OutcomeApplied, fsm.Granted) // shares letters, not a segment
	w.sleep(2_000)
	w.is(w.do("rel", &fsm.Release{Resource: "app/x", LeaseID: a.LeaseID}), fsm.OutcomeApplied, fsm.Released)
	if w.s.Waiter("app/x", "D") != nil {
		t.Fatal("D's wait was over before the release")
	}
	b := w.s.Granted("app/", "B")
	w.is(b, fsm.OutcomeApplied, fsm.Granted)
	if w.s.Waiter("app/y", "C") == nil || w.s.Fence("app/y") != nil {
		t.Fatal("C was served while B holds the tree")
	}
	w.is(ask("B", "app/", 60_000), fsm.OutcomeReplayed, fsm.Granted) // the grant is found again
	w.is(w.do("rel2", &fsm.Release{Resource: "app/", LeaseID: b.LeaseID}), fsm.OutcomeApplied, fsm.Released)
	w.is(w.s.Granted("app/y", "C"), fsm.OutcomeApplied, fsm.Granted)
	w.is(ask("B", "app/", 0), fsm.OutcomeRefused, fsm.NotHolder) // its one effect is over
}

// TestLease: only the lease renews and releases; the deadline never moves back.
func TestLease(t *testing.T) {
	w := newWorld(t)
	a := w.lock("k", "A", fsm.ModeIssue)
	w.sleep(1_000)
	long := w.do("r1", &fsm.Renew{Resource: "k", LeaseID: a.LeaseID, TTLMs: 60_000})
	w.is(long, fsm.OutcomeApplied, fsm.Renewed)
	w.sleep(1_000)
	again := w.do("r1", &fsm.Renew{Resource: "k", LeaseID: a.LeaseID, TTLMs: 60_000})
	w.is(again, fsm.OutcomeReplayed, fsm.Renewed)
	short := w.do("r0", &fsm.Renew{Resource: "k", LeaseID: a.LeaseID, TTLMs: 2_000})
	if again.DeadlineMs != long.DeadlineMs || short.DeadlineMs != long.DeadlineMs {
		t.Fatalf("deadlines %d, %d, %d", long.DeadlineMs, again.DeadlineMs, short.DeadlineMs)
	}
	w.is(w.do("x", &fsm.Renew{Resource: "k", LeaseID: "foreign"}), fsm.OutcomeRefused, fsm.NotHolder)
	w.is(w.do("y", &fsm.Release{Resource: "k", LeaseID: "foreign"}), fsm.OutcomeRefused, fsm.NotHolder)
	w.sleep(58_999)
	w.do("", &fsm.Tick{})
	if w.s.Fence("k").Lock == nil {
		t.Fatal("the lease ended a millisecond early")
	}
	w.sleep(1)
	w.is(w.do("z", &fsm.Renew{Resource: "k", LeaseID: a.LeaseID}), fsm.OutcomeRefused, fsm.NotHolder)
	w.is(w.put("slow", "k", "still A", a.Token), fsm.OutcomeApplied, fsm.Written) // slow, not replaced
}

// TestReacquire: continuity is granted only if nobody held the resource, or a
// part of it, meanwhile.
func TestReacquire(t *testing.T) {
	w := newWorld(t)
	a := w.lock("app/", "A", fsm.ModeIssue)
	w.sleep(20_000)
	again := func(id string, token uint64) fsm.Decision {
		return w.do(id, &fsm.Acquire{Resource: "app/", Holder: "A", LeaseID: "l" + id, TTLMs: 5_000, IfToken: token})
	}
	d := again("1", a.Token)
	w.is(d, fsm.OutcomeApplied, fsm.Granted)
	if !d.Continuity || d.Token <= a.Token {
		t.Fatalf("%+v", d)
	}
	w.sleep(20_000)
	part := w.lock("app/x", "B", fsm.ModeIssue)
	w.sleep(20_000)
	refused := again("2", d.Token)
	w.is(refused, fsm.OutcomeRefused, fsm.StaleOwner)
	if refused.Issued != part.Token {
		t.Fatalf("issued %d, want B's %d", refused.Issued, part.Token)
	}
}

// TestAdministration: revoke shuts out at once, require before the first lock,
// purge gives memory back and no token.
func TestAdministration(t *testing.T) {
	w := newWorld(t)
	w.is(w.do("r0", &fsm.Revoke{Resource: "app/k"}), fsm.OutcomeRefused, fsm.LockNotFound)
	a := w.lock("app/k", "A", fsm.ModeIssue)
	w.put("1", "app/k", "v", a.Token)
	revoked := w.do("r1", &fsm.Revoke{Resource: "app/k"})
	w.is(revoked, fsm.OutcomeApplied, fsm.Revoked)
	w.is(w.put("2", "app/k", "late", a.Token), fsm.OutcomeRefused, fsm.StaleOwner)
	w.is(w.do("q", &fsm.Require{Resource: "plain"}), fsm.OutcomeApplied, fsm.Required)
	w.is(w.put("3", "plain", "v", 0), fsm.OutcomeRefused, fsm.TokenRequired)

	b := w.lock("app/k", "B", fsm.ModeIssue)
	w.is(w.do("d", &fsm.Delete{Key: "app/k", Token: b.Token}), fsm.OutcomeApplied, fsm.Deleted)
	w.is(w.do("p0", &fsm.Purge{Prefix: "app/"}), fsm.OutcomeApplied, fsm.Purged)
	if w.s.Fence("app/k") == nil {
		t.Fatal("a locked fence was purged")
	}
	live := w.lock("app/db/", "C", fsm.ModeIssue)
	w.do("rel", &fsm.Release{Resource: "app/k", LeaseID: b.LeaseID})
	later := w.lock("app/m", "D", fsm.ModeIssue)
	w.do("rel2", &fsm.Release{Resource: "app/m", LeaseID: later.LeaseID})
	d := w.do("p1", &fsm.Purge{Prefix: "app/"})
	w.is(d, fsm.OutcomeApplied, fsm.Purged)
	if d.Count != 1 || w.s.Fence("app/k") != nil || w.s.Fence("app/m") == nil || w.s.Entry("app/k") != nil {
		t.Fatalf("purged %d; app/m would have put the floor above C's token", d.Count)
	}
	w.is(w.put("4", "app/k", "late", b.Token), fsm.OutcomeRefused, fsm.StaleOwner)
	w.is(w.put("5", "app/k", "plain", 0), fsm.OutcomeRefused, fsm.TokenRequired)
	w.is(w.put("6", "app/k", "forged", 999), fsm.OutcomeRefused, fsm.TokenNotIssued)
	w.is(w.put("7", "app/db/new", "C", live.Token), fsm.OutcomeApplied, fsm.Written) // the live holder is not touched
	w.is(w.put("8", "app/k", "E", w.lock("app/k", "E", fsm.ModeIssue).Token), fsm.OutcomeApplied, fsm.Written)
}

// TestTxn: all or nothing, each key with one of the tokens.
func TestTxn(t *testing.T) {
	w := newWorld(t)
	a, b := w.lock("a", "A", fsm.ModeIssue), w.lock("b/", "A", fsm.ModeIssue)
	w.put("seed", "free", "v", 0)
	txn := func(id string, tokens []uint64, ops ...fsm.Op) fsm.Decision {
		return w.do(id, &fsm.Txn{Resource: "batch", Tokens: tokens, Ops: ops})
	}
	write := func(key string) fsm.Op { return &fsm.Put{Key: key, Value: []byte("t")} }
	both := []uint64{a.Token, b.Token}
	before := w.s.Revision()
	short := txn("1", both[:1], write("a"), write("b/x"))
	w.is(short, fsm.OutcomeRefused, fsm.StaleOwner)
	if short.Key != "b/x" || short.FailedOp != 1 || w.s.Revision() != before || w.value("a") != "" {
		t.Fatalf("half a transaction: %+v", short)
	}
	w.is(txn("2", nil, write("a")), fsm.OutcomeRefused, fsm.TokenRequired)
	w.is(txn("4", both, write("a"), write("b/x"), write("plain"), &fsm.Check{Key: "free", If: fsm.Condition{Exists: true}}), fsm.OutcomeApplied, fsm.Committed)
	for _, key := range []string{"a", "b/x", "plain"} {
		if w.s.Entry(key).Now.Revision != w.s.Revision() {
			t.Errorf("%s is at revision %d, the store at %d", key, w.s.Entry(key).Now.Revision, w.s.Revision())
		}
	}
	if w.s.Fence("plain") != nil {
		t.Error("a key that was never fenced was fenced by a transaction's tokens")
	}
	miss := txn("5", both, &fsm.Check{Key: "free", If: fsm.Condition{Absent: true}}, write("a"))
	w.is(miss, fsm.OutcomeRefused, fsm.RevisionMismatch)
	if miss.Key != "free" || miss.FailedOp != 0 || w.s.Entry("a").Now.Version != 1 {
		t.Fatalf("%+v", miss)
	}
	replay := txn("4", both, write("a"), write("b/x"), write("plain"), &fsm.Check{Key: "free", If: fsm.Condition{Exists: true}})
	w.is(replay, fsm.OutcomeReplayed, fsm.Committed)
	if fmt.Sprint(replay.Versions) != "[1 1 1 0]" {
		t.Errorf("versions %v", replay.Versions)
	}
}

// TestBounds: what could grow does not.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	big := strings.Repeat("x", 200<<10)
	for i := range 20 {
		w.put(fmt.Sprint(i), "k", big, 0)
	}
	if n := len(w.s.Entry("k").Earlier); n != 5 { // 5 × 200 KiB fit in 1 MiB
		t.Errorf("%d earlier values of 200 KiB kept", n)
	}
	w.is(w.put("huge", "k", strings.Repeat("x", 300<<10), 0), fsm.OutcomeRefused, fsm.LimitExceeded)
	w.do("q", &fsm.Require{Resource: "r"})
	for i := range fsm.MaxEvents + 10 {
		w.put(fmt.Sprint("e", i), "r", "v", 0)
	}
	if n := w.s.Counts().Events; n != fsm.MaxEvents {
		t.Errorf("%d events kept", n)
	}
}

// TestPurgedKeyStaysFenced: a token that was refused on a key before it was
// purged is refused there afterwards, also once the key has a new fence.
func TestPurgedKeyStaysFenced(t *testing.T) {
	refence := map[string]fsm.Op{
		"a lock in mode write": &fsm.Acquire{Resource: "app/x", Holder: "C", LeaseID: "lc", TTLMs: 1_000, Mode: fsm.ModeWrite},
		"require":              &fsm.Require{Resource: "app/x"},
	}
	for name, op := range refence {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.do("a-lock", &fsm.Acquire{Resource: "app/", Holder: "A", LeaseID: "la", TTLMs: 1_000, Mode: fsm.ModeWrite})
			w.sleep(1_000)
			b := w.do("b-lock", &fsm.Acquire{Resource: "app/x", Holder: "B", LeaseID: "lb", TTLMs: 1_000})
			w.is(w.do("b-put", &fsm.Put{Key: "app/x", Token: b.Token}), fsm.OutcomeApplied, fsm.Written)
			w.is(w.do("b-delete", &fsm.Delete{Key: "app/x", Token: b.Token}), fsm.OutcomeApplied, fsm.Deleted)
			w.sleep(1_000)
			w.is(w.do("purge", &fsm.Purge{Prefix: "app/"}), fsm.OutcomeApplied, fsm.Purged)
			w.do("refence", op)
			w.is(w.do("a-put", &fsm.Put{Key: "app/x", Token: a.Token}), fsm.OutcomeRefused, fsm.StaleOwner)
		})
	}
}
