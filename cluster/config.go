package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
)

// Config is what a Node is made of. Transport, stores, peers and clock are
// passed in, so that three real nodes can run in one process on a simulated
// network and clock; Open fills them in for a node of its own process.
type Config struct {
	Identity *Identity      // who this node is; required
	Stores   *Stores        // log, stable store and snapshots; required
	Raft     raft.Transport // carries Raft's own calls; required
	Peers    PeerCaller     // calls other nodes beside Raft; required

	// SaveClusterID makes the cluster's ID durable before the node takes part
	// in it. Required.
	SaveClusterID func(id string) error

	HTTPAddress string // base URL on which clients and nodes reach this node, e.g. http://127.0.0.1:8700
	RaftAddress string // host:port on which nodes reach this node
	Build       string // version of the binary, shown to operators
	LogStore    string // which log store Stores holds, shown to operators

	// How a node without Raft state comes to be part of a cluster. At most one
	// of the two; neither founds a cluster of one.
	Expect map[string]string // name → base URL of every founding member, this one included
	Join   string            // base URL of any node of the cluster to join

	Greet   func(ctx context.Context, url string) (Hello, error)                 // default: GET url/v1/peer
	AskJoin func(ctx context.Context, url string, joiner Joiner) (Joined, error) // default: POST url/v1/cluster/members

	// Settings the leader makes everybody's; nil leaves what the store has.
	Settings *fsm.Settings

	RTT              time.Duration // unit of Raft's timeouts: heartbeat and election 50, lease 25; default 10 ms
	SnapshotEntries  uint64        // entries between snapshots; default 16,384
	SnapshotInterval time.Duration // how often to see whether that many came; default 15 s
	SnapshotMaxAge   time.Duration // a snapshot at least this often if anything changed; default 1 h
	TrailingEntries  uint64        // entries kept behind a snapshot for slow followers; default 10,240
	MaxPending       int           // proposals waiting for Raft before the node refuses more; default 1,024
	MaxPendingBytes  int64         // their bytes; default 64 MiB

	Elapsed func() time.Duration // monotonic time since a fixed point; default: since the node started
	Wall    func() time.Time     // wall clock, only ever shown; default time.Now

	Logger hclog.Logger // default: none
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.RTT == 0 {
		c.RTT = 10 * time.Millisecond
	}
	if c.SnapshotEntries == 0 {
		c.SnapshotEntries = 16_384
	}
	if c.SnapshotInterval == 0 {
		c.SnapshotInterval = 15 * time.Second
	}
	if c.SnapshotMaxAge == 0 {
		c.SnapshotMaxAge = time.Hour
	}
	if c.TrailingEntries == 0 {
		c.TrailingEntries = 10_240
	}
	if c.MaxPending == 0 {
		c.MaxPending = 1_024
	}
	if c.MaxPendingBytes == 0 {
		c.MaxPendingBytes = 64 << 20
	}
	if c.Elapsed == nil {
		start := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(start) }
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	client := &http.Client{Timeout: 5 * time.Second}
	if c.Greet == nil {
		c.Greet = greetHTTP(client)
	}
	if c.AskJoin == nil {
		c.AskJoin = askJoinHTTP(client)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Identity == nil, c.Stores == nil, c.Raft == nil, c.Peers == nil, c.SaveClusterID == nil:
		return errors.New("identity, stores, transport, peers and SaveClusterID are required")
	case len(c.Expect) > 0 && c.Join != "":
		return errors.New("a node is either founded with its peers or joins a cluster, not both")
	case c.RTT < time.Millisecond || c.RTT > time.Second:
		return fmt.Errorf("raft RTT %s must be 1ms to 1s", c.RTT)
	}
	if _, ok := c.Expect[c.Identity.Name]; len(c.Expect) > 0 && !ok {
		return fmt.Errorf("the list of peers does not name this node, %q", c.Identity.Name)
	}
	return nil
}

func (c Config) heartbeat() time.Duration { return 50 * c.RTT }

// raftConfig sets what experience with hashicorp/raft asks for; DESIGN.md says
// why, knob by knob.
func (c Config) raftConfig() *raft.Config {
	rc := raft.DefaultConfig()
	rc.LocalID = c.Identity.ServerID()
	rc.HeartbeatTimeout = c.heartbeat()
	rc.ElectionTimeout = c.heartbeat()
	rc.LeaderLeaseTimeout = c.heartbeat() / 2
	rc.CommitTimeout = 2 * c.RTT
	rc.MaxAppendEntries = maxGroup
	rc.BatchApplyCh = true
	rc.ShutdownOnRemove = true
	rc.SnapshotThreshold = c.SnapshotEntries
	rc.SnapshotInterval = c.SnapshotInterval
	rc.TrailingLogs = c.TrailingEntries
	rc.Logger = c.Logger.Named("raft")
	return rc
}
