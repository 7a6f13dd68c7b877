package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

// A write sent to a follower is checked there and carried to the leader as the
// command it becomes, not as the HTTP request it was: the leader neither parses
// nor answers HTTP for it.
//
//	call:    | patience, ms | command without a stamp |
//	answer:  | 0 | decision |   or   | 1 | reason | unknown | retry after, ms |
const (
	replyDecision byte = 0
	replyError    byte = 1

	maxPatience = time.Minute // for which the leader works on a carried command
	maxReason   = 64          // bytes
)

// carry takes a command to the leader and returns what was decided there. An
// *Error says no_leader if the command never got there.
func (n *Node) carry(ctx context.Context, patience time.Duration, c *fsm.Command) (fsm.Decision, error) {
	if op, ok := c.Op.(*fsm.Acquire); ok && op.WaitMs > 0 {
		// Its caller must be able to hang up where the queue is.
		return fsm.Decision{}, n.noLeader()
	}
	leader, known := n.leaderServer()
	if !known {
		return fsm.Decision{}, n.noLeader()
	}
	return n.carryTo(ctx, patience, leader, c)
}

func (n *Node) carryTo(ctx context.Context, patience time.Duration, leader raft.Server, c *fsm.Command) (fsm.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := fsm.Encode(c)
	e := codec.Encoder{Bytes: make([]byte, 0, 16+len(command))}
	e.Int(patience.Milliseconds())
	e.Blob(command)
	reply, err := n.cfg.Peers.Call(ctx, leader.ID, leader.Address, methodPropose, e.Bytes)
	var notSent *NotSentError
	switch {
	case errors.As(err, &notSent):
		return fsm.Decision{}, &Error{Reason: NoLeader, RetryAfter: time.Second, Err: err}
	case err != nil && ctx.Err() != nil:
		return fsm.Decision{}, &Error{Reason: TimedOut, Unknown: true, Err: err}
	case err != nil:
		return fsm.Decision{}, &Error{Reason: Lost, Unknown: true, Err: err}
	}
	return decodeReply(reply)
}

// serveCarried commits a command another node checked. It goes no further if
// this node does not lead: a command is carried once.
func (n *Node) serveCarried(ctx context.Context, payload []byte) ([]byte, error) {
	d := codec.NewDecoder(payload)
	patience := time.Duration(d.Int()) * time.Millisecond
	entry := d.Blob(maxPayload)
	if err := d.Close(); err != nil {
		return nil, err
	}
	c, err := fsm.Decode(entry)
	if err != nil {
		return nil, err
	}
	decision, err := n.commit(ctx, min(patience, maxPatience), c)
	return encodeReply(&decision, err)
}

// encodeReply returns what decodeReply returns at the other end; an error that
// says nothing of the outcome stays one.
func encodeReply(decision *fsm.Decision, err error) ([]byte, error) {
	e := codec.Encoder{Bytes: make([]byte, 0, 256)}
	var failed *Error
	switch {
	case err == nil:
		e.Byte(replyDecision)
		fsm.EncodeDecision(&e, decision)
	case errors.As(err, &failed):
		e.Byte(replyError)
		e.String(string(failed.Reason))
		e.Bool(failed.Unknown)
		e.Int(failed.RetryAfter.Milliseconds())
	default:
		return nil, err
	}
	return e.Bytes, nil
}

// decodeReply takes an answer that cannot be read for one that never came.
func decodeReply(reply []byte) (fsm.Decision, error) {
	d := codec.NewDecoder(reply)
	var decision *fsm.Decision
	failed := &Error{}
	switch tag := d.Byte(); tag {
	case replyDecision:
		decision = fsm.DecodeDecision(d)
	case replyError:
		failed.Reason, failed.Unknown = Reason(d.String(maxReason)), d.Bool()
		failed.RetryAfter = time.Duration(d.Int()) * time.Millisecond
	default:
		d.Fail(fmt.Errorf("answer of kind %d", tag))
	}
	if err := d.Close(); err != nil {
		return fsm.Decision{}, &Error{Reason: Lost, Unknown: true, Err: err}
	}
	if decision == nil {
		return fsm.Decision{}, failed
	}
	return *decision, nil
}
