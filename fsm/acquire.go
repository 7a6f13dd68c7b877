package fsm

import "math"

// acquire grants the lock, queues the request, or says who is in the way.
func (b *Batch) acquire(op *Acquire) Decision {
	if r, refusal := b.recorded(); refusal != "" {
		return b.refuseRequest(refusal)
	} else if r != nil {
		return b.replayGrant(op, r)
	}
	if w := b.s.Waiter(op.Resource, b.id); w != nil {
		return b.wait(op, w)
	}
	f := b.s.Fence(op.Resource)
	if f != nil && f.External && !op.Adopt {
		d := b.refuse(ExternallyFenced)
		d.MaxToken, d.EnforcedBy = f.MaxToken, f.Enforced
		return d
	}
	if f != nil && f.External && f.MaxToken > MaxAdopted {
		return b.limit("adopted", MaxAdopted)
	}
	if d, full := b.full(); full {
		return d
	}
	if in, blocked := b.s.blocker(op.Resource); blocked {
		if op.WaitMs > 0 {
			return b.join(op)
		}
		return b.refuseHeld(in)
	}
	if d, ok := b.continues(op, f); !ok {
		return d
	}
	if b.s.held.Len() >= MaxLocks {
		return b.limit("locks", MaxLocks)
	}
	return b.grant(&Waiter{
		Resource: op.Resource, RequestID: b.id, Fingerprint: b.cmd.Request.Fingerprint,
		Holder: op.Holder, LeaseID: op.LeaseID, TTLMs: op.TTLMs, Mode: op.Mode, Adopt: op.Adopt,
	}, op.IfToken != 0)
}

// replayGrant repeats a grant while its lease lives. Once it is gone the request
// has had its one effect: a new try takes a new ID.
func (b *Batch) replayGrant(op *Acquire, r *Record) Decision {
	f := b.s.Fence(op.Resource)
	if f == nil || f.Lock == nil || r.More == nil || f.Lock.LeaseID != r.More.LeaseID {
		d := b.refuseNotHolder(f)
		d.Token = r.Token
		return d
	}
	d := replay(r)
	d.MaxToken, d.Issued = f.MaxToken, f.Issued
	d.TTLMs, d.DeadlineMs, d.RemainingMs = f.Lock.TTLMs, f.Lock.DeadlineMs, f.Lock.DeadlineMs-b.s.clockMs
	return d
}

// obstacle is what keeps a resource from being granted.
type obstacle struct {
	resource    string
	holder      string
	remainingMs int64
	token       uint64
}

// blocker returns the lock that overlaps resource, else a waiter that does:
// nobody is overtaken, or a lock over a tree would never come about while its
// keys are busy.
func (s *State) blocker(resource string) (obstacle, bool) {
	if f := s.heldOver(resource); f != nil {
		return obstacle{f.Resource, f.Lock.Holder, f.Lock.DeadlineMs - s.clockMs, f.Lock.Token}, true
	}
	var first *Waiter
	s.heads(resource, func(w *Waiter) {
		if first == nil || w.Order < first.Order {
			first = w
		}
	})
	if first == nil {
		return obstacle{}, false
	}
	return obstacle{resource: first.Resource, holder: first.Holder, remainingMs: first.DeadlineMs - s.clockMs}, true
}

// heldOver returns a held fence that overlaps resource, or nil.
func (s *State) heldOver(resource string) *Fence {
	var found *Fence
	covering(resource, func(r string) bool {
		found, _ = s.held.Get(r)
		return found == nil
	})
	if found == nil && isPrefix(resource) {
		for f := range s.Locks(resource, "") {
			return f
		}
	}
	return found
}

// heads calls yield with the first waiter of each resource that overlaps
// resource. Its cost follows the number of such resources, not of waiters.
func (s *State) heads(resource string, yield func(*Waiter)) {
	if s.waiters.Len() == 0 {
		return
	}
	covering(resource, func(r string) bool {
		if w := s.firstWaiter(r, 0); w != nil && w.Resource == r {
			yield(w)
		}
		return true
	})
	if !isPrefix(resource) {
		return
	}
	w := s.firstWaiter(resource, math.MaxUint64)
	for w != nil && Covers(resource, w.Resource) {
		yield(w)
		w = s.firstWaiter(w.Resource, math.MaxUint64)
	}
}

// firstWaiter returns the first waiter at or after (resource, order).
func (s *State) firstWaiter(resource string, order uint64) *Waiter {
	var found *Waiter
	s.queue.Ascend(&Waiter{Resource: resource, Order: order}, func(w *Waiter) bool {
		found = w
		return false
	})
	return found
}

func (b *Batch) refuseHeld(in obstacle) Decision {
	d := b.refuse(LockHeld)
	d.Key, d.Holder, d.RemainingMs, d.Token = in.resource, in.holder, in.remainingMs, in.token
	return d
}

// continues checks IfToken: that nobody was issued a token for the resource, or
// for one that overlaps it, since the caller's.
func (b *Batch) continues(op *Acquire, f *Fence) (Decision, bool) {
	if op.IfToken == 0 {
		return Decision{}, true
	}
	newest, under := uint64(0), uint64(0)
	if f != nil {
		newest, under = f.Issued, f.Under
	}
	above := uint64(0)
	covering(op.Resource, func(r string) bool {
		if g := b.s.Fence(r); g != nil && r != op.Resource {
			above = max(above, g.Issued)
		}
		return true
	})
	if newest == op.IfToken && under <= op.IfToken && above <= op.IfToken {
		return Decision{}, true
	}
	c := b.s.cover(op.Resource)
	d := b.refuse(StaleOwner)
	d.Token, d.MaxToken, d.EnforcedBy = op.IfToken, c.enforced, c.by
	d.Issued = max(newest, under, above)
	return d, false
}
