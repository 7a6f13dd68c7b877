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
		fsm.EncodeNumbers(e, m.Versions)
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
			FailedOp: d.Int(), Versions: fsm.DecodeNumbers(d), Count: d.Uint(), Remaining: d.Bool(),
		}
	}
	return r
}

func encodeEvent(e *codec.Encoder, event *fsm.Event) {
	e.Uint(event.Seq)
	e.Uint(event.Index)
	fsm.EncodeDecision(e, event.Decision)
}

func decodeEvent(d *codec.Decoder) *fsm.Event {
	return &fsm.Event{Seq: d.Uint(), Index: d.Uint(), Decision: fsm.DecodeDecision(d)}
}
