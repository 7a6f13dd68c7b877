package fsm_test

import (
	"testing"

	"github.com/fencekv/fencekv/fsm"
)

// TestLateWorker is the reason the store exists: worker A stops before it saves,
// its lease lapses, B takes over and saves, A wakes up.
func TestLateWorker(t *testing.T) {
	w := newWorld(t)
	a := w.do("a-lock", &fsm.Acquire{Resource: "app/report", Holder: "A", LeaseID: "la", TTLMs: 10_000})
	w.is(a, fsm.OutcomeApplied, fsm.Granted)
	w.sleep(30_000)
	b := w.do("b-lock", &fsm.Acquire{Resource: "app/report", Holder: "B", LeaseID: "lb", TTLMs: 10_000})
	w.is(b, fsm.OutcomeApplied, fsm.Granted)
	w.is(w.do("b-save", &fsm.Put{Key: "app/report", Value: []byte("B"), Token: b.Token}), fsm.OutcomeApplied, fsm.Written)

	late := w.do("a-save", &fsm.Put{Key: "app/report", Value: []byte("A"), Token: a.Token})
	w.is(late, fsm.OutcomeRefused, fsm.StaleOwner)
	if late.MaxToken != b.Token || late.EnforcedBy == nil || late.EnforcedBy.Holder != "B" || late.EnforcedBy.RequestID != "b-lock" {
		t.Fatalf("evidence does not name B's token: %+v %+v", late, late.EnforcedBy)
	}
	if got := string(w.s.Entry("app/report").Now.Data); got != "B" {
		t.Fatalf("value is %q, want B's", got)
	}
}

// world is a store under test: it numbers positions, moves the clock and holds
// every decision to what a refusal promises.
type world struct {
	t     *testing.T
	s     *fsm.State
	at    fsm.Position
	clock int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, s: fsm.New(), at: fsm.Position{Term: 1}}
}

func (w *world) sleep(ms int64) { w.clock += ms }

func (w *world) do(id string, op fsm.Op) fsm.Decision {
	return w.send(fsm.NewCommand(fsm.Request{ID: id}, op))
}

func (w *world) send(c *fsm.Command) fsm.Decision {
	w.t.Helper()
	if err := fsm.Validate(c); err != nil {
		w.t.Fatalf("invalid command %T: %v", c.Op, err)
	}
	w.at.Index++
	c.Stamp = fsm.Stamp{Term: w.at.Term, ClockMs: w.clock, WallMs: 1_700_000_000_000 + w.clock}
	before := w.s
	next, d := w.s.Apply(w.at, c)
	w.s = next
	if d.Outcome == fsm.OutcomeRefused && before.Token() != next.Token() && d.Code != fsm.WaitOver {
		if _, due := before.NextDeadline(); !due {
			w.t.Fatalf("a refusal issued a token: %+v", d)
		}
	}
	return d
}

func (w *world) is(d fsm.Decision, outcome fsm.Outcome, code fsm.Code) {
	w.t.Helper()
	if d.Outcome != outcome || d.Code != code {
		w.t.Fatalf("%s %s: got %s %q, want %s %q (%+v)", d.Op, d.Resource, d.Outcome, d.Code, outcome, code, d)
	}
}
