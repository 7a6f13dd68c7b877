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

// Methods of the calls between nodes. A number, once given, keeps its meaning.
const (
	methodTerm      = 1 // → current term
	methodReadIndex = 2 // → index a linearizable read must have applied; leader only
	methodAnnounce  = 3 // member record → nothing; leader only
	methodApplied   = 4 // → index applied here
	methodRemoved   = 5 // the callee is no member any more → nothing
	methodPropose   = 6 // patience and command → decision or error, carry.go; leader only
)

var errMethod = errors.New("method unknown to this build")

// ServePeer answers another node.
func (n *Node) ServePeer(ctx context.Context, from raft.ServerID, method byte, payload []byte) ([]byte, error) {
	r := n.raft.Load()
	if r == nil {
		return nil, &Error{Reason: NotReady}
	}
	switch method {
	case methodTerm:
		return number(r.CurrentTerm()), nil
	case methodApplied:
		return number(n.store.head.Load().Index), nil
	case methodReadIndex:
		if err := n.confirmed(ctx); err != nil {
			return nil, err
		}
		return number(n.store.head.Load().Index), nil
	case methodAnnounce:
		return nil, n.admit(ctx, from, payload)
	case methodRemoved:
		// Not from inside this call: failing closes the connection it came on.
		go n.fail(&Error{Reason: Removed})
		return nil, nil
	case methodPropose:
		return n.serveCarried(ctx, payload)
	}
	return nil, fmt.Errorf("method %d: %w", method, errMethod)
}

func number(v uint64) []byte {
	var e codec.Encoder
	e.Uint(v)
	return e.Bytes
}

// admit puts a member on record as it announces itself. It can only announce
// itself: the connection has proved its server ID.
func (n *Node) admit(ctx context.Context, from raft.ServerID, payload []byte) error {
	d := codec.NewDecoder(payload)
	m := fsm.DecodeMember(d)
	if err := d.Close(); err != nil {
		return err
	}
	if m.ServerID != string(from) || m.Name != NameOf(from) {
		return &Error{Reason: Conflict}
	}
	_, err := n.commit(ctx, maxPatience, &fsm.Command{Op: &fsm.SetMember{Member: m}})
	return err
}

// self is this node's member record.
func (n *Node) self() fsm.Member {
	return fsm.Member{
		Name: n.cfg.Identity.Name, ServerID: string(n.cfg.Identity.ServerID()),
		HTTPAddress: n.cfg.HTTPAddress, RaftAddress: n.cfg.RaftAddress,
		Build: n.cfg.Build, Format: fsm.FormatCommand,
	}
}

// announce keeps the cluster's record of this node true: its addresses and
// build may have changed since the last start.
func (n *Node) announce() {
	for {
		self := n.self()
		if m := n.store.head.Load().Member(self.Name); m == nil || *m != self {
			n.announceOnce(self)
		}
		if !n.pause(tickEvery / 2) {
			return
		}
	}
}

func (n *Node) announceOnce(self fsm.Member) {
	ctx, cancel := context.WithTimeout(n.ctx, 4*n.cfg.heartbeat())
	defer cancel()
	if n.lead.Load() != nil {
		n.record(&fsm.SetMember{Member: self}, false)
		return
	}
	leader, ok := n.leaderServer()
	if !ok {
		return
	}
	var e codec.Encoder
	fsm.EncodeMember(&e, &self)
	if _, err := n.cfg.Peers.Call(ctx, leader.ID, leader.Address, methodAnnounce, e.Bytes); err != nil {
		n.log.Debug("announce", "error", err)
	}
}

// leaderServer returns the leader another node is, as Raft knows it.
func (n *Node) leaderServer() (raft.Server, bool) {
	r := n.raft.Load()
	if r == nil {
		return raft.Server{}, false
	}
	address, id := r.LeaderWithID()
	if id == "" || id == n.cfg.Identity.ServerID() {
		return raft.Server{}, false
	}
	return raft.Server{ID: id, Address: address}, true
}

// noLeader says why this node cannot lead a request to its end.
func (n *Node) noLeader() *Error {
	if n.raft.Load() == nil {
		return &Error{Reason: NotReady, RetryAfter: time.Second}
	}
	return &Error{Reason: NoLeader, RetryAfter: time.Second}
}
