package fsm

import (
	"fmt"

	"github.com/fencekv/fencekv/fsm/codec"
)

// Decode returns the command of a log entry. The command shares no memory with
// the entry. An error wraps ErrUnknownFormat or ErrMalformed; either way the
// node must stop, because skipping a committed entry is divergence.
func Decode(entry []byte) (*Command, error) {
	if len(entry) < headerAt {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(entry))
	}
	if format := entry[0]; format != FormatCommand {
		return nil, fmt.Errorf("%w (format %d)", ErrUnknownFormat, format)
	}
	d := codec.NewDecoder(entry[1:])
	kind := Kind(d.Byte())
	c := &Command{Stamp: Stamp{Term: d.Fixed(), ClockMs: int64(d.Fixed()), WallMs: int64(d.Fixed())}}
	c.Request = decodeRequest(d)
	op, known := decodeOp(d, kind)
	if !known {
		return nil, fmt.Errorf("%w (kind %d)", ErrUnknownFormat, kind)
	}
	if err := d.Close(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, kind, err)
	}
	c.Op = op
	return c, nil
}

func decodeRequest(d *codec.Decoder) Request {
	r := Request{ID: d.String(maxBlob), HasBase: d.Bool()}
	if r.HasBase {
		r.Base = d.Uint()
	}
	r.Fingerprint = d.Sum()
	r.Author = d.String(maxBlob)
	r.Reason = d.String(maxBlob)
	return r
}

func decodeCondition(d *codec.Decoder) Condition {
	return Condition{Revision: d.Uint(), Absent: d.Bool(), Exists: d.Bool()}
}

func decodeOp(d *codec.Decoder, kind Kind) (op Op, known bool) {
	switch kind {
	case KindPut, KindDelete, KindCheck:
		return decodeWrite(d, kind), true
	case KindTxn:
		return decodeTxn(d), true
	case KindAcquire:
		return decodeAcquire(d), true
	case KindRenew:
		return &Renew{Resource: d.String(maxBlob), LeaseID: d.String(maxBlob), TTLMs: d.Int()}, true
	case KindRelease:
		return &Release{Resource: d.String(maxBlob), LeaseID: d.String(maxBlob)}, true
	case KindWithdraw:
		return &Withdraw{Resource: d.String(maxBlob)}, true
	case KindRevoke:
		return &Revoke{Resource: d.String(maxBlob)}, true
	case KindRequire:
		return &Require{Resource: d.String(maxBlob)}, true
	case KindPurge:
		return &Purge{Prefix: d.String(maxBlob)}, true
	case KindSeal:
		return &Seal{Scope: d.String(maxBlob)}, true
	case KindTick:
		return &Tick{}, true
	case KindConfigure:
		return &Configure{Settings: DecodeSettings(d)}, true
	case KindSetMember:
		return &SetMember{Member: DecodeMember(d)}, true
	case KindRemoveMember:
		return &RemoveMember{Name: d.String(maxBlob)}, true
	case KindFound:
		return &Found{ClusterID: d.String(maxBlob)}, true
	}
	return nil, false
}

func decodeWrite(d *codec.Decoder, kind Kind) Op {
	key, cond := d.String(maxBlob), decodeCondition(d)
	switch kind {
	case KindPut:
		return &Put{
			Key: key, If: cond, Token: d.Uint(), Sequence: d.Uint(),
			ContentType: d.String(maxBlob), Value: d.Blob(maxBlob),
		}
	case KindDelete:
		return &Delete{Key: key, If: cond, Token: d.Uint(), Sequence: d.Uint()}
	}
	return &Check{Key: key, If: cond}
}

func decodeTxn(d *codec.Decoder) *Txn {
	op := &Txn{Resource: d.String(maxBlob)}
	for range d.Count(maxBlob) {
		op.Tokens = append(op.Tokens, d.Uint())
	}
	for range d.Count(maxBlob) {
		switch kind := Kind(d.Byte()); kind {
		case KindPut, KindDelete, KindCheck:
			op.Ops = append(op.Ops, decodeWrite(d, kind))
		default:
			d.Fail(fmt.Errorf("a transaction cannot hold kind %d", kind))
		}
		if d.Err() != nil {
			break
		}
	}
	return op
}

func decodeAcquire(d *codec.Decoder) *Acquire {
	op := &Acquire{
		Resource: d.String(maxBlob), Holder: d.String(maxBlob), LeaseID: d.String(maxBlob), Node: d.String(maxBlob),
		TTLMs: d.Int(), WaitMs: d.Int(), Mode: Mode(d.Byte()), Adopt: d.Bool(), IfToken: d.Uint(),
	}
	if op.Mode > ModeWrite {
		d.Fail(codec.ErrCanonical)
	}
	return op
}

// DecodeSettings reads the fields of Settings.
func DecodeSettings(d *codec.Decoder) Settings {
	return Settings{
		RequestRetentionMs: d.Int(), MaxRequests: d.Int(), History: d.Int(),
		MaxValue: d.Int(), ExternalTokens: d.Bool(),
	}
}

// DecodeMember reads the fields of a Member.
func DecodeMember(d *codec.Decoder) Member {
	return Member{
		Name: d.String(maxBlob), ServerID: d.String(maxBlob), HTTPAddress: d.String(maxBlob),
		RaftAddress: d.String(maxBlob), Build: d.String(maxBlob), Format: d.Uint(),
	}
}
