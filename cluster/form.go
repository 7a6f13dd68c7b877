package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
)

// keyMember marks a stable store as that of a member, or of one about to be. It
// is durable before the cluster ID is, so an identity with a cluster ID beside a
// stable store without the mark is a node whose Raft state was lost: it has
// forgotten whom it voted for and must not vote again.
const keyMember = "fencekv/member"

// ErrNotExpected means that a formed cluster does not list this instance. A
// directory that was wiped gets a new instance ID, and votes anew under an old
// name would lose acknowledged writes.
var ErrNotExpected = errors.New("the cluster does not expect this node")

// plan decides how the node comes to run Raft.
func plan(cfg Config) (func(*Node) error, error) {
	exists, err := raft.HasExistingState(cfg.Stores.Log, cfg.Stores.Stable, cfg.Stores.Snapshots)
	if err != nil {
		return nil, fmt.Errorf("look for raft state: %w", err)
	}
	marked, _ := cfg.Stores.Stable.Get([]byte(keyMember))
	switch {
	case exists && cfg.Identity.ClusterID == "":
		return nil, fmt.Errorf("there is raft state but the identity names no cluster: %s", rejoinAdvice)
	case !exists && cfg.Identity.ClusterID != "" && len(marked) == 0:
		return nil, fmt.Errorf("the identity names cluster %s but the raft state is gone: %s", cfg.Identity.ClusterID, rejoinAdvice)
	case exists:
		return (*Node).startRaft, nil
	case len(cfg.Expect) > 1:
		return (*Node).formWithPeers, nil
	case cfg.Join != "":
		return (*Node).joinCluster, nil
	}
	return (*Node).formAlone, nil
}

// adopt makes this node's membership of a cluster durable.
func (n *Node) adopt(clusterID string) error {
	if err := n.cfg.Stores.Stable.Set([]byte(keyMember), []byte{1}); err != nil {
		return fmt.Errorf("mark stable store: %w", err)
	}
	if err := n.cfg.SaveClusterID(clusterID); err != nil {
		return fmt.Errorf("record cluster ID: %w", err)
	}
	n.clusterID.Store(&clusterID)
	return nil
}

func (n *Node) formAlone() error {
	return n.found([]raft.Server{{ID: n.cfg.Identity.ServerID(), Address: n.cfg.Raft.LocalAddr()}})
}

// found writes the first configuration. Only one node of a cluster does so; the
// others take it from the log.
func (n *Node) found(servers []raft.Server) error {
	id := n.ClusterID()
	if id == "" {
		id = randomID()
	}
	if err := n.adopt(id); err != nil {
		return err
	}
	s := n.cfg.Stores
	err := raft.BootstrapCluster(n.cfg.raftConfig(), s.Log, s.Stable, s.Snapshots, n.cfg.Raft, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("found cluster: %w", err)
	}
	n.log.Info("cluster founded", "cluster", id, "servers", len(servers))
	return n.startRaft()
}

func randomID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(id[:])
}

// formWithPeers waits until every listed peer was heard and is as fresh as this
// node; then the first by name founds the cluster and the others, seeing that it
// expects exactly their instances, take part. A node that is fresh among peers
// that are not may be a wiped one, and is refused.
func (n *Node) formWithPeers() error {
	names := slices.Sorted(maps.Keys(n.cfg.Expect))
	first := names[0] == n.cfg.Identity.Name
	for {
		hellos, err := n.greetAll(names)
		if err != nil {
			return err
		}
		if formed := findFormed(hellos, n.cfg.Identity.ServerID()); formed != nil {
			if err := n.adopt(formed.ClusterID); err != nil {
				return err
			}
			return n.startRaft()
		}
		if first && len(hellos) == len(names)-1 {
			return n.found(n.foundingServers(hellos))
		}
		n.log.Info("forming", "heard", len(hellos)+1, "of", len(names))
		if !n.pause(200 * time.Millisecond) {
			return nil
		}
	}
}

// greetAll returns the hellos of the peers that answered. The error is final: a
// peer that is no stranger to a cluster, but to this node.
func (n *Node) greetAll(names []string) ([]Hello, error) {
	var hellos []Hello
	for _, name := range names {
		if name == n.cfg.Identity.Name {
			continue
		}
		ctx, cancel := context.WithTimeout(n.ctx, 2*time.Second)
		hello, err := n.cfg.Greet(ctx, n.cfg.Expect[name])
		cancel()
		if err != nil {
			n.log.Debug("greet", "peer", name, "error", err)
			continue
		}
		self := string(n.cfg.Identity.ServerID())
		switch {
		case hello.Name != name:
			return nil, fmt.Errorf("%w: %s answers as %q, not %q", ErrNotExpected, n.cfg.Expect[name], hello.Name, name)
		case len(hello.Servers) > 0 && !slices.Contains(hello.Servers, self):
			return nil, fmt.Errorf("%w: %s is a member of cluster %s, which does not list %s; if the data directory of %s was lost, remove the old member and start with --join",
				ErrNotExpected, name, hello.ClusterID, self, n.cfg.Identity.Name)
		case !hello.Fresh && len(hello.Servers) == 0 && !n.mayFound(hello):
			n.log.Debug("peer is between states", "peer", name)
			continue
		}
		hellos = append(hellos, hello)
	}
	return hellos, nil
}

// mayFound tells a peer that crashed while founding this very cluster.
func (n *Node) mayFound(h Hello) bool { return h.ClusterID != "" && h.ClusterID == n.ClusterID() }

func findFormed(hellos []Hello, self raft.ServerID) *Hello {
	for i, h := range hellos {
		if slices.Contains(h.Servers, string(self)) && h.ClusterID != "" {
			return &hellos[i]
		}
	}
	return nil
}

func (n *Node) foundingServers(hellos []Hello) []raft.Server {
	servers := []raft.Server{{ID: n.cfg.Identity.ServerID(), Address: n.cfg.Raft.LocalAddr()}}
	for _, h := range hellos {
		servers = append(servers, raft.Server{ID: raft.ServerID(h.ServerID), Address: raft.ServerAddress(h.RaftAddress)})
	}
	return servers
}

// joinCluster asks a member for admission until it is heard.
func (n *Node) joinCluster() error {
	for {
		ctx, cancel := context.WithTimeout(n.ctx, 10*time.Second)
		joined, err := n.cfg.AskJoin(ctx, n.cfg.Join, Joiner{
			Name: n.cfg.Identity.Name, ServerID: string(n.cfg.Identity.ServerID()),
			HTTPAddress: n.cfg.HTTPAddress, RaftAddress: n.cfg.RaftAddress,
			Build: n.cfg.Build, Format: fsm.FormatCommand,
		})
		cancel()
		if err == nil {
			if err := n.adopt(joined.ClusterID); err != nil {
				return err
			}
			return n.startRaft()
		}
		var refused *Error
		if errors.As(err, &refused) && refused.Reason == Conflict {
			return fmt.Errorf("join %s: %w", n.cfg.Join, err)
		}
		n.log.Info("joining", "at", n.cfg.Join, "error", err)
		if !n.pause(time.Second) {
			return nil
		}
	}
}

func (n *Node) pause(d time.Duration) bool {
	select {
	case <-n.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// ClusterID returns the ID of the node's cluster, empty before it has one.
func (n *Node) ClusterID() string { return *n.clusterID.Load() }

// Hello says who this node is, to whoever asks.
func (n *Node) Hello() Hello {
	h := Hello{
		Name: n.cfg.Identity.Name, ServerID: string(n.cfg.Identity.ServerID()), ClusterID: n.ClusterID(),
		HTTPAddress: n.cfg.HTTPAddress, RaftAddress: n.cfg.RaftAddress,
		Build: n.cfg.Build, Format: fsm.FormatCommand, Servers: []string{},
	}
	for _, s := range n.servers() {
		h.Servers = append(h.Servers, string(s.ID))
	}
	h.Fresh = h.ClusterID == "" && n.raft.Load() == nil
	return h
}

// Expects reports whether id may speak to this node: it is in the newest
// configuration, or this node has none yet.
func (n *Node) Expects(id raft.ServerID) bool {
	servers := n.servers()
	return len(servers) == 0 || slices.ContainsFunc(servers, func(s raft.Server) bool { return s.ID == id })
}

func (n *Node) servers() []raft.Server {
	if r := n.raft.Load(); r != nil {
		return r.GetConfiguration().Configuration().Servers
	}
	return nil
}

func (n *Node) voters() []raft.Server {
	return slices.DeleteFunc(slices.Clone(n.servers()), func(s raft.Server) bool { return s.Suffrage != raft.Voter })
}
