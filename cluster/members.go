package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

// promotable is how many entries a new member may be behind to be given a vote.
const promotable = 1_000

// Join admits a node as a non-voter; it is promoted once it has caught up. A
// member of the same name under another instance ID must be removed first.
func (n *Node) Join(ctx context.Context, j Joiner) (Joined, error) {
	id := raft.ServerID(j.ServerID)
	if err := CheckNodeName(j.Name); err != nil {
		return Joined{}, &Error{Reason: Conflict, Err: err}
	}
	if NameOf(id) != j.Name || j.RaftAddress == "" {
		return Joined{}, &Error{Reason: Conflict, Err: fmt.Errorf("server ID %q is not one of %q", j.ServerID, j.Name)}
	}
	if n.lead.Load() == nil {
		return Joined{}, n.noLeader()
	}
	for _, s := range n.servers() {
		if NameOf(s.ID) == j.Name && s.ID != id {
			return Joined{}, &Error{Reason: Conflict, Err: fmt.Errorf("%q is a member already, as %s; remove it first", j.Name, s.ID)}
		}
		if s.Address == raft.ServerAddress(j.RaftAddress) && s.ID != id {
			return Joined{}, &Error{Reason: Conflict, Err: fmt.Errorf("%s is the address of %s", j.RaftAddress, s.ID)}
		}
	}
	if err := n.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.AddNonvoter(id, raft.ServerAddress(j.RaftAddress), 0, n.cfg.heartbeat())
	}); err != nil {
		return Joined{}, err
	}
	n.record(&fsm.SetMember{Member: fsm.Member{
		Name: j.Name, ServerID: j.ServerID, HTTPAddress: j.HTTPAddress,
		RaftAddress: j.RaftAddress, Build: j.Build, Format: j.Format,
	}}, false)
	return Joined{ClusterID: n.ClusterID(), Servers: n.Hello().Servers}, nil
}

// Remove takes a member out of the configuration and tells it, so that it stops.
// Raft itself does not: it only ceases to send a removed follower anything.
func (n *Node) Remove(ctx context.Context, name string) error {
	if n.lead.Load() == nil {
		return n.noLeader()
	}
	server, ok := n.serverNamed(name)
	if !ok {
		return &Error{Reason: NoSuchMember}
	}
	n.record(&fsm.RemoveMember{Name: name}, false)
	err := n.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.RemoveServer(server.ID, 0, n.cfg.heartbeat())
	})
	if err == nil && server.ID != n.cfg.Identity.ServerID() {
		if _, err := n.cfg.Peers.Call(ctx, server.ID, server.Address, methodRemoved, nil); err != nil {
			n.log.Info("removed member not told", "name", name, "error", err)
		}
	}
	return err
}

// Transfer hands leadership to the named member, or to any when name is empty.
func (n *Node) Transfer(ctx context.Context, name string) error {
	if n.lead.Load() == nil {
		return n.noLeader()
	}
	r := n.raft.Load()
	if name == "" {
		return n.settle(ctx, r.LeadershipTransfer())
	}
	for _, s := range n.voters() {
		if NameOf(s.ID) == name && s.ID != n.cfg.Identity.ServerID() {
			return n.settle(ctx, r.LeadershipTransferToServer(s.ID, s.Address))
		}
	}
	return &Error{Reason: NoSuchMember}
}

func (n *Node) serverNamed(name string) (raft.Server, bool) {
	for _, s := range n.servers() {
		if NameOf(s.ID) == name {
			return s, true
		}
	}
	return raft.Server{}, false
}

func (n *Node) change(ctx context.Context, ask func(*raft.Raft) raft.IndexFuture) error {
	return n.settle(ctx, ask(n.raft.Load()))
}

// settle waits for a change of the configuration. One that is under way when
// leadership or patience ends may still happen.
func (n *Node) settle(ctx context.Context, f raft.Future) error {
	err := within(ctx, f.Error)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return &Error{Reason: NoLeader, Err: err}
	}
	return &Error{Reason: Lost, Unknown: true, Err: err}
}

// promote gives a vote to each member that has caught up.
func (n *Node) promote() {
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			continue
		}
		ctx, cancel := context.WithTimeout(n.ctx, n.cfg.heartbeat())
		reply, err := n.cfg.Peers.Call(ctx, s.ID, s.Address, methodApplied, nil)
		if err == nil {
			d := codec.NewDecoder(reply)
			if index := d.Uint(); d.Close() == nil && index+promotable >= n.store.head.Load().Index {
				err = n.change(ctx, func(r *raft.Raft) raft.IndexFuture { return r.AddVoter(s.ID, s.Address, 0, n.cfg.heartbeat()) })
			}
		}
		cancel()
		if err != nil {
			n.log.Debug("promote", "server", s.ID, "error", err)
		}
	}
}
