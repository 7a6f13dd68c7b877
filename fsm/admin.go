package fsm

import "slices"

// revoke shuts out whoever held the resource until now, at once.
func (b *Batch) revoke(op *Revoke) Decision {
	if r, refusal := b.recorded(); refusal != "" {
		return b.refuseRequest(refusal)
	} else if r != nil {
		return b.replayLock(r)
	}
	f := b.s.Fence(op.Resource)
	if f == nil || f.Issued == 0 && !f.External {
		return b.refuse(LockNotFound)
	}
	if _, full := b.full(); full || f.MaxToken >= MaxNumber {
		return b.limit("number", MaxNumber)
	}
	lock := f.Lock
	if lock != nil {
		f = b.free(f, true)
	}
	past := max(f.MaxToken, f.Issued+1)
	if f.External {
		past = f.MaxToken + 1
	}
	revision := b.nextRevision()
	d := Decision{Outcome: OutcomeApplied, Code: Revoked, Revision: revision, MaxToken: past, Issued: f.Issued}
	if lock != nil {
		d.Token, d.Holder, d.Mode = lock.Token, lock.Holder, lock.Mode
	}
	b.raiseFence(op.Resource, b.enforcement(past, d.Holder, CauseRevoke, revision), f.External)
	b.recordLock(d)
	b.lockEvent(named(d, KindRevoke, op.Resource, b.id))
	if lock != nil {
		b.grantNext(op.Resource)
	}
	return d
}

// require makes a resource refuse token-less writes before its first lock.
func (b *Batch) require(op *Require) Decision {
	if r, refusal := b.recorded(); refusal != "" {
		return b.refuseRequest(refusal)
	} else if r != nil {
		return b.replayLock(r)
	}
	if d, full := b.full(); full {
		return d
	}
	next := b.fence(op.Resource)
	next.Required = true
	b.setFence(&next)
	d := Decision{
		Outcome: OutcomeApplied, Code: Required, Revision: b.nextRevision(),
		MaxToken: next.MaxToken, Issued: next.Issued,
	}
	b.recordLock(d)
	b.lockEvent(named(d, KindRequire, op.Resource, b.id))
	return d
}

// purge gives back the memory of deleted, unlocked keys under a prefix. Their
// tokens stay dead: the highest floor among them stays on the prefix.
func (b *Batch) purge(op *Purge) Decision {
	if r, refusal := b.recorded(); refusal != "" {
		return b.refuseRequest(refusal)
	} else if r != nil {
		d := replay(r)
		d.MaxToken = b.s.absent(op.Prefix)
		return d
	}
	if d, full := b.full(); full {
		return d
	}
	keys, more := b.s.purgeable(op.Prefix)
	floor := uint64(0)
	for _, key := range keys {
		floor = max(floor, b.s.Fence(key).leaves())
		b.s.fences.Delete(key)
		b.s.entries.Delete(key)
	}
	revision := b.nextRevision()
	if floor > 0 {
		b.setAbsent(op.Prefix, floor, revision)
	}
	d := Decision{
		Outcome: OutcomeApplied, Code: Purged, Revision: revision,
		MaxToken: b.s.absent(op.Prefix), Count: uint64(len(keys)), Remaining: more,
	}
	b.recordLock(d)
	b.lockEvent(named(d, KindPurge, op.Prefix, b.id))
	return d
}

// absent returns the floor that purges left on the prefix, or 0.
func (s *State) absent(prefix string) uint64 {
	if a, ok := s.absents.Get(prefix); ok {
		return a.Floor
	}
	return 0
}

func (b *Batch) setAbsent(prefix string, floor, revision uint64) {
	if b.s.absent(prefix) >= floor {
		return
	}
	e := b.enforcement(floor, "", CausePurge, revision)
	e.Resource = prefix
	b.s.absents.Set(prefix, &Absent{Prefix: prefix, Floor: floor, Set: &e})
}

// leaves returns the floor below which every token of the fence must stay
// stale once the fence is gone.
func (f *Fence) leaves() uint64 {
	if f == nil {
		return 0
	}
	if f.Issued > 0 {
		return max(f.MaxToken, f.Issued+1)
	}
	return f.MaxToken
}

// purgeable returns the first MaxPurge keys under prefix that may be dropped, in
// order, and whether there are more. No floor may rise above the token of a
// lock held under the prefix, whose holder writes keys without fences too.
func (s *State) purgeable(prefix string) (keys []string, more bool) {
	lowest := uint64(MaxNumber)
	for f := range s.Locks(prefix, "") {
		lowest = min(lowest, f.Lock.Token)
	}
	for f := range s.Fences(prefix, "") {
		if len(keys) > MaxPurge {
			break
		}
		_, waited := s.lengths.Get(f.Resource)
		if isPrefix(f.Resource) || f.External || f.Lock != nil || waited ||
			s.current(f.Resource) != 0 || f.leaves() > lowest {
			continue
		}
		keys = append(keys, f.Resource)
	}
	tombstones := 0
	for e := range s.Entries(prefix, "") {
		if tombstones > MaxPurge {
			break
		}
		_, waited := s.lengths.Get(e.Key)
		if e.Now.Deleted && s.Fence(e.Key) == nil && !waited {
			keys = append(keys, e.Key)
			tombstones++
		}
	}
	slices.Sort(keys)
	if len(keys) > MaxPurge {
		return keys[:MaxPurge], true
	}
	return keys, false
}
