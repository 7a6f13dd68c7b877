package fsm

// renew moves a lease's deadline, never back: a late copy of an older renewal
// must not take away what a newer one was promised.
func (b *Batch) renew(op *Renew) Decision {
	f := b.s.Fence(op.Resource)
	if f == nil || f.Lock == nil || f.Lock.LeaseID != op.LeaseID {
		return b.refuseNotHolder(f)
	}
	lock := *f.Lock
	if b.id == lock.RenewID {
		d := b.renewed(f, lock.RenewTTLMs, lock.RenewDeadlineMs)
		d.Outcome = OutcomeReplayed
		return d
	}
	if d, full := b.full(); full {
		return d
	}
	if op.TTLMs != 0 {
		lock.TTLMs = op.TTLMs
	}
	old := lock.DeadlineMs
	lock.DeadlineMs = max(old, b.s.clockMs+lock.TTLMs)
	lock.RenewID, lock.RenewTTLMs, lock.RenewDeadlineMs = b.id, lock.TTLMs, lock.DeadlineMs
	next := *f
	next.Lock = &lock
	b.nextRevision()
	b.s.deadlines.Delete(deadline{atMs: old, resource: op.Resource})
	b.s.deadlines.Set(deadline{atMs: lock.DeadlineMs, resource: op.Resource})
	b.setFence(&next)
	return b.renewed(&next, lock.TTLMs, lock.DeadlineMs)
}

func (b *Batch) renewed(f *Fence, ttlMs, deadlineMs int64) Decision {
	return Decision{
		Outcome: OutcomeApplied, Code: Renewed, Revision: b.s.revision,
		Token: f.Lock.Token, MaxToken: f.MaxToken, Issued: f.Issued,
		Holder: f.Lock.Holder, LeaseID: f.Lock.LeaseID, TTLMs: ttlMs,
		DeadlineMs: deadlineMs, RemainingMs: deadlineMs - b.s.clockMs, Mode: f.Lock.Mode,
	}
}

// refuseNotHolder says who holds the resource now, if anybody.
func (b *Batch) refuseNotHolder(f *Fence) Decision {
	d := b.refuse(NotHolder)
	if f == nil {
		return d
	}
	d.MaxToken, d.Issued = f.MaxToken, f.Issued
	if f.Lock != nil {
		d.Holder, d.RemainingMs = f.Lock.Holder, f.Lock.DeadlineMs-b.s.clockMs
	}
	return d
}

// release compares the lease and frees in one step; a name is not enough.
func (b *Batch) release(op *Release) Decision {
	if r, refusal := b.recorded(); refusal != "" {
		return b.refuseRequest(refusal)
	} else if r != nil {
		return b.replayLock(r)
	}
	f := b.s.Fence(op.Resource)
	if f == nil || f.Lock == nil || f.Lock.LeaseID != op.LeaseID {
		return b.refuseNotHolder(f)
	}
	lock := f.Lock
	b.free(f, true)
	d := Decision{
		Outcome: OutcomeApplied, Code: Released, Revision: b.nextRevision(),
		Token: lock.Token, MaxToken: f.MaxToken, Issued: f.Issued, Holder: lock.Holder, Mode: lock.Mode,
	}
	b.recordLock(d)
	b.lockEvent(named(d, KindRelease, op.Resource, b.id))
	b.grantNext(op.Resource)
	return d
}

// replayLock repeats what was decided on a lock, with what is enforced there
// today.
func (b *Batch) replayLock(r *Record) Decision {
	d := replay(r)
	if f := b.s.Fence(r.Scope()); f != nil {
		d.MaxToken, d.Issued = f.MaxToken, f.Issued
	}
	return d
}

func (b *Batch) recordLock(d Decision) {
	b.record(Record{
		Verdict: VerdictApplied, Revision: d.Revision, Token: d.Token,
		More: &RecordMore{Holder: d.Holder, Mode: d.Mode, Count: d.Count, Remaining: d.Remaining},
	})
}
