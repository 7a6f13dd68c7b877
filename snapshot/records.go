package snapshot

import (
	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

// The fields of each kind of record, in order; TestEveryField fails when a
// struct gains one that is not here. An optional part is a boolean and, if
// true, the part.

func encodeHeader(e *codec.Encoder, h fsm.Header) {
	e.Uint(h.Index)
	e.Int(h.ClockMs)
	e.Uint(h.Revision)
	e.Uint(h.Token)
	e.Uint(h.Floor)
	fsm.EncodeEnforcement(e, h.FloorSet)
	e.Uint(h.Epoch)
	e.Uint(h.Horizon)
	e.String(h.ClusterID)
	e.Uint(h.EventSeq)
	fsm.EncodeSettings(e, h.Settings)
}

func decodeHeader(d *codec.Decoder) fsm.Header {
	return fsm.Header{
		Index: d.Uint(), ClockMs: d.Int(), Revision: d.Uint(), Token: d.Uint(),
		Floor: d.Uint(), FloorSet: fsm.DecodeEnforcement(d), Epoch: d.Uint(), Horizon: d.Uint(),
		ClusterID: d.String(maxText), EventSeq: d.Uint(), Settings: fsm.DecodeSettings(d),
	}
}

func encodeEntry(e *codec.Encoder, entry *fsm.Entry) {
	e.String(entry.Key)
	e.Uint(entry.CreateRevision)
	encodeValue(e, entry.Now)
	e.Uint(uint64(len(entry.Earlier)))
	for _, v := range entry.Earlier {
		encodeValue(e, v)
	}
}

func decodeEntry(d *codec.Decoder, in *interner) *fsm.Entry {
	entry := &fsm.Entry{Key: d.String(maxText), CreateRevision: d.Uint(), Now: decodeValue(d, in)}
	if n := d.Count(maxText); n > 0 {
		entry.Earlier = make([]*fsm.Value, 0, n)
		for range n {
			entry.Earlier = append(entry.Earlier, decodeValue(d, in))
		}
	}
	return entry
}

func encodeValue(e *codec.Encoder, v *fsm.Value) {
	e.Blob(v.Data)
	e.String(v.ContentType)
	e.Bool(v.Deleted)
	e.Uint(v.Version)
	e.Uint(v.Revision)
	e.Uint(v.Token)
	e.String(v.RequestID)
	e.String(v.Holder)
	e.String(v.Author)
	e.String(v.Reason)
	e.Int(v.WallMs)
}

func decodeValue(d *codec.Decoder, in *interner) *fsm.Value {
	return &fsm.Value{
		Data: d.Blob(maxRecord), ContentType: in.text(d.String(maxText)), Deleted: d.Bool(),
		Version: d.Uint(), Revision: d.Uint(), Token: d.Uint(), RequestID: d.String(maxText),
		Holder: in.text(d.String(maxText)), Author: in.text(d.String(maxText)), Reason: d.String(maxText), WallMs: d.Int(),
	}
}

func encodeFence(e *codec.Encoder, f *fsm.Fence) {
	e.String(f.Resource)
	e.Uint(f.MaxToken)
	e.Uint(f.Issued)
	e.Bool(f.External)
	e.Bool(f.Required)
	e.Uint(f.Under)
	fsm.EncodeEnforcement(e, f.Enforced)
	e.Uint(uint64(len(f.Issues)))
	for _, issue := range f.Issues {
		e.Uint(issue.Token)
		e.String(issue.Holder)
		e.Bool(issue.Retired)
	}
	encodeSequence(e, f.Sequence)
	encodeLock(e, f.Lock)
}

func decodeFence(d *codec.Decoder) *fsm.Fence {
	f := &fsm.Fence{
		Resource: d.String(maxText), MaxToken: d.Uint(), Issued: d.Uint(), External: d.Bool(),
		Required: d.Bool(), Under: d.Uint(), Enforced: fsm.DecodeEnforcement(d),
	}
	for range d.Count(fsm.MaxIssues) {
		f.Issues = append(f.Issues, fsm.Issue{Token: d.Uint(), Holder: d.String(maxText), Retired: d.Bool()})
	}
	f.Sequence, f.Lock = decodeSequence(d), decodeLock(d)
	return f
}

func encodeSequence(e *codec.Encoder, q *fsm.Sequence) {
	e.Bool(q != nil)
	if q == nil {
		return
	}
	e.Uint(q.Token)
	e.Uint(q.Number)
	e.Sum(q.Fingerprint)
	e.String(q.Key)
	e.Uint(q.Revision)
	e.Uint(q.Version)
	e.Bool(q.Created)
}

func decodeSequence(d *codec.Decoder) *fsm.Sequence {
	if !d.Bool() {
		return nil
	}
	return &fsm.Sequence{
		Token: d.Uint(), Number: d.Uint(), Fingerprint: d.Sum(), Key: d.String(maxText),
		Revision: d.Uint(), Version: d.Uint(), Created: d.Bool(),
	}
}

func encodeLock(e *codec.Encoder, l *fsm.Lock) {
	e.Bool(l != nil)
	if l == nil {
		return
	}
	e.String(l.Holder)
	e.String(l.LeaseID)
	e.String(l.RequestID)
	e.Uint(l.Token)
	e.Byte(byte(l.Mode))
	e.Int(l.TTLMs)
	e.Int(l.DeadlineMs)
	e.Int(l.GrantedMs)
	e.Int(l.WallMs)
	e.String(l.RenewID)
	e.Int(l.RenewTTLMs)
	e.Int(l.RenewDeadlineMs)
}

func decodeLock(d *codec.Decoder) *fsm.Lock {
	if !d.Bool() {
		return nil
	}
	return &fsm.Lock{
		Holder: d.String(maxText), LeaseID: d.String(maxText), RequestID: d.String(maxText),
		Token: d.Uint(), Mode: fsm.Mode(d.Byte()), TTLMs: d.Int(), DeadlineMs: d.Int(), GrantedMs: d.Int(), WallMs: d.Int(),
		RenewID: d.String(maxText), RenewTTLMs: d.Int(), RenewDeadlineMs: d.Int(),
	}
}

func encodeAbsent(e *codec.Encoder, a *fsm.Absent) {
	e.String(a.Prefix)
	e.Uint(a.Floor)
	fsm.EncodeEnforcement(e, a.Set)
}

func decodeAbsent(d *codec.Decoder) *fsm.Absent {
	return &fsm.Absent{Prefix: d.String(maxText), Floor: d.Uint(), Set: fsm.DecodeEnforcement(d)}
}

func encodeWaiter(e *codec.Encoder, w *fsm.Waiter) {
	e.String(w.Resource)
	e.Uint(w.Order)
	e.String(w.RequestID)
	e.Sum(w.Fingerprint)
	e.String(w.Holder)
	e.String(w.LeaseID)
	e.Int(w.TTLMs)
	e.Int(w.DeadlineMs)
	e.Byte(byte(w.Mode))
	e.Bool(w.Adopt)
	e.String(w.Node)
}

func decodeWaiter(d *codec.Decoder) *fsm.Waiter {
	return &fsm.Waiter{
		Resource: d.String(maxText), Order: d.Uint(), RequestID: d.String(maxText), Fingerprint: d.Sum(),
		Holder: d.String(maxText), LeaseID: d.String(maxText), TTLMs: d.Int(), DeadlineMs: d.Int(),
		Mode: fsm.Mode(d.Byte()), Adopt: d.Bool(), Node: d.String(maxText),
	}
}
