package cluster

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// storeNode is a real raft node on real stores.
type storeNode struct {
	*raft.Raft
	stores *Stores
	trans  *raft.InmemTransport
}

func startStoreNode(t *testing.T, dir, kind, name string) *storeNode {
	t.Helper()
	n := &storeNode{stores: mustOpenStores(t, dir, kind)}
	_, n.trans = raft.NewInmemTransportWithTimeout(raft.ServerAddress(name), time.Second)
	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger, conf.TrailingLogs = raft.ServerID(name), hclog.NewNullLogger(), 5
	var err error
	n.Raft, err = raft.NewRaft(conf, &raft.MockFSM{}, n.stores.Log, n.stores.Stable, n.stores.Snapshots, n.trans)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *storeNode) stop(t *testing.T) {
	t.Helper()
	if err := n.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	if err := n.stores.Close(); err != nil {
		t.Fatal(err)
	}
}

func awaitStoreNodes(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !met(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// Goal: under real raft, every entry on every node carries the sum the leader made, and nodes restart from what
// a snapshot and the log have left.
func TestRaftOnStores(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			const size = 3
			dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
			var nodes [size]*storeNode
			var servers []raft.Server
			start := func() {
				for i := range nodes {
					nodes[i] = startStoreNode(t, dirs[i], kind, fmt.Sprint("n", i))
				}
				for _, a := range nodes {
					for _, b := range nodes {
						a.trans.Connect(b.trans.LocalAddr(), b.trans)
					}
				}
				if servers == nil {
					for _, n := range nodes {
						servers = append(servers, raft.Server{ID: raft.ServerID(n.trans.LocalAddr()), Address: n.trans.LocalAddr()})
					}
					if err := nodes[0].BootstrapCluster(raft.Configuration{Servers: servers}).Error(); err != nil {
						t.Fatal(err)
					}
				}
			}
			// A busy machine may change leaders at any time, so every command looks for one until it is through.
			apply := func(low, high int) {
				t.Helper()
				for i := low; i <= high; i++ {
					awaitStoreNodes(t, "a leader to apply", func() bool {
						return slices.ContainsFunc(nodes[:], func(n *storeNode) bool {
							return n.State() == raft.Leader && n.Apply(fmt.Appendf(nil, "command %d", i), time.Minute).Error() == nil
						})
					})
				}
				awaitStoreNodes(t, "all nodes to apply the same", func() bool {
					return !slices.ContainsFunc(nodes[:], func(n *storeNode) bool {
						return n.AppliedIndex() != nodes[0].AppliedIndex() || n.AppliedIndex() != n.LastIndex()
					})
				})
			}

			start()
			apply(1, 30)
			compareStoredLogs(t, nodes[:])
			for _, n := range nodes {
				if err := n.Snapshot().Error(); err != nil {
					t.Fatal(err)
				}
			}
			apply(31, 40)
			for _, n := range nodes {
				n.stop(t)
			}

			start()
			apply(41, 50)
			compareStoredLogs(t, nodes[:])
			for _, n := range nodes {
				n.stop(t)
			}
		})
	}
}

// compareStoredLogs demands the same entries with the same sums wherever two logs overlap.
func compareStoredLogs(t *testing.T, nodes []*storeNode) {
	t.Helper()
	compared := 0
	for _, n := range nodes[1:] {
		for index := uint64(1); index <= nodes[0].AppliedIndex(); index++ {
			var a, b raft.Log
			if nodes[0].stores.Log.GetLog(index, &a) != nil || n.stores.Log.GetLog(index, &b) != nil {
				continue
			}
			if !sameEntry(&a, &b) || len(a.Extensions) != sumSize || !bytes.Equal(a.Extensions, b.Extensions) {
				t.Fatalf("entry %d: % x and % x", index, a.Extensions, b.Extensions)
			}
			compared++
		}
	}
	if compared < 10 {
		t.Fatalf("only %d entries to compare", compared)
	}
}
