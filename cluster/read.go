package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

// Read returns a state that holds every write acknowledged before the call. On a
// follower it asks the leader how far that is, and waits until it has applied as
// much itself. The error is an *Error.
func (n *Node) Read(ctx context.Context) (*fsm.State, error) {
	if n.lead.Load() != nil {
		if err := n.confirmed(ctx); err != nil {
			return nil, err
		}
		return n.store.state(), nil
	}
	leader, ok := n.leaderServer()
	if !ok {
		return nil, n.noLeader()
	}
	reply, err := n.cfg.Peers.Call(ctx, leader.ID, leader.Address, methodReadIndex, nil)
	if err != nil {
		return nil, &Error{Reason: NoLeader, Err: err}
	}
	d := codec.NewDecoder(reply)
	index := d.Uint()
	if err := d.Close(); err != nil {
		return nil, &Error{Reason: NoLeader, Err: err}
	}
	ready, stop := n.store.applied(index)
	defer stop()
	select {
	case <-ready:
		return n.store.state(), nil
	case <-ctx.Done():
		return nil, &Error{Reason: NotReady, Err: ctx.Err()}
	case <-n.ctx.Done():
		return nil, &Error{Reason: NotReady, Err: errStopping}
	}
}

// confirmed returns once a quorum has confirmed, after the call, that this node
// leads: what it has applied by then holds every write acknowledged before.
func (n *Node) confirmed(ctx context.Context) error {
	if err := n.reads.join(ctx, n.confirm); err != nil {
		return &Error{Reason: NoLeader, Err: err}
	}
	return nil
}

// rounds lets readers share one confirmation. A reader may only join a round
// that has not begun: answers of an earlier moment prove nothing to it.
type rounds struct {
	mu   sync.Mutex
	next *round // collects readers; nil when nobody waits
	busy bool   // a round is under way
}

type round struct {
	done chan struct{}
	err  error
}

func (r *rounds) join(ctx context.Context, confirm func() error) error {
	r.mu.Lock()
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	mine := r.next
	if !r.busy {
		r.busy = true
		go r.serve(confirm)
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve runs rounds until nobody waits.
func (r *rounds) serve(confirm func() error) {
	for {
		r.mu.Lock()
		current := r.next
		r.next = nil
		if current == nil {
			r.busy = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		current.err = confirm()
		close(current.done)
	}
}

var (
	errNotLeading = errors.New("this node does not lead")
	errNoQuorum   = errors.New("no quorum confirmed the term")
)

// confirm asks every voter for its current term and returns nil once a quorum,
// this node included, said the term it leads in. A voter raises its term before
// it grants a vote, so whoever could lead in a later term was elected after this
// round began, and nothing it acknowledged can be missing from a state taken
// now. Raft's VerifyLeader does not give that: it also counts heartbeat answers
// that were under way before (hashicorp/raft #108).
func (n *Node) confirm() error {
	lead := n.lead.Load()
	if lead == nil {
		return errNotLeading
	}
	voters := n.voters()
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.heartbeat())
	defer cancel()
	terms := make(chan uint64, len(voters))
	needed := len(voters)/2 + 1
	for _, v := range voters {
		if v.ID == n.cfg.Identity.ServerID() {
			terms <- n.raft.Load().CurrentTerm()
			continue
		}
		go func() { terms <- n.termOf(ctx, v) }()
	}
	for range voters {
		if <-terms == lead.term {
			needed--
		}
		if needed == 0 {
			break
		}
	}
	if needed > 0 {
		return errNoQuorum
	}
	if r := n.raft.Load(); n.lead.Load() != lead || r.State() != raft.Leader || r.CurrentTerm() != lead.term {
		return errNotLeading
	}
	return nil
}

// termOf returns a voter's current term, or 0 when it does not say.
func (n *Node) termOf(ctx context.Context, v raft.Server) uint64 {
	reply, err := n.cfg.Peers.Call(ctx, v.ID, v.Address, methodTerm, nil)
	if err != nil {
		return 0
	}
	d := codec.NewDecoder(reply)
	term := d.Uint()
	if d.Close() != nil {
		return 0
	}
	return term
}
