package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
)

// tcpCluster is nodes with real stores and real ports in this process. Only the
// greeting goes past HTTP: httpapi is not this package's to serve.
type tcpCluster struct {
	t     *testing.T
	log   string // log store
	mu    sync.Mutex
	nodes map[string]*tcpNode // under mu where nodes greet each other; only the test writes
}

type tcpNode struct {
	options cluster.Options
	process atomic.Pointer[cluster.Process] // nil while stopped
}

func newTCPCluster(t *testing.T, logStore string, names ...string) *tcpCluster {
	t.Helper()
	c := &tcpCluster{t: t, log: logStore, nodes: map[string]*tcpNode{}}
	expect := map[string]string{}
	for _, name := range names {
		expect[name] = name
	}
	for _, name := range names {
		c.add(name, func(o *cluster.Options) { o.Expect = expect })
	}
	for _, name := range names {
		c.start(name)
	}
	t.Cleanup(c.close)
	return c
}

func (c *tcpCluster) add(name string, set func(*cluster.Options)) {
	o := cluster.Options{
		Name: name, Dir: filepath.Join(c.t.TempDir(), name), HTTPAddress: "http://" + name,
		RaftBind: freeAddress(c.t), LogStore: c.log, RTT: 20 * time.Millisecond, Build: "test",
		Logger: hclog.NewNullLogger(), Greet: c.greet, AskJoin: c.askJoin,
	}
	set(&o)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = &tcpNode{options: o}
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (c *tcpCluster) start(name string) {
	c.t.Helper()
	process, err := cluster.Open(c.nodes[name].options)
	if err != nil {
		c.t.Fatalf("open %s: %v", name, err)
	}
	c.nodes[name].process.Store(process)
}

func (c *tcpCluster) stop(name string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if p := c.nodes[name].process.Load(); p != nil {
		if err := p.Close(ctx); err != nil {
			c.t.Errorf("close %s: %v", name, err)
		}
		c.nodes[name].process.Store(nil)
	}
}

func (c *tcpCluster) close() {
	for name := range c.nodes {
		c.stop(name)
	}
}

func (c *tcpCluster) greet(_ context.Context, url string) (cluster.Hello, error) {
	c.mu.Lock()
	n := c.nodes[url]
	c.mu.Unlock()
	if n != nil {
		if p := n.process.Load(); p != nil {
			return p.Hello(), nil
		}
	}
	return cluster.Hello{}, errors.New("nobody there")
}

func (c *tcpCluster) askJoin(ctx context.Context, _ string, j cluster.Joiner) (cluster.Joined, error) {
	return c.leader().Join(ctx, j)
}

// leader waits for the node that leads.
func (c *tcpCluster) leader() *cluster.Process {
	c.t.Helper()
	var found *cluster.Process
	c.until("a leader", func() bool {
		for _, n := range c.nodes {
			if p := n.process.Load(); p != nil && p.IsLeader() {
				found = p
			}
		}
		return found != nil
	})
	return found
}

func (c *tcpCluster) until(what string, reached func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !reached() {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited a minute for %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// put writes under one request ID until a leader decides.
func (c *tcpCluster) put(id, key, value string) fsm.Decision {
	c.t.Helper()
	var d fsm.Decision
	c.until("a decision on "+id, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var err error
		d, err = c.leader().Propose(ctx, time.Minute, fsm.NewCommand(fsm.Request{ID: id}, &fsm.Put{Key: key, Value: []byte(value)}))
		return err == nil
	})
	return d
}

// holds checks that every running node reads value at key.
func (c *tcpCluster) holds(key, value string) {
	c.t.Helper()
	for name, n := range c.nodes {
		p := n.process.Load()
		if p == nil {
			continue
		}
		c.until(fmt.Sprintf("%s to read %s", name, key), func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			state, err := p.Read(ctx)
			if err != nil {
				return false
			}
			if e := state.Entry(key); e == nil || string(e.Now.Data) != value {
				c.t.Fatalf("%s reads %v at %s, want %q", name, e, key, value)
			}
			return true
		})
	}
}

// TestThreeNodes: three fresh nodes found one cluster, keep what they
// acknowledged over a restart of each and of all, on both log stores.
func TestThreeNodes(t *testing.T) {
	for _, logStore := range []string{cluster.LogStoreWAL, cluster.LogStoreBolt} {
		t.Run(logStore, func(t *testing.T) {
			c := newTCPCluster(t, logStore, "n1", "n2", "n3")
			first := c.put("1", "k", "a")
			c.holds("k", "a")
			for _, name := range []string{"n1", "n2", "n3"} {
				c.stop(name)
				c.put("while-"+name, "k", name)
				c.start(name)
				c.holds("k", name)
			}
			for _, name := range []string{"n1", "n2", "n3"} {
				c.stop(name)
			}
			for _, name := range []string{"n1", "n2", "n3"} {
				c.start(name)
			}
			c.holds("k", "n3")
			if again := c.put("1", "k", "a"); again.Outcome != fsm.OutcomeReplayed || again.Revision != first.Revision {
				t.Fatalf("a resend after all restarted: %+v", again)
			}
			ids := map[string]bool{}
			for _, n := range c.nodes {
				ids[n.process.Load().ClusterID()] = true
			}
			if len(ids) != 1 || ids[""] {
				t.Fatalf("cluster IDs %v", ids)
			}
		})
	}
}

// TestWipedNode: a node whose directory was lost must not vote again; under a
// new identity it may join after the old member was removed.
func TestWipedNode(t *testing.T) {
	c := newTCPCluster(t, cluster.LogStoreWAL, "n1", "n2", "n3")
	c.put("1", "k", "a")
	c.stop("n3")
	if err := os.RemoveAll(c.nodes["n3"].options.Dir); err != nil {
		t.Fatal(err)
	}
	c.start("n3")
	wiped := c.nodes["n3"].process.Load()
	<-wiped.Done()
	if err := wiped.Err(); !errors.Is(err, cluster.ErrNotExpected) || !strings.Contains(err.Error(), "--join") {
		t.Fatalf("the wiped node says %v", err)
	}
	c.stop("n3")

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.leader().Remove(ctx, "n3"); err != nil {
		t.Fatal(err)
	}
	c.nodes["n3"].options.Expect, c.nodes["n3"].options.Join = nil, "n1"
	c.start("n3")
	c.until("n3 to vote", func() bool {
		for _, m := range c.leader().Members() {
			if m.Name == "n3" {
				return m.Voter
			}
		}
		return false
	})
	c.put("2", "k", "b")
	c.holds("k", "b")
}

// TestHalfWipedNode: an identity beside lost Raft state is a node that forgot
// its votes; Raft state beside a lost identity is nobody's.
func TestHalfWipedNode(t *testing.T) {
	c := newTCPCluster(t, cluster.LogStoreWAL, "n1")
	c.put("1", "k", "a")
	c.stop("n1")
	o := c.nodes["n1"].options
	aside := filepath.Join(t.TempDir(), "aside")
	for _, lost := range []string{"raft", "identity.json"} {
		if err := os.Rename(filepath.Join(o.Dir, lost), aside); err != nil {
			t.Fatal(err)
		}
		if p, err := cluster.Open(o); err == nil || !strings.Contains(err.Error(), "rejoin") {
			t.Errorf("without %s the node starts: %v, %v", lost, p, err)
		}
		if err := os.RemoveAll(filepath.Join(o.Dir, lost)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, filepath.Join(o.Dir, lost)); err != nil {
			t.Fatal(err)
		}
	}
	c.start("n1")
	c.holds("k", "a")
}

// TestDirectoryInUse: a second process on the same directory is refused at once.
func TestDirectoryInUse(t *testing.T) {
	c := newTCPCluster(t, cluster.LogStoreWAL, "n1")
	c.put("1", "k", "a")
	if _, err := cluster.Open(c.nodes["n1"].options); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("second open: %v", err)
	}
	c.holds("k", "a")
}

// TestRemovedNode: a removed member stops and says so.
func TestRemovedNode(t *testing.T) {
	c := newTCPCluster(t, cluster.LogStoreWAL, "n1", "n2", "n3")
	c.put("1", "k", "a")
	leader := c.leader()
	victim := "n1"
	if leader == c.nodes["n1"].process.Load() {
		victim = "n2"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := leader.Remove(ctx, victim); err != nil {
		t.Fatal(err)
	}
	<-c.nodes[victim].process.Load().Done()
	var removed *cluster.Error
	if err := c.nodes[victim].process.Load().Err(); !errors.As(err, &removed) || removed.Reason != cluster.Removed {
		t.Fatalf("the removed node says %v", err)
	}
	c.put("2", "k", "b")
}
