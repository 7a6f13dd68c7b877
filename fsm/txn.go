package fsm

// txn applies a transaction: every rule on every key before anything changes.
func (b *Batch) txn(op *Txn) Decision {
	raises, refusal, ok := b.judgeTxn(op)
	if !ok {
		return refusal
	}
	if r, refusal := b.recorded(); refusal != "" {
		return b.refuseRequest(refusal)
	} else if r != nil {
		return b.replayWrite(r, raises)
	}
	for i, one := range op.Ops {
		_, cond := target(one)
		if d, ok := b.expected(one, cond); !ok {
			d.FailedOp = int64(i)
			return b.recordRefusal(d)
		}
	}
	for i, one := range op.Ops {
		if d, ok := b.within(one); !ok {
			d.FailedOp = int64(i)
			return d
		}
	}
	revision := b.nextRevision()
	d := Decision{Outcome: OutcomeApplied, Code: Committed, Revision: revision}
	for i, one := range op.Ops {
		if one.Kind() == KindCheck {
			d.Versions = append(d.Versions, 0)
			continue
		}
		r := raises[i]
		r.revision = revision
		d.Versions = append(d.Versions, b.store(one, r).Version)
		b.raise(r)
		d.Token = max(d.Token, r.token)
	}
	d.MaxToken = d.Token
	b.record(Record{
		Verdict: VerdictApplied, Revision: revision, Token: d.Token,
		More: &RecordMore{Versions: d.Versions},
	})
	return d
}

// judgeTxn finds for each operation the token it passes rule 1 with; a check
// and a key that was never fenced need none.
func (b *Batch) judgeTxn(op *Txn) ([]raising, Decision, bool) {
	raises := make([]raising, len(op.Ops))
	for i, one := range op.Ops {
		key, _ := target(one)
		if one.Kind() == KindCheck {
			continue
		}
		c := b.s.cover(key)
		if !c.fenced() {
			continue
		}
		highest, refusal := uint64(0), TokenRequired
		for _, token := range op.Tokens {
			home, code := c.judge(key, token, false)
			if code == "" {
				raises[i] = b.s.raising(token, home, key)
				refusal = ""
				break
			}
			if token > highest {
				highest, refusal = token, code
			}
		}
		if refusal != "" {
			d := b.refuseToken(refusal, &c, highest, op.Resource)
			d.Key, d.FailedOp = key, int64(i)
			return nil, d, false
		}
	}
	return raises, Decision{}, true
}
