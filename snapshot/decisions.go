package snapshot

import (
	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

func encodeRecord(e *codec.Encoder, r *fsm.Record) {
	e.String(r.Key)
	e.Byte(byte(r.Op))
	e.Byte(byte(r.Verdict))
	e.Bool(r.Created)
	e.Sum(r.Fingerprint)
	e.Uint(r.Revision)
	e.Uint(r.Version)
	e.Uint(r.Token)
	e.Int(r.AtMs)
	e.Bool(r.More != nil)
	if m := r.More; m != nil {
		e.String(m.LeaseID)
		e.String(m.Holder)
		e.Int(m.TTLMs)
		e.Int(m.DeadlineMs)
		e.Byte(byte(m.Mode))
		e.Bool(m.Continuity)
		e.String(m.Key)
		e.Uint(m.Current)
		e.Int(m.FailedOp)
		encodeNumbers(e, m.Versions)
		e.Uint(m.Count)
		e.Bool(m.Remaining)
	}
}

func decodeRecord(d *codec.Decoder) *fsm.Record {
	r := &fsm.Record{
		Key: d.String(maxText), Op: fsm.Kind(d.Byte()), Verdict: fsm.Verdict(d.Byte()), Created: d.Bool(),
		Fingerprint: d.Sum(), Revision: d.Uint(), Version: d.Uint(), Token: d.Uint(), AtMs: d.Int(),
	}
	if d.Bool() {
		r.More = &fsm.RecordMore{
			LeaseID: d.String(maxText), Holder: d.String(maxText), TTLMs: d.Int(), DeadlineMs: d.Int(),
			Mode: fsm.Mode(d.Byte()), Continuity: d.Bool(), Key: d.String(maxText), Current: d.Uint(),
			FailedOp: d.Int(), Versions: decodeNumbers(d), Count: d.Uint(), Remaining: d.Bool(),
		}
	}
	return r
}

func encodeNumbers(e *codec.Encoder, numbers []uint64) {
	e.Uint(uint64(len(numbers)))
	for _, n := range numbers {
		e.Uint(n)
	}
}

func decodeNumbers(d *codec.Decoder) []uint64 {
	var numbers []uint64
	for range d.Count(fsm.MaxTxnOps) {
		numbers = append(numbers, d.Uint())
	}
	return numbers
}

func encodeEvent(e *codec.Encoder, event *fsm.Event) {
	e.Uint(event.Seq)
	e.Uint(event.Index)
	d := event.Decision
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
	encodeNumbers(e, d.Versions)
	e.Int(d.FailedOp)
	e.Uint(d.Token)
	e.Uint(d.MaxToken)
	e.Uint(d.Issued)
	encodeEnforcement(e, d.EnforcedBy)
	e.Bool(d.Applied != nil)
	if a := d.Applied; a != nil {
		e.Uint(a.Revision)
		e.Uint(a.Version)
		e.Uint(a.Token)
	}
	encodeLockFacts(e, d)
}

func encodeLockFacts(e *codec.Encoder, d *fsm.Decision) {
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

func decodeEvent(d *codec.Decoder) *fsm.Event {
	event := &fsm.Event{Seq: d.Uint(), Index: d.Uint()}
	decision := &fsm.Decision{
		Op: fsm.Kind(d.Byte()), Outcome: fsm.Outcome(d.Byte()), Code: fsm.Code(d.String(maxText)),
		Resource: d.String(maxText), Key: d.String(maxText), RequestID: d.String(maxText), Fingerprint: d.Sum(),
		Revision: d.Uint(), ClockMs: d.Int(), WallMs: d.Int(), Version: d.Uint(), Created: d.Bool(),
		Versions: decodeNumbers(d), FailedOp: d.Int(), Token: d.Uint(), MaxToken: d.Uint(), Issued: d.Uint(),
		EnforcedBy: decodeEnforcement(d),
	}
	if d.Bool() {
		decision.Applied = &fsm.Applied{Revision: d.Uint(), Version: d.Uint(), Token: d.Uint()}
	}
	decision.Holder, decision.LeaseID = d.String(maxText), d.String(maxText)
	decision.TTLMs, decision.DeadlineMs, decision.RemainingMs = d.Int(), d.Int(), d.Int()
	decision.Mode, decision.Continuity, decision.Ahead = fsm.Mode(d.Byte()), d.Bool(), d.Int()
	decision.Current, decision.Expected, decision.Horizon = d.Uint(), d.Uint(), d.Uint()
	decision.Limit, decision.Bound = d.String(maxText), d.Int()
	decision.Count, decision.Remaining = d.Uint(), d.Bool()
	event.Decision = decision
	return event
}
