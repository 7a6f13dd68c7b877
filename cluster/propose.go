package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
)

const (
	maxGroup      = 128     // proposals handed to Raft as one group, and entries of one AppendEntries
	maxGroupBytes = 4 << 20 // their bytes, so that a group cannot hold up heartbeats on the same connection

	// enqueueLimit is how long Raft may take to accept a proposal. Its loop
	// accepts in microseconds unless its disk hangs.
	enqueueLimit = 2 * time.Second
)

// proposal is a command on its way into the log.
type proposal struct {
	entry  []byte
	taken  atomic.Bool
	answer chan answer // holds one
}

type answer struct {
	decision *fsm.Decision
	err      error
}

func (a answer) result() (fsm.Decision, error) {
	if a.err != nil {
		return fsm.Decision{}, a.err
	}
	return *a.decision, nil
}

// take decides between the proposer and a caller that gives up: the proposal
// belongs to whoever takes it first.
func (p *proposal) take() bool { return p.taken.CompareAndSwap(false, true) }

// Propose commits c, on this node if it leads and through the leader if not, and
// returns what was decided. An acquire that may wait is committed only by the
// leader itself. The error is an *fsm.InvalidError (nothing was proposed) or an
// *Error that says whether the outcome is not_applied or unknown. It waits no
// longer than patience, and never tries again by itself.
func (n *Node) Propose(ctx context.Context, patience time.Duration, c *fsm.Command) (fsm.Decision, error) {
	if n.lead.Load() != nil {
		return n.commit(ctx, patience, c)
	}
	if err := fsm.Validate(c); err != nil {
		return fsm.Decision{}, err
	}
	return n.carry(ctx, patience, c)
}

// commit is Propose on the leader; any other node refuses.
func (n *Node) commit(ctx context.Context, patience time.Duration, c *fsm.Command) (fsm.Decision, error) {
	if err := fsm.Validate(c); err != nil {
		return fsm.Decision{}, err
	}
	if n.lead.Load() == nil {
		return fsm.Decision{}, n.noLeader()
	}
	p := &proposal{entry: fsm.Encode(c), answer: make(chan answer, 1)}
	if err := n.enqueue(p); err != nil {
		return fsm.Decision{}, err
	}
	limit := time.NewTimer(patience) // a context with a deadline costs several times as much
	defer limit.Stop()
	var reason error
	select {
	case a := <-p.answer:
		return a.result()
	case <-limit.C:
		reason = context.DeadlineExceeded
	case <-ctx.Done():
		reason = ctx.Err()
	case <-n.down:
		reason = errStopping
	}
	if p.take() {
		return fsm.Decision{}, &Error{Reason: TimedOut, Err: reason}
	}
	select {
	case a := <-p.answer:
		return a.result()
	default:
		return fsm.Decision{}, &Error{Reason: TimedOut, Unknown: true, Err: reason}
	}
}

// enqueue refuses early instead of letting a queue grow that nobody will wait
// for the end of.
func (n *Node) enqueue(p *proposal) error {
	size := int64(len(p.entry))
	if n.bytes.Add(size) > n.cfg.MaxPendingBytes {
		n.bytes.Add(-size)
		return &Error{Reason: Overloaded, RetryAfter: time.Second}
	}
	select {
	case n.queue <- p:
		return nil
	default:
		n.bytes.Add(-size)
		return &Error{Reason: Overloaded, RetryAfter: time.Second}
	}
}

// propose hands Raft all waiting proposals as one group, each its own entry,
// waits for them and takes the next: under load the groups grow by themselves,
// and with them the writes that share one fsync.
func (n *Node) propose() {
	group := make([]*proposal, 0, maxGroup)
	futures := make([]raft.ApplyFuture, 0, maxGroup)
	for {
		select {
		case <-n.ctx.Done():
			n.drain()
			return
		case p := <-n.queue:
			group = n.gather(append(group[:0], p))
		}
		lead := n.lead.Load()
		futures = futures[:0]
		for _, p := range group {
			futures = append(futures, n.hand(lead, p))
		}
		for i, p := range group {
			if futures[i] != nil {
				p.answer <- conclude(futures[i])
			}
		}
		clear(group)
		clear(futures)
	}
}

// gather adds to the group whatever waits, without waiting itself.
func (n *Node) gather(group []*proposal) []*proposal {
	size := len(group[0].entry)
	n.bytes.Add(-int64(size))
	for len(group) < maxGroup && size < maxGroupBytes {
		select {
		case p := <-n.queue:
			n.bytes.Add(-int64(len(p.entry)))
			size += len(p.entry)
			group = append(group, p)
		default:
			return group
		}
	}
	return group
}

// hand gives one proposal to Raft: the only place where the store proposes. It
// returns nil for a proposal that needs no answer from Raft.
func (n *Node) hand(lead *leadership, p *proposal) raft.ApplyFuture {
	if !p.take() {
		return nil
	}
	if lead == nil {
		p.answer <- answer{err: n.noLeader()}
		return nil
	}
	fsm.Restamp(p.entry, lead.stamp(n))
	return n.raft.Load().Apply(p.entry, enqueueLimit)
}

// drain answers what was still waiting when the node stopped.
func (n *Node) drain() {
	for {
		select {
		case p := <-n.queue:
			if p.take() {
				p.answer <- answer{err: &Error{Reason: NotReady, Err: errStopping}}
			}
		default:
			return
		}
	}
}

var errStopping = errors.New("node is stopping")

// conclude turns Raft's answer into ours. The three errors that mean the entry
// never entered the log are not_applied; every other leaves it open whether the
// entry is or will be committed.
func conclude(f raft.ApplyFuture) answer {
	err := f.Error()
	switch {
	case err == nil:
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return answer{err: &Error{Reason: NoLeader, RetryAfter: time.Second, Err: err}}
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return answer{err: &Error{Reason: Overloaded, RetryAfter: time.Second, Err: err}}
	default:
		return answer{err: &Error{Reason: Lost, Unknown: true, Err: err}}
	}
	if decision, ok := f.Response().(*fsm.Decision); ok {
		return answer{decision: decision}
	}
	return answer{err: &Error{Reason: Lost, Unknown: true, Err: errBroken}}
}
