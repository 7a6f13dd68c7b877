//go:build linux

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Cluster is a cluster of real processes. It ends with its test, which shows
// the end of each node's log if it failed.
type Cluster struct {
	Nodes []*Node
	t     *testing.T
	dir   string
}

// Start starts a fresh cluster of size nodes, n1, n2, …, with extra flags for
// each, and waits until every node is ready.
func Start(t *testing.T, size int, flags ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir()} // made first, so that its logs are there when c ends
	t.Cleanup(c.end)
	for try := range 3 {
		c.make(filepath.Join(c.dir, strconv.Itoa(try)), size, flags)
		if c.first() {
			return c
		}
		t.Log("somebody took a port between its choice and its use; choosing anew")
		c.end()
	}
	t.Fatal("three times somebody took a chosen port")
	return nil
}

// make prepares nodes at new addresses and starts them.
func (c *Cluster) make(dir string, size int, flags []string) {
	c.t.Helper()
	addresses, err := freeAddresses(2 * size)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	var peers []string
	for i := range size {
		peers = append(peers, fmt.Sprintf("n%d=http://%s", i+1, addresses[2*i]))
	}
	c.Nodes = nil
	for i := range size {
		name, mine := fmt.Sprintf("n%d", i+1), addresses[2*i:2*i+2]
		n := &Node{
			Name: name, t: c.t, Client: newClient("http://" + mine[0]), Proxy: newProxy(c.t, mine[0]),
			addresses: mine, log: filepath.Join(dir, name+".log"),
			args: append([]string{
				"serve", "--name", name, "--data", filepath.Join(dir, name),
				"--http", mine[0], "--raft", mine[1], "--peers", strings.Join(peers, ","),
			}, flags...),
		}
		c.Nodes = append(c.Nodes, n)
		n.Start()
	}
}

// first waits for the first time all nodes are ready. It returns false when one
// has ended for want of its port; any other end fails the test.
func (c *Cluster) first() bool {
	c.t.Helper()
	clash := false
	Await(c.t, "the cluster to be ready", func() bool {
		for _, n := range c.Nodes {
			if n.Runs() {
				continue
			}
			if clash = slices.ContainsFunc(n.addresses, taken); !clash {
				c.t.Fatalf("%s has ended", n.Name)
			}
			return true
		}
		return !slices.ContainsFunc(c.Nodes, func(n *Node) bool { return !n.Ready() })
	})
	return !clash
}

// Leader waits until one running node says that it leads and is ready, and
// returns it.
func (c *Cluster) Leader() *Node {
	c.t.Helper()
	var leader *Node
	Await(c.t, "a leader", func() bool {
		i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.Runs() && n.Role() == "leader" && n.Ready() })
		if i >= 0 {
			leader = c.Nodes[i]
		}
		return i >= 0
	})
	return leader
}

// Others returns the nodes beside n.
func (c *Cluster) Others(n *Node) []*Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(other *Node) bool { return other == n })
}

// AwaitReady waits until every node is ready.
func (c *Cluster) AwaitReady() {
	c.t.Helper()
	for _, n := range c.Nodes {
		n.AwaitReady()
	}
}

// end kills what runs; the data goes with the test's directory.
func (c *Cluster) end() {
	for _, n := range c.Nodes {
		if n.Runs() {
			n.Kill()
		}
		n.Proxy.Close()
		n.CloseIdle()
		if c.t.Failed() {
			n.showLog()
		}
	}
}
