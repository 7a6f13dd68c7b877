package fsm

import (
	"crypto/sha256"

	"github.com/fencekv/fencekv/fsm/codec"
)

// Fingerprint returns the SHA-256 over what an operation asks for: its kind,
// its resource, preconditions, content type, value, terms of a lease. Two
// requests under one ID must have equal fingerprints. Not part of it are the
// token (a new holder may finish the old one's request under the same ID), the
// sequence number, how long an acquire would wait, and what the proposer adds.
func Fingerprint(op Op) [32]byte {
	var e codec.Encoder
	e.Byte(1) // form of the fingerprint, should it ever change
	fingerprintOp(&e, op)
	return sha256.Sum256(e.Bytes)
}

func fingerprintOp(e *codec.Encoder, op Op) {
	e.Byte(byte(op.Kind()))
	switch op := op.(type) {
	case *Put:
		e.String(op.Key)
		encodeCondition(e, op.If)
		e.String(op.ContentType)
		e.Blob(op.Value)
	case *Delete:
		e.String(op.Key)
		encodeCondition(e, op.If)
	case *Check:
		e.String(op.Key)
		encodeCondition(e, op.If)
	case *Txn:
		e.String(op.Resource)
		e.Uint(uint64(len(op.Ops)))
		for _, one := range op.Ops {
			fingerprintOp(e, one)
		}
	case *Acquire:
		e.String(op.Resource)
		e.String(op.Holder)
		e.Int(op.TTLMs)
		e.Byte(byte(op.Mode))
		e.Bool(op.Adopt)
		e.Uint(op.IfToken)
	case *Renew:
		e.String(op.Resource)
		e.String(op.LeaseID)
		e.Int(op.TTLMs)
	case *Release:
		e.String(op.Resource)
		e.String(op.LeaseID)
	default:
		e.String(Scope(op))
	}
}
