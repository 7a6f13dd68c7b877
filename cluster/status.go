package cluster

import (
	"slices"
	"strings"

	"github.com/hashicorp/raft"
)

// IsLeader reports whether this node may propose.
func (n *Node) IsLeader() bool { return n.lead.Load() != nil }

// Leader returns the leader as clients reach it, if it is known and on record.
func (n *Node) Leader() (Peer, bool) {
	if n.lead.Load() != nil {
		return Peer{Name: n.cfg.Identity.Name, HTTPAddress: n.cfg.HTTPAddress}, true
	}
	server, ok := n.leaderServer()
	if !ok {
		return Peer{}, false
	}
	m := n.store.head.Load().Member(NameOf(server.ID))
	if m == nil || m.ServerID != string(server.ID) {
		return Peer{}, false
	}
	return Peer{Name: m.Name, HTTPAddress: m.HTTPAddress}, true
}

// Status returns what the node knows of itself.
func (n *Node) Status() Status {
	s := Status{
		Name: n.cfg.Identity.Name, ServerID: string(n.cfg.Identity.ServerID()), ClusterID: n.ClusterID(),
		Role: "forming", Build: n.cfg.Build, LogStore: n.cfg.LogStore,
		AppliedIndex: n.store.head.Load().Index,
	}
	r := n.raft.Load()
	if r == nil {
		return s
	}
	s.Role = strings.ToLower(r.State().String())
	s.Term, s.CommitIndex = r.CurrentTerm(), r.CommitIndex()
	s.LastContact = n.age()
	s.Leader, _ = n.Leader()
	return s
}

// Members returns the servers of the newest configuration in order of name.
func (n *Node) Members() []MemberStatus {
	state := n.store.state()
	leader, _ := n.Leader()
	var all []MemberStatus
	for _, s := range n.servers() {
		m := MemberStatus{
			Name: NameOf(s.ID), ServerID: string(s.ID), RaftAddress: string(s.Address),
			Voter: s.Suffrage == raft.Voter, Leader: NameOf(s.ID) == leader.Name,
		}
		if known := state.Member(m.Name); known != nil && known.ServerID == m.ServerID {
			m.HTTPAddress, m.Build = known.HTTPAddress, known.Build
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b MemberStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}
