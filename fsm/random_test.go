package fsm_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/fencekv/fencekv/fsm"
)

// stepBytes is how many bytes of choices one command takes. A fixed size lets
// rapid and the native fuzzer drop a command without changing the others.
const stepBytes = 16

// choices turns bytes into decisions; used up, it goes on with zeros, which
// always mean the plainest alternative.
type choices []byte

// of returns a number below n.
func (c *choices) of(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return int(b) % n
}

// pick returns one of all.
func pick[T any](c *choices, all ...T) T { return all[c.of(len(all))] }

// script is a list of steps as bytes. It draws as one value, so that a failing
// run prints the history it led to and not thousands of bytes.
type script []byte

func (s script) GoString() string { return fmt.Sprintf("%d steps", len(s)/stepBytes) }

func (s script) steps() [][]byte {
	var steps [][]byte
	for at := 0; at+stepBytes <= len(s); at += stepBytes {
		steps = append(steps, s[at:at+stepBytes])
	}
	return steps
}

// scripts draws about sixty steps, in parts, because rapid makes single lists
// short and shrinks a part away faster than its steps.
func scripts() *rapid.Generator[script] {
	step := rapid.SliceOfN(rapid.Byte(), stepBytes, stepBytes)
	parts := rapid.SliceOfN(rapid.SliceOfN(step, 0, 60), 0, 24)
	return rapid.Custom(func(t *rapid.T) script {
		var s script
		for _, part := range parts.Draw(t, "parts") {
			for _, one := range part {
				s = append(s, one...)
			}
		}
		return s
	})
}

// The universe: few names, so that commands meet.
var (
	keys      = []string{"app/db/x", "app/y", "other", "app/db/z"}
	prefixes  = []string{"app/", "app/db/"}
	resources = []string{"app/db/x", "app/", "app/y", "app/db/", "other"}
	requests  = []string{"", "r1", "r2", "r3", "r4"}
)

// entry is one command of a history at its place in the log.
type entry struct {
	at fsm.Position
	c  *fsm.Command
}

// author makes up commands that make sense to the state they meet: tokens that
// were issued, leases that are held, revisions that are current, times at which
// something is due; and now and then the opposite.
type author struct {
	at     fsm.Position
	clock  int64 // the honest leader's reckoning
	tokens []uint64
	leases []string
}

// start returns the state a history begins with: mostly an empty one, sometimes
// the first of a new epoch.
func start(t failer, c *choices) *fsm.State {
	t.Helper()
	if c.of(8) != 7 {
		return fsm.New()
	}
	h := fsm.New().Header()
	h.Epoch, h.Token, h.Revision, h.Horizon = 1, fsm.EpochSize, fsm.EpochSize, fsm.EpochSize
	h.Floor = fsm.EpochSize + 1
	h.FloorSet = &fsm.Enforcement{Token: h.Floor, Revision: h.Revision, Cause: fsm.CauseRestore}
	s, err := fsm.NewBuilder(h).State()
	if err != nil {
		t.Fatalf("build the first state of an epoch: %v", err)
	}
	return s
}

func settings(c *choices) fsm.Settings {
	return fsm.Settings{
		RequestRetentionMs: pick(c, int64(5_000), 2_000, 60_000),
		MaxRequests:        pick(c, int64(6), 3, 100),
		History:            pick(c, int64(2), 0, 1),
		MaxValue:           4,
		ExternalTokens:     c.of(6) != 5,
	}
}

// next returns the next command, or false for a step left out.
func (a *author) next(s *fsm.State, c choices) (entry, bool) {
	op := a.op(s, &c)
	if op == nil {
		return entry{}, false
	}
	a.at.Index++
	a.at.Term += uint64(c.of(24) / 23)
	r := fsm.Request{ID: pick(&c, requests...)}
	if acquire, ok := op.(*fsm.Acquire); ok {
		acquire.LeaseID = fmt.Sprint("lease", a.at.Index)
	}
	if r.ID == "" || c.of(3) == 0 {
		r.ID = fmt.Sprint("n", a.at.Index)
	}
	if sequenced(op) && c.of(2) == 0 {
		r.ID = ""
	}
	if c.of(4) == 3 {
		h := s.Horizon()
		r.HasBase, r.Base = true, pick(&c, s.Revision(), h, h-min(h, 1), 0)
	}
	if c.of(4) == 3 {
		r.Author, r.Reason = "author", "reason"
	}
	command := fsm.NewCommand(r, op)
	command.Stamp = a.stamp(s, &c)
	return entry{a.at, command}, true
}

func sequenced(op fsm.Op) bool {
	put, ok := op.(*fsm.Put)
	return ok && put.Sequence > 0
}

// stamp lets time pass, mostly a little, often to the very moment of a deadline
// or the one before it; a few stamps are of an older leadership or turn back.
func (a *author) stamp(s *fsm.State, c *choices) fsm.Stamp {
	a.clock = max(a.clock, s.ClockMs())
	stamp := fsm.Stamp{Term: a.at.Term}
	switch next, due := s.NextDeadline(); c.of(12) {
	case 1, 2:
		a.clock += 1
	case 3, 4:
		a.clock += 400
	case 5, 6:
		a.clock += 1_000
	case 7:
		a.clock += 7_000
	case 8:
		if due {
			a.clock = next
		}
	case 9:
		if due {
			a.clock = max(a.clock, next-1)
		}
	case 10:
		stamp.Term, stamp.ClockMs = stamp.Term-1, a.clock+100_000
		return stamp
	case 11:
		stamp.ClockMs = a.clock / 2
		return stamp
	}
	stamp.ClockMs, stamp.WallMs = a.clock, 1_700_000_000_000+a.clock
	return stamp
}

// op returns an operation, or nil for none.
func (a *author) op(s *fsm.State, c *choices) fsm.Op {
	resource := func() string { return pick(c, resources...) }
	switch c.of(32) {
	case 1, 2, 3, 4, 5:
		return a.put(s, c)
	case 6, 7:
		key := pick(c, keys...)
		return &fsm.Delete{Key: key, Token: a.token(s, key, c), If: a.condition(s, key, c)}
	case 8, 9, 10, 11, 12, 13, 14:
		return a.acquire(s, c)
	case 15, 16:
		r := resource()
		return &fsm.Renew{Resource: r, LeaseID: a.lease(s, r, c), TTLMs: pick(c, int64(0), 1_000, 3_000)}
	case 17, 18, 19:
		r := resource()
		return &fsm.Release{Resource: r, LeaseID: a.lease(s, r, c)}
	case 20:
		return &fsm.Withdraw{Resource: resource()}
	case 21, 22:
		return &fsm.Revoke{Resource: resource()}
	case 23:
		return &fsm.Require{Resource: resource()}
	case 24:
		return &fsm.Purge{Prefix: pick(c, prefixes...)}
	case 25:
		return &fsm.Seal{Scope: resource()}
	case 26, 27, 28:
		return a.txn(s, c)
	case 29:
		return &fsm.Tick{}
	case 30:
		return &fsm.Configure{Settings: settings(c)}
	case 31:
		return a.record(c)
	}
	return nil
}

func (a *author) record(c *choices) fsm.Op {
	name := pick(c, "n1", "n2")
	return pick[fsm.Op](c,
		&fsm.SetMember{Member: fsm.Member{Name: name, ServerID: name + "-0", HTTPAddress: "http://" + name, RaftAddress: name + ":1", Build: "dev", Format: 1}},
		&fsm.RemoveMember{Name: name},
		&fsm.Found{ClusterID: "cluster-" + name},
	)
}

func (a *author) put(s *fsm.State, c *choices) fsm.Op {
	key := pick(c, keys...)
	put := &fsm.Put{Key: key, Token: a.token(s, key, c), If: a.condition(s, key, c), Value: pick(c, []byte("a"), []byte("b"), nil, []byte("large"))}
	if c.of(4) == 3 {
		put.ContentType = "text/plain"
	}
	if put.Token > 0 && c.of(3) == 2 {
		put.Sequence = uint64(1 + c.of(3))
	}
	return put
}

func (a *author) txn(s *fsm.State, c *choices) fsm.Op {
	first := c.of(len(keys))
	txn := &fsm.Txn{Resource: pick(c, resources...)}
	for i := range 1 + c.of(3) {
		key := keys[(first+i)%len(keys)]
		want := a.condition(s, key, c)
		switch c.of(4) {
		case 0, 1:
			txn.Ops = append(txn.Ops, &fsm.Put{Key: key, Value: []byte("t"), If: want})
		case 2:
			txn.Ops = append(txn.Ops, &fsm.Delete{Key: key, If: want})
		case 3:
			txn.Ops = append(txn.Ops, &fsm.Check{Key: key, If: pick(c, fsm.Condition{Exists: true}, fsm.Condition{Absent: true})})
		}
		if token := a.token(s, key, c); token > 0 {
			txn.Tokens = append(txn.Tokens, token)
		}
	}
	return txn
}

func (a *author) acquire(s *fsm.State, c *choices) fsm.Op {
	op := &fsm.Acquire{
		Resource: pick(c, resources...), Holder: pick(c, "A", "B", "C"), Node: "n1",
		TTLMs: pick(c, int64(1_000), 2_000, 5_000), Mode: pick(c, fsm.ModeIssue, fsm.ModeWrite),
		WaitMs: pick(c, int64(0), 1_000, 3_000), Adopt: c.of(3) == 1,
	}
	if op.WaitMs == 0 && c.of(6) == 5 {
		op.IfToken = 1
		if f := s.Fence(op.Resource); f != nil && f.Issued > 0 && c.of(4) != 3 {
			op.IfToken = f.Issued
		}
	}
	return op
}

// condition returns mostly none, else one that holds or just does not.
func (a *author) condition(s *fsm.State, key string, c *choices) fsm.Condition {
	var current uint64
	if e := s.Entry(key); e != nil {
		current = e.Now.Revision
	}
	switch c.of(12) {
	case 8:
		return fsm.Condition{Absent: true}
	case 9:
		return fsm.Condition{Exists: true}
	case 10:
		return fsm.Condition{Revision: current}
	case 11:
		return fsm.Condition{Revision: current + 1}
	}
	return fsm.Condition{}
}

// token returns one that may be good on key, often; else none, one issued
// elsewhere or earlier, one from outside, or a forged one.
func (a *author) token(s *fsm.State, key string, c *choices) uint64 {
	var good []uint64
	for f := range s.Fences("", "") {
		if f.Resource != key && !(strings.HasSuffix(f.Resource, "/") && strings.HasPrefix(key, f.Resource)) {
			continue
		}
		for _, issue := range f.Issues {
			good = append(good, issue.Token)
		}
		if f.External {
			good = append(good, f.MaxToken)
		}
	}
	enforced, _ := s.Enforced(key)
	switch n := c.of(16); {
	case n < 9 && len(good) > 0:
		return good[len(good)-1-c.of(len(good))]
	case n < 11:
		return 0
	case n < 13 && len(a.tokens) > 0:
		return a.tokens[len(a.tokens)-1-c.of(len(a.tokens))]
	case n == 13:
		return enforced + uint64(c.of(2))
	case n == 14:
		return pick(c, uint64(50), fsm.MaxAdopted+1)
	}
	return uint64(c.of(3))
}

// lease returns the one that is held, mostly, else another.
func (a *author) lease(s *fsm.State, resource string, c *choices) string {
	if f := s.Fence(resource); f != nil && f.Lock != nil && c.of(5) != 4 {
		return f.Lock.LeaseID
	}
	if len(a.leases) > 0 {
		return a.leases[c.of(len(a.leases))]
	}
	return "lease0"
}

// saw remembers what a decision gave away.
func (a *author) saw(before, after *fsm.State) {
	if after.Token() == before.Token() {
		return
	}
	for f := range after.Locks("", "") {
		if f.Lock.Token > before.Token() {
			a.tokens, a.leases = append(a.tokens, f.Lock.Token), append(a.leases, f.Lock.LeaseID)
		}
	}
}
