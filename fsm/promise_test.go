package fsm_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fencekv/fencekv/fsm"
)

// TestPromises holds random histories against the promises themselves, after
// every command and without asking the model: nothing falls, a refused command
// changes nothing it was asked to, a token below what is enforced never writes,
// a request takes effect once, no lease ends early.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		applied := map[string]uint64{} // request → revision at which it took effect
		horizon := uint64(0)
		run(t, scripts().Draw(t, "history"), func(h *history, e entry, before, after *fsm.State, d fsm.Decision) {
			nothingFalls(h, before, after)
			writesPass(h, e, before, after, d)
			onlyWhatApplied(h, e, before, after, d)
			leasesLast(h, before, after)
			if after.Horizon() > horizon {
				horizon = after.Horizon()
				for id, revision := range applied {
					if revision <= horizon {
						delete(applied, id)
					}
				}
			}
			scope := fsm.Scope(e.c.Op) + " " + e.c.Request.ID
			known, twice := applied[scope]
			if d.Outcome != fsm.OutcomeApplied || e.c.Request.ID == "" || !recorded(d.Code) {
				return
			}
			if twice && known > horizon {
				h.fatalf("request %s took effect at revision %d and again at %d", scope, known, d.Revision)
			}
			applied[scope] = d.Revision
		})
	})
}

// recorded says which applied decisions a request may get only once.
func recorded(code fsm.Code) bool {
	return slices.Contains([]fsm.Code{
		fsm.Written, fsm.Deleted, fsm.Committed, fsm.Granted, fsm.Released, fsm.Revoked, fsm.Required, fsm.Purged, fsm.Sealed,
	}, code)
}

// nothingFalls holds promises 1 and 2.
func nothingFalls(h *history, a, b *fsm.State) {
	if b.ClockMs() < a.ClockMs() || b.Revision() < a.Revision() || b.Token() < a.Token() ||
		b.Horizon() < a.Horizon() || b.EventSeq() < a.EventSeq() {
		h.fatalf("a number fell: %+v, then %+v", a.Header(), b.Header())
	}
	for _, key := range keys {
		was, _ := a.Enforced(key)
		is, _ := b.Enforced(key)
		if is < was {
			h.fatalf("the token enforced on %s fell from %d to %d", key, was, is)
		}
		x, y := a.Entry(key), b.Entry(key)
		if x != nil && y != nil && (y.Now.Revision < x.Now.Revision || y.Now.Revision > x.Now.Revision && y.Now.Version <= x.Now.Version && b.Fence(key) == a.Fence(key)) {
			h.fatalf("%s went from revision %d, version %d to %d, %d", key, x.Now.Revision, x.Now.Version, y.Now.Revision, y.Now.Version)
		}
	}
	for f := range a.Fences("", "") {
		g := b.Fence(f.Resource)
		if g == nil {
			continue // purged: what is enforced on its key is held above
		}
		if g.MaxToken < f.MaxToken || g.Issued < f.Issued || g.Under < f.Under || f.Required && !g.Required {
			h.fatalf("the fence of %s fell from %s to %s", f.Resource, show(f), show(g))
		}
	}
}

// writesPass holds the fence itself: whatever changed a key carried a token that
// was enforceable there before, or the key was never fenced.
func writesPass(h *history, e entry, before, after *fsm.State, d fsm.Decision) {
	for _, key := range keys {
		x, y := before.Entry(key), after.Entry(key)
		if y == nil || x != nil && x.Now == y.Now {
			continue
		}
		if d.Outcome != fsm.OutcomeApplied {
			h.fatalf("%s changed although the command was %s", key, d.Outcome)
		}
		enforced, _ := before.Enforced(key)
		if y.Now.Token < enforced && (y.Now.Token > 0 || fenced(before, key)) {
			h.fatalf("%s was written with token %d although %d was enforced", key, y.Now.Token, enforced)
		}
		if y.Now.Token == 0 && fenced(before, key) {
			h.fatalf("%s is fenced and was written without a token", key)
		}
		if is, _ := after.Enforced(key); is < y.Now.Token {
			h.fatalf("%s was written with token %d but enforces %d", key, y.Now.Token, is)
		}
	}
}

func fenced(s *fsm.State, key string) bool {
	for f := range s.Fences("", "") {
		if fsm.Covers(f.Resource, key) {
			return true
		}
	}
	return false
}

// onlyWhatApplied holds promise 6: a refusal leaves every key, and every token
// that is enforced, as it was. Only the passing of time, which comes before the
// command, may have ended leases.
func onlyWhatApplied(h *history, e entry, before, after *fsm.State, d fsm.Decision) {
	if d.Outcome != fsm.OutcomeRefused {
		return
	}
	_, due := before.NextDeadline()
	if due {
		return // leases may have ended, and waiters been granted, ahead of it
	}
	for _, key := range keys {
		if x, y := before.Entry(key), after.Entry(key); x != y {
			h.fatalf("a refused command changed %s", key)
		}
	}
	for f := range after.Fences("", "") {
		if before.Fence(f.Resource) != f {
			h.fatalf("a refused command changed the fence of %s", f.Resource)
		}
	}
	if after.Token() != before.Token() {
		h.fatalf("a refused command took a token")
	}
}

// leasesLast holds promise 8: a lease that was not given up lasts until the
// cluster clock has reached its deadline.
func leasesLast(h *history, before, after *fsm.State) {
	for f := range before.Locks("", "") {
		g := after.Fence(f.Resource)
		if g != nil && g.Lock != nil && g.Lock.LeaseID == f.Lock.LeaseID {
			continue
		}
		ended := after.ClockMs() >= f.Lock.DeadlineMs
		for event := range after.Events(before.EventSeq()) {
			code := event.Decision.Code
			ended = ended || event.Decision.Resource == f.Resource && (code == fsm.Released || code == fsm.Revoked)
		}
		if !ended {
			h.fatalf("the lease of %s ended at %d, before its deadline %d", f.Resource, after.ClockMs(), f.Lock.DeadlineMs)
		}
	}
}
