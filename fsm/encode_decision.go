package fsm

import "github.com/fencekv/fencekv/fsm/codec"

// EncodeDecision appends the fields of d. Evidence in a snapshot and answers
// between nodes are written so.
func EncodeDecision(e *codec.Encoder, d *Decision) {
	e.Byte(byte(d.Op))
	e.Byte(byte(d.Outcome))
	e.String(string(d.Code))
	e.String(d.Resource)
	e.String(d.Key)
	e.String(d.RequestID)
	e.Sum(d.Fingerprint)
	e.Uint(d.Revision)
	e.Int(d.ClockMs)
	e.Int(d.WallMs)
	e.Uint(d.Version)
	e.Bool(d.Created)
	EncodeNumbers(e, d.Versions)
	e.Int(d.FailedOp)
	e.Uint(d.Token)
	e.Uint(d.MaxToken)
	e.Uint(d.Issued)
	EncodeEnforcement(e, d.EnforcedBy)
	e.Bool(d.Applied != nil)
	if a := d.Applied; a != nil {
		e.Uint(a.Revision)
		e.Uint(a.Version)
		e.Uint(a.Token)
	}
	e.String(d.Holder)
	e.String(d.LeaseID)
	e.Int(d.TTLMs)
	e.Int(d.DeadlineMs)
	e.Int(d.RemainingMs)
	e.Byte(byte(d.Mode))
	e.Bool(d.Continuity)
	e.Int(d.Ahead)
	e.Uint(d.Current)
	e.Uint(d.Expected)
	e.Uint(d.Horizon)
	e.String(d.Limit)
	e.Int(d.Bound)
	e.Uint(d.Count)
	e.Bool(d.Remaining)
}

// DecodeDecision reads what EncodeDecision wrote.
func DecodeDecision(d *codec.Decoder) *Decision {
	decision := &Decision{
		Op: Kind(d.Byte()), Outcome: Outcome(d.Byte()), Code: Code(d.String(maxText)),
		Resource: d.String(maxText), Key: d.String(maxText), RequestID: d.String(maxText), Fingerprint: d.Sum(),
		Revision: d.Uint(), ClockMs: d.Int(), WallMs: d.Int(), Version: d.Uint(), Created: d.Bool(),
		Versions: DecodeNumbers(d), FailedOp: d.Int(), Token: d.Uint(), MaxToken: d.Uint(), Issued: d.Uint(),
		EnforcedBy: DecodeEnforcement(d),
	}
	if d.Bool() {
		decision.Applied = &Applied{Revision: d.Uint(), Version: d.Uint(), Token: d.Uint()}
	}
	decision.Holder, decision.LeaseID = d.String(maxText), d.String(maxText)
	decision.TTLMs, decision.DeadlineMs, decision.RemainingMs = d.Int(), d.Int(), d.Int()
	decision.Mode, decision.Continuity, decision.Ahead = Mode(d.Byte()), d.Bool(), d.Int()
	decision.Current, decision.Expected, decision.Horizon = d.Uint(), d.Uint(), d.Uint()
	decision.Limit, decision.Bound = d.String(maxText), d.Int()
	decision.Count, decision.Remaining = d.Uint(), d.Bool()
	return decision
}

// EncodeEnforcement appends the fields of by, which may be nil.
func EncodeEnforcement(e *codec.Encoder, by *Enforcement) {
	e.Bool(by != nil)
	if by == nil {
		return
	}
	e.String(by.Resource)
	e.Uint(by.Token)
	e.String(by.Holder)
	e.String(by.RequestID)
	e.Uint(by.Revision)
	e.Int(by.ClockMs)
	e.Int(by.WallMs)
	e.Byte(byte(by.Cause))
}

// DecodeEnforcement reads what EncodeEnforcement wrote.
func DecodeEnforcement(d *codec.Decoder) *Enforcement {
	if !d.Bool() {
		return nil
	}
	return &Enforcement{
		Resource: d.String(maxText), Token: d.Uint(), Holder: d.String(maxText), RequestID: d.String(maxText),
		Revision: d.Uint(), ClockMs: d.Int(), WallMs: d.Int(), Cause: Cause(d.Byte()),
	}
}

// EncodeNumbers appends versions of a transaction's keys.
func EncodeNumbers(e *codec.Encoder, numbers []uint64) {
	e.Uint(uint64(len(numbers)))
	for _, n := range numbers {
		e.Uint(n)
	}
}

// DecodeNumbers reads what EncodeNumbers wrote.
func DecodeNumbers(d *codec.Decoder) []uint64 {
	var numbers []uint64
	for range d.Count(MaxTxnOps) {
		numbers = append(numbers, d.Uint())
	}
	return numbers
}
