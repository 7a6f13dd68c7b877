package fsm

// recorded is rule 2: what the store remembers of the command's request ID. It
// returns the record to answer from, or the refusal, or neither for a request
// that is new or, as only an acquire can be, waiting.
func (b *Batch) recorded() (*Record, Code) {
	q := &b.cmd.Request
	if b.id == "" {
		return nil, ""
	}
	r := b.s.records.get(b.key)
	w, _ := b.s.waiters.Get(b.key)
	switch {
	case w != nil && w.Fingerprint != q.Fingerprint:
		return nil, RequestMismatch
	case w != nil:
		return nil, ""
	case r == nil && q.HasBase && q.Base < b.s.horizon:
		return nil, RequestExpired
	case r == nil:
		return nil, ""
	case r.Verdict == VerdictSealed:
		return nil, RequestSealed
	case r.Fingerprint != q.Fingerprint:
		return nil, RequestMismatch
	}
	return r, ""
}

func (b *Batch) refuseRequest(code Code) Decision {
	d := b.refuse(code)
	if code == RequestExpired {
		d.Horizon = b.s.horizon
	}
	return d
}

// record stores the verdict on the command's request, which takes effect at
// most once from then on. The revision must be new.
func (b *Batch) record(r Record) {
	if b.id == "" {
		return
	}
	r.Key = b.key
	r.Op = b.cmd.Op.Kind()
	r.Fingerprint = b.cmd.Request.Fingerprint
	b.put(&r)
}

func (b *Batch) put(r *Record) {
	r.AtMs = b.s.clockMs
	b.s.records.set(r)
	b.s.byAge.Set(r.Revision, r)
}

// recordRefusal makes the verdict on a failed precondition final: one ID, one
// outcome. A late copy must not succeed where its caller was told it failed.
func (b *Batch) recordRefusal(d Decision) Decision {
	if b.id == "" {
		return d
	}
	verdict := VerdictRevisionMismatch
	if d.Code == KeyNotFound {
		verdict = VerdictKeyNotFound
	}
	d.Revision = b.nextRevision()
	b.record(Record{
		Verdict: verdict, Revision: d.Revision,
		More: &RecordMore{Key: d.Key, Current: d.Current, FailedOp: d.FailedOp},
	})
	return d
}

// replay answers from a record as the first time. What is enforced today is for
// the caller to add.
func replay(r *Record) Decision {
	d := Decision{
		Outcome: OutcomeReplayed, Code: codeOf(r), Revision: r.Revision, Version: r.Version,
		Created: r.Created, Token: r.Token,
	}
	if m := r.More; m != nil {
		d.LeaseID, d.Holder, d.TTLMs, d.DeadlineMs = m.LeaseID, m.Holder, m.TTLMs, m.DeadlineMs
		d.Mode, d.Continuity = m.Mode, m.Continuity
		d.Key, d.Current, d.FailedOp, d.Versions = m.Key, m.Current, m.FailedOp, m.Versions
		d.Count, d.Remaining = m.Count, m.Remaining
	}
	if r.Verdict == VerdictRevisionMismatch || r.Verdict == VerdictKeyNotFound {
		d.Outcome = OutcomeRefused
	}
	return d
}

// Fate returns the recorded decision on a request as an answer to whoever asks
// for it; the lease ID stays with the caller that got it.
func (r *Record) Fate() Decision {
	d := replay(r)
	d.Op, d.Resource, d.RequestID, d.Fingerprint = r.Op, r.Scope(), r.RequestID(), r.Fingerprint
	d.ClockMs, d.LeaseID = r.AtMs, ""
	return d
}

func codeOf(r *Record) Code {
	switch r.Verdict {
	case VerdictRevisionMismatch:
		return RevisionMismatch
	case VerdictKeyNotFound:
		return KeyNotFound
	case VerdictSealed:
		return Sealed
	}
	switch r.Op {
	case KindDelete:
		return Deleted
	case KindTxn:
		return Committed
	case KindAcquire:
		return Granted
	case KindRelease:
		return Released
	case KindRevoke:
		return Revoked
	case KindRequire:
		return Required
	case KindPurge:
		return Purged
	}
	return Written
}

// seal records that the request shall never apply, or tells that it has.
func (b *Batch) seal(op *Seal) Decision {
	q := &b.cmd.Request
	if r := b.s.records.get(b.key); r != nil {
		d := replay(r)
		d.Outcome, d.LeaseID = OutcomeReplayed, ""
		return d
	}
	if w := b.s.Waiter(op.Scope, b.id); w != nil {
		b.endWait(w, Withdrawn)
	}
	if q.HasBase && q.Base < b.s.horizon {
		return b.refuseRequest(RequestExpired)
	}
	if d, full := b.full(); full {
		return d
	}
	d := Decision{Outcome: OutcomeApplied, Code: Sealed, Revision: b.nextRevision()}
	b.record(Record{Verdict: VerdictSealed, Revision: d.Revision})
	b.lockEvent(named(d, KindSeal, op.Scope, q.ID))
	return d
}

// named returns d with what an event says of whom it is about.
func named(d Decision, op Kind, resource, requestID string) Decision {
	d.Op, d.Resource, d.RequestID = op, resource, requestID
	return d
}
