package cluster

import (
	"context"

	"github.com/fencekv/fencekv/fsm"
)

// Await returns the final decision on an acquire that Propose put in a queue:
// the grant, or lock_held when the wait was over. When ctx ends first, the
// caller has hung up and its request leaves the queue; a grant it got meanwhile
// stays and is found again under the same request ID. The error is an *Error
// with an unknown outcome.
func (n *Node) Await(ctx context.Context, resource, requestID string) (fsm.Decision, error) {
	lead := n.lead.Load()
	if lead == nil {
		return fsm.Decision{}, &Error{Reason: Lost, Unknown: true, Err: errNotLeading}
	}
	ready, stop := n.store.decided(resource, requestID)
	defer stop()
	select {
	case <-ready:
		return n.store.state().Granted(resource, requestID), nil
	case <-lead.ended:
		return fsm.Decision{}, &Error{Reason: Lost, Unknown: true, Err: errNotLeading}
	case <-ctx.Done():
		n.run(func() { n.withdraw(resource, requestID) })
		return fsm.Decision{}, &Error{Reason: TimedOut, Unknown: true, Err: ctx.Err()}
	}
}

// withdraw does its best: if it fails, the waiter's own deadline ends the wait.
func (n *Node) withdraw(resource, requestID string) {
	command := fsm.NewCommand(fsm.Request{ID: requestID}, &fsm.Withdraw{Resource: resource})
	if _, err := n.commit(n.ctx, 2*n.cfg.heartbeat(), command); err != nil {
		n.log.Debug("withdraw", "resource", resource, "error", err)
	}
}
