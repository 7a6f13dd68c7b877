package cluster

import "time"

// Reason says why a node could not do what it was asked.
type Reason string

// The reasons.
const (
	NoLeader     Reason = "no_leader"      // no leader is known, or this node is not it (any more)
	NotReady     Reason = "not_ready"      // starting, stopping, or not yet caught up
	Overloaded   Reason = "overloaded"     // the queue of proposals is full
	Removed      Reason = "removed"        // this node is no member any more
	Lost         Reason = "lost"           // leadership or the node was lost while the command was under way
	TimedOut     Reason = "timed_out"      // the caller's context ended first
	NoSuchMember Reason = "no_such_member" // no member has this name
	Conflict     Reason = "conflict"       // the change contradicts the members as they are
)

// Error is what Node's methods return when they have no decision. Unless
// Unknown is set, nothing was changed and nothing will be; with Unknown the
// command may be committed now or later.
type Error struct {
	Reason     Reason
	Unknown    bool
	RetryAfter time.Duration // how long to wait before another try is worth it; 0 says nothing
	Err        error         // the cause; nil if Reason says all
}

// Error returns the reason and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Peer is a node as others reach it.
type Peer struct {
	Name        string
	HTTPAddress string // base URL, e.g. http://127.0.0.1:8700
}

// Status is what one node knows of itself.
type Status struct {
	Name         string
	ServerID     string // Raft server ID: name, "-", instance ID
	ClusterID    string
	Role         string // leader, follower, candidate or shutdown
	Build        string // version of the binary
	LogStore     string // wal or boltdb
	Term         uint64
	AppliedIndex uint64
	CommitIndex  uint64
	LastContact  time.Duration // since the leader was last heard; 0 on the leader
	Leader       Peer          // zero if none is known
}

// MemberStatus is one server of the newest configuration.
type MemberStatus struct {
	Name        string
	ServerID    string
	HTTPAddress string // base URL; empty until the member is on record
	RaftAddress string // host:port
	Build       string
	Voter       bool
	Leader      bool
}

// Joiner is a node that asks to become a member.
type Joiner struct {
	Name        string `json:"name"`
	ServerID    string `json:"serverId"`
	HTTPAddress string `json:"httpAddress"`
	RaftAddress string `json:"raftAddress"`
	Build       string `json:"build"`
	Format      uint64 `json:"format"` // highest command format it can apply
}

// Joined answers a Joiner.
type Joined struct {
	ClusterID string   `json:"clusterId"`
	Servers   []string `json:"servers"` // Raft server IDs of the configuration
}

// Hello is what a node tells any other that asks who it is, member or not.
type Hello struct {
	Name        string   `json:"name"`
	ServerID    string   `json:"serverId"`
	ClusterID   string   `json:"clusterId"`
	HTTPAddress string   `json:"httpAddress"`
	RaftAddress string   `json:"raftAddress"`
	Build       string   `json:"build"`
	Format      uint64   `json:"format"`
	Servers     []string `json:"servers"` // Raft server IDs of its newest configuration
	Fresh       bool     `json:"fresh"`   // it holds no state and belongs to no cluster yet
}
