package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fencekv/fencekv/fsm/codec"
)

// FormatCommand is the command format this build writes and the highest it can
// apply. It is one byte of every log entry, ahead of everything else.
const FormatCommand = 1

// A command in the log:
//
//	0       1       2               10              18              26
//	+-------+-------+---------------+---------------+---------------+-----------
//	| format| kind  | stamp: term   | cluster clock | wall clock    | fields ...
//	+-------+-------+---------------+---------------+---------------+-----------
//
// The stamp has a fixed place and width so that the leader can put it on a
// command that was encoded, and checked, elsewhere. Fields follow as listed in
// encodeRequest and encodeOp.
const (
	stampAt  = 2
	headerAt = stampAt + 24
)

// Errors of Decode. ErrUnknownFormat means that a newer build wrote the entry:
// the node must be upgraded, it cannot skip the entry.
var (
	ErrUnknownFormat = errors.New("command of a format or kind this build does not know: upgrade this node")
	ErrMalformed     = errors.New("malformed command")
)

// Bounds of a field while decoding, far above what Validate lets in, so that a
// later build may raise a limit without changing the format.
const (
	maxBlob = 16 << 20 // bytes of a field of a command
	maxText = 64 << 10 // bytes of a name, ID, key or the like of a decision
)

// Encode returns the command as a log entry.
func Encode(c *Command) []byte {
	e := codec.Encoder{Bytes: make([]byte, 0, sizeHint(c.Op))}
	e.Byte(FormatCommand)
	e.Byte(byte(c.Op.Kind()))
	e.Fixed(c.Stamp.Term)
	e.Fixed(uint64(c.Stamp.ClockMs))
	e.Fixed(uint64(c.Stamp.WallMs))
	encodeRequest(&e, c.Request)
	encodeOp(&e, c.Op)
	return e.Bytes
}

// Restamp puts stamp on an encoded command in place.
func Restamp(entry []byte, stamp Stamp) {
	binary.BigEndian.PutUint64(entry[stampAt:], stamp.Term)
	binary.BigEndian.PutUint64(entry[stampAt+8:], uint64(stamp.ClockMs))
	binary.BigEndian.PutUint64(entry[stampAt+16:], uint64(stamp.WallMs))
}

func sizeHint(op Op) int {
	const overhead = 320
	switch op := op.(type) {
	case *Put:
		return overhead + len(op.Key) + len(op.Value)
	case *Txn:
		n := overhead
		for _, one := range op.Ops {
			n += 64
			if put, ok := one.(*Put); ok {
				n += len(put.Value)
			}
		}
		return n
	}
	return overhead
}

func encodeRequest(e *codec.Encoder, r Request) {
	e.String(r.ID)
	e.Bool(r.HasBase)
	if r.HasBase {
		e.Uint(r.Base)
	}
	e.Sum(r.Fingerprint)
	e.String(r.Author)
	e.String(r.Reason)
}

func encodeCondition(e *codec.Encoder, c Condition) {
	e.Uint(c.Revision)
	e.Bool(c.Absent)
	e.Bool(c.Exists)
}

func encodeOp(e *codec.Encoder, op Op) {
	switch op := op.(type) {
	case *Put:
		e.String(op.Key)
		encodeCondition(e, op.If)
		e.Uint(op.Token)
		e.Uint(op.Sequence)
		e.String(op.ContentType)
		e.Blob(op.Value)
	case *Delete:
		e.String(op.Key)
		encodeCondition(e, op.If)
		e.Uint(op.Token)
		e.Uint(op.Sequence)
	case *Check:
		e.String(op.Key)
		encodeCondition(e, op.If)
	case *Txn:
		encodeTxn(e, op)
	case *Acquire:
		encodeAcquire(e, op)
	case *Renew:
		e.String(op.Resource)
		e.String(op.LeaseID)
		e.Int(op.TTLMs)
	case *Release:
		e.String(op.Resource)
		e.String(op.LeaseID)
	case *Withdraw, *Revoke, *Require, *Purge, *Seal:
		e.String(Scope(op))
	case *Tick:
	case *Configure:
		EncodeSettings(e, op.Settings)
	case *SetMember:
		EncodeMember(e, &op.Member)
	case *RemoveMember:
		e.String(op.Name)
	case *Found:
		e.String(op.ClusterID)
	default:
		panic(fmt.Sprintf("fsm: operation %T has no encoding", op))
	}
}

func encodeTxn(e *codec.Encoder, op *Txn) {
	e.String(op.Resource)
	e.Uint(uint64(len(op.Tokens)))
	for _, token := range op.Tokens {
		e.Uint(token)
	}
	e.Uint(uint64(len(op.Ops)))
	for _, one := range op.Ops {
		e.Byte(byte(one.Kind()))
		encodeOp(e, one)
	}
}

func encodeAcquire(e *codec.Encoder, op *Acquire) {
	e.String(op.Resource)
	e.String(op.Holder)
	e.String(op.LeaseID)
	e.String(op.Node)
	e.Int(op.TTLMs)
	e.Int(op.WaitMs)
	e.Byte(byte(op.Mode))
	e.Bool(op.Adopt)
	e.Uint(op.IfToken)
}

// EncodeSettings appends the fields of s.
func EncodeSettings(e *codec.Encoder, s Settings) {
	e.Int(s.RequestRetentionMs)
	e.Int(s.MaxRequests)
	e.Int(s.History)
	e.Int(s.MaxValue)
	e.Bool(s.ExternalTokens)
}

// EncodeMember appends the fields of m.
func EncodeMember(e *codec.Encoder, m *Member) {
	e.String(m.Name)
	e.String(m.ServerID)
	e.String(m.HTTPAddress)
	e.String(m.RaftAddress)
	e.String(m.Build)
	e.Uint(m.Format)
}
