package fsm

// sequenced is rule 3. It returns the record to replay, or a refusal, or
// neither when the number is the next one (or there is none).
func (b *Batch) sequenced(home string, token, number uint64) (*Sequence, Decision, bool) {
	if number == 0 {
		return nil, Decision{}, true
	}
	expected := uint64(1)
	var last *Sequence
	if f := b.s.Fence(home); f != nil && f.Sequence != nil && f.Sequence.Token == token {
		last = f.Sequence
		expected = last.Number + 1
	}
	switch {
	case number == expected:
		return nil, Decision{}, true
	case last != nil && number == last.Number && last.Fingerprint == b.cmd.Request.Fingerprint:
		return last, Decision{}, false
	case last != nil && number == last.Number:
		return nil, b.refuseSequence(RequestMismatch, token, expected), false
	case number < expected:
		return nil, b.refuseSequence(SequencePassed, token, expected), false
	}
	return nil, b.refuseSequence(SequenceGap, token, expected), false
}

func (b *Batch) refuseSequence(code Code, token, expected uint64) Decision {
	d := b.refuse(code)
	d.Token, d.Expected = token, expected
	return d
}

func replaySequence(op Kind, q *Sequence) Decision {
	d := Decision{
		Outcome: OutcomeReplayed, Code: Written, Revision: q.Revision, Version: q.Version,
		Created: q.Created, Token: q.Token, MaxToken: q.Token,
	}
	if op == KindDelete {
		d.Code = Deleted
	}
	return d
}

// advance makes the applied write the newest of its token's sequence.
func (b *Batch) advance(home string, q Sequence) {
	next := *b.s.Fence(home)
	q.Fingerprint = b.cmd.Request.Fingerprint
	next.Sequence = &q
	b.setFence(&next)
}
