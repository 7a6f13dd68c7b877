package fsm

// join puts an acquire at the end of its resource's queue.
func (b *Batch) join(op *Acquire) Decision {
	ahead, _ := b.s.lengths.Get(op.Resource)
	if ahead >= MaxWaiters {
		return b.limit("waiters", MaxWaiters)
	}
	if b.s.waiters.Len() >= MaxWaitersTotal {
		return b.limit("waitersTotal", MaxWaitersTotal)
	}
	w := &Waiter{
		Resource: op.Resource, Order: b.nextRevision(), RequestID: b.id,
		Fingerprint: b.cmd.Request.Fingerprint, Holder: op.Holder, LeaseID: op.LeaseID, Node: op.Node,
		TTLMs: op.TTLMs, DeadlineMs: b.s.clockMs + op.WaitMs, Mode: op.Mode, Adopt: op.Adopt,
	}
	b.s.enqueue(w)
	return b.waiting(w, ahead)
}

// wait answers the resend of an acquire that stands in the queue: it keeps its
// place and waits as long as the resend says.
func (b *Batch) wait(op *Acquire, w *Waiter) Decision {
	if op.WaitMs == 0 {
		in, _ := b.s.blocker(op.Resource)
		b.endWait(w, Withdrawn)
		return b.refuseHeld(in)
	}
	moved := *w
	moved.DeadlineMs, moved.Node = b.s.clockMs+op.WaitMs, op.Node
	b.leave(w)
	b.s.enqueue(&moved)
	ahead := int64(0)
	for other := range b.s.Queue(w.Resource) {
		if other.Order == w.Order {
			break
		}
		ahead++
	}
	return b.waiting(&moved, ahead)
}

func (b *Batch) waiting(w *Waiter, ahead int64) Decision {
	return Decision{
		Outcome: OutcomeWaiting, Code: Waiting, Revision: w.Order, Holder: w.Holder,
		TTLMs: w.TTLMs, DeadlineMs: w.DeadlineMs, RemainingMs: w.DeadlineMs - b.s.clockMs,
		Mode: w.Mode, Ahead: ahead,
	}
}

func (s *State) enqueue(w *Waiter) {
	s.waiters.Set(recordKey(w.Resource, w.RequestID), w)
	s.queue.Set(w)
	s.deadlines.Set(deadline{atMs: w.DeadlineMs, resource: w.Resource, request: w.RequestID})
	n, _ := s.lengths.Get(w.Resource)
	s.lengths.Set(w.Resource, n+1)
}

// leave takes w out of the queue, without serving anybody.
func (b *Batch) leave(w *Waiter) {
	b.s.waiters.Delete(recordKey(w.Resource, w.RequestID))
	b.s.queue.Delete(w)
	b.s.deadlines.Delete(deadline{atMs: w.DeadlineMs, resource: w.Resource, request: w.RequestID})
	if n, _ := b.s.lengths.Get(w.Resource); n > 1 {
		b.s.lengths.Set(w.Resource, n-1)
	} else {
		b.s.lengths.Delete(w.Resource)
	}
}

// endWait takes w out of the queue for good, at the revision it returns, and
// serves those it held up.
func (b *Batch) endWait(w *Waiter, code Code) uint64 {
	b.leave(w)
	d := Decision{
		Code: code, Revision: b.nextRevision(), Holder: w.Holder,
		TTLMs: w.TTLMs, DeadlineMs: w.DeadlineMs, Mode: w.Mode,
	}
	b.lockEvent(named(d, KindAcquire, w.Resource, w.RequestID))
	b.grantNext(w.Resource)
	return d.Revision
}

func (b *Batch) withdraw(op *Withdraw) Decision {
	d := Decision{Outcome: OutcomeApplied, Code: Withdrawn, Revision: b.s.revision}
	if w := b.s.Waiter(op.Resource, b.id); w != nil {
		d.Revision = b.endWait(w, Withdrawn)
	}
	return d
}
