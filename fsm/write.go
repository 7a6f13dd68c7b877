package fsm

// write applies a put or delete: the five rules in order, then everything at
// once.
func (b *Batch) write(op Op) Decision {
	key, cond := target(op)
	token, number := presented(op)
	c := b.s.cover(key)
	home, refusal := c.judge(key, token, b.s.settings.ExternalTokens)
	if refusal != "" {
		return b.refuseToken(refusal, &c, token, key)
	}
	if r, refusal := b.recorded(); refusal != "" {
		return b.refuseRequest(refusal)
	} else if r != nil {
		return b.replayWrite(r, []raising{b.s.raising(token, home, key)})
	}
	if last, d, next := b.sequenced(home, token, number); last != nil {
		return replaySequence(op.Kind(), last)
	} else if !next {
		return d
	}
	if d, ok := b.expected(op, cond); !ok {
		return b.recordRefusal(d)
	}
	if d, ok := b.within(op); !ok {
		return d
	}
	raise := b.s.raising(token, home, key)
	raise.revision = b.nextRevision()
	d := b.store(op, raise)
	b.raise(raise)
	b.record(Record{Verdict: VerdictApplied, Created: d.Created, Revision: d.Revision, Version: d.Version, Token: token})
	if number != 0 {
		b.advance(home, Sequence{
			Token: token, Number: number, Key: key,
			Revision: d.Revision, Version: d.Version, Created: d.Created,
		})
	}
	return d
}

// replayWrite answers a resend. A newer token that came with it is enforced
// from now on: its holder has finished the old holder's request. A recorded
// refusal changes nothing, not even that.
func (b *Batch) replayWrite(r *Record, raises []raising) Decision {
	d := replay(r)
	if d.Outcome == OutcomeRefused {
		return d
	}
	revision := uint64(0)
	for _, one := range raises {
		if !b.s.rises(one) {
			continue
		}
		if revision == 0 {
			revision = b.nextRevision()
		}
		one.revision = revision
		b.raise(one)
	}
	for _, one := range raises {
		d.MaxToken = max(d.MaxToken, one.token)
	}
	return d
}

// expected is rule 4 for one key.
func (b *Batch) expected(op Op, cond Condition) (Decision, bool) {
	key, _ := target(op)
	if op.Kind() == KindPut && cond == (Condition{}) {
		return Decision{}, true
	}
	current := b.s.current(key)
	switch {
	case cond.Absent && current != 0,
		cond.Exists && current == 0,
		cond.Revision != 0 && cond.Revision != current:
		d := b.refuse(RevisionMismatch)
		d.Key, d.Current = key, current
		return d, false
	case op.Kind() == KindDelete && current == 0:
		d := b.refuse(KeyNotFound)
		d.Key = key
		return d, false
	}
	return Decision{}, true
}

// current returns the revision of a live key, or 0.
func (s *State) current(key string) uint64 {
	if e := s.Entry(key); e != nil && !e.Now.Deleted {
		return e.Now.Revision
	}
	return 0
}

// within is rule 5.
func (b *Batch) within(op Op) (Decision, bool) {
	if put, ok := op.(*Put); ok && int64(len(put.Value)) > b.s.settings.MaxValue {
		return b.limit("value", b.s.settings.MaxValue), false
	}
	d, full := b.full()
	return d, !full
}

// store changes the key and returns the decision on a single write of it.
func (b *Batch) store(op Op, by raising) Decision {
	key, _ := target(op)
	old := b.s.Entry(key)
	v := &Value{
		Version: 1, Revision: by.revision, Token: by.token, Holder: by.holder,
		RequestID: b.id, Author: b.cmd.Request.Author, Reason: b.cmd.Request.Reason,
		WallMs: b.cmd.Stamp.WallMs,
	}
	if old != nil {
		v.Version = old.Now.Version + 1
	}
	d := Decision{Outcome: OutcomeApplied, Code: Deleted, Revision: by.revision, Version: v.Version, Token: by.token, MaxToken: by.token}
	existed := old != nil && !old.Now.Deleted
	if put, ok := op.(*Put); ok {
		v.Data, v.ContentType = put.Value, put.ContentType
		d.Code, d.Created = Written, !existed
		if !existed {
			b.s.live++
		}
	} else {
		v.Deleted = true
		b.s.live--
	}
	b.s.entries.Set(key, old.successor(key, v, b.s.settings.History))
	return d
}
