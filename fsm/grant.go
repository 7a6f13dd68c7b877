package fsm

import "slices"

// grant gives w the lock with the next token, from this moment on the cluster
// clock, whether w asks now or waited.
func (b *Batch) grant(w *Waiter, continuity bool) Decision {
	next := b.fence(w.Resource)
	token := b.s.token + 1
	if next.External {
		token = max(b.s.token, next.MaxToken) + 1
		next.External = false
		next.Issues = []Issue{{Token: next.MaxToken, Holder: holderOf(next.Enforced)}}
	}
	b.s.token = token
	revision := b.nextRevision()
	next.Issued = token
	next.Issues = append(slices.Clip(next.Issues), Issue{Token: token, Holder: w.Holder})
	b.enforceGrant(&next, w, revision)
	next.Lock = &Lock{
		Holder: w.Holder, LeaseID: w.LeaseID, RequestID: w.RequestID, Token: token, Mode: w.Mode,
		TTLMs: w.TTLMs, DeadlineMs: b.s.clockMs + w.TTLMs, GrantedMs: b.s.clockMs, WallMs: b.cmd.Stamp.WallMs,
	}
	b.setFence(&next)
	b.s.deadlines.Set(deadline{atMs: next.Lock.DeadlineMs, resource: w.Resource})
	b.noteUnder(w.Resource, token)
	b.put(&Record{
		Key: recordKey(w.Resource, w.RequestID), Op: KindAcquire, Verdict: VerdictApplied,
		Fingerprint: w.Fingerprint, Revision: revision, Token: token,
		More: &RecordMore{
			LeaseID: w.LeaseID, Holder: w.Holder, TTLMs: w.TTLMs, DeadlineMs: next.Lock.DeadlineMs,
			Mode: w.Mode, Continuity: continuity,
		},
	})
	d := Decision{
		Outcome: OutcomeApplied, Code: Granted, Revision: revision,
		Token: token, MaxToken: next.MaxToken, Issued: token,
		Holder: w.Holder, LeaseID: w.LeaseID, TTLMs: w.TTLMs, DeadlineMs: next.Lock.DeadlineMs,
		RemainingMs: w.TTLMs, Mode: w.Mode, Continuity: continuity,
	}
	b.lockEvent(named(d, KindAcquire, w.Resource, w.RequestID))
	return d
}

func holderOf(e *Enforcement) string {
	if e == nil {
		return ""
	}
	return e.Holder
}

// enforceGrant raises maxToken to the new token in mode issue, and in mode write
// to the oldest issue kept when there would be more than MaxIssues.
func (b *Batch) enforceGrant(f *Fence, w *Waiter, revision uint64) {
	newest := f.Issues[len(f.Issues)-1]
	e := b.enforcement(newest.Token, newest.Holder, CauseIssue, revision)
	if w.Mode == ModeWrite {
		if len(f.Issues) <= MaxIssues {
			return
		}
		oldest := f.Issues[len(f.Issues)-MaxIssues]
		e = b.enforcement(oldest.Token, oldest.Holder, CauseDisplace, revision)
	}
	e.Resource, e.RequestID = f.Resource, w.RequestID
	f.enforce(&e)
}

// noteUnder tells the prefixes that cover resource of a newer token under them.
func (b *Batch) noteUnder(resource string, token uint64) {
	covering(resource, func(r string) bool {
		if f := b.s.Fence(r); f != nil && r != resource {
			next := *f
			next.Under = token
			b.setFence(&next)
		}
		return true
	})
}

// free takes the lock off the resource. The token stays valid unless retired:
// a lapsed holder is only slow until a newer token is enforced.
func (b *Batch) free(f *Fence, retire bool) *Fence {
	next := *f
	next.Lock = nil
	if retire {
		next.Issues = slices.Clone(f.Issues)
		for i := range next.Issues {
			if next.Issues[i].Token == f.Lock.Token {
				next.Issues[i].Retired = true
			}
		}
	}
	b.s.deadlines.Delete(deadline{atMs: f.Lock.DeadlineMs, resource: f.Resource})
	b.s.held.Delete(f.Resource)
	b.s.fences.Set(f.Resource, &next)
	return &next
}

func (b *Batch) expireLease(resource string) {
	f := b.s.Fence(resource)
	lock := f.Lock
	b.free(f, false)
	d := Decision{
		Code: Expired, Revision: b.nextRevision(), Token: lock.Token, MaxToken: f.MaxToken,
		Issued: f.Issued, Holder: lock.Holder, TTLMs: lock.TTLMs, DeadlineMs: lock.DeadlineMs, Mode: lock.Mode,
	}
	b.lockEvent(named(d, KindAcquire, resource, lock.RequestID))
	b.grantNext(resource)
}

// grantNext serves the queues that resource held up, in order of joining.
func (b *Batch) grantNext(resource string) {
	var heads []*Waiter
	b.s.heads(resource, func(w *Waiter) { heads = append(heads, w) })
	slices.SortFunc(heads, func(x, y *Waiter) int {
		if x.Order < y.Order {
			return -1
		}
		return 1
	})
	var blocked []string
	for _, w := range heads {
		waits := slices.ContainsFunc(blocked, func(r string) bool { return overlap(r, w.Resource) })
		_, full := b.full()
		if waits || full || b.s.heldOver(w.Resource) != nil {
			blocked = append(blocked, w.Resource)
			continue
		}
		b.leave(w)
		b.grant(w, false)
	}
}

// Granted returns the final decision on an acquire that waited and waits no
// more: its grant, if it got one that lives, else lock_held.
func (s *State) Granted(resource, requestID string) Decision {
	b := &Batch{s: s, cmd: &Command{}}
	d := b.refuse(LockHeld)
	if r := s.Record(resource, requestID); r != nil {
		d = b.replayGrant(&Acquire{Resource: resource}, r)
		if d.Outcome == OutcomeReplayed {
			d.Outcome = OutcomeApplied
		}
		d.Fingerprint, d.WallMs = r.Fingerprint, s.Fence(resource).grantedWallMs()
	} else if in, blocked := s.blocker(resource); blocked {
		d = b.refuseHeld(in)
	}
	d = named(d, KindAcquire, resource, requestID)
	d.ClockMs = s.clockMs
	return d
}

func (f *Fence) grantedWallMs() int64 {
	if f == nil || f.Lock == nil {
		return 0
	}
	return f.Lock.WallMs
}
