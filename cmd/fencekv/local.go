package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// localCluster is a cluster of real fencekv processes on this machine, run from
// this binary. It serves dev, and drill where a story kills nodes.
type localCluster struct {
	dir   string
	nodes []*localNode
}

// localNode is one process. Its data, ports and log outlive it.
type localNode struct {
	name string
	http string // host:port
	raft string
	dir  string
	args []string

	mu     sync.Mutex
	cmd    *exec.Cmd // nil while it is down
	exited chan error
}

// newLocalCluster lays out n nodes under dir. Node i listens on base+10·i and the
// port after it; base 0 takes free ports.
func newLocalCluster(dir string, n, base int, extra ...string) (*localCluster, error) {
	c := &localCluster{dir: dir}
	var peers []string
	for i := range n {
		web, raft := base+10*i, base+10*i+1
		if base == 0 {
			ports, err := freePorts(2)
			if err != nil {
				return nil, err
			}
			web, raft = ports[0], ports[1]
		}
		node := &localNode{
			name: fmt.Sprintf("n%d", i+1),
			http: fmt.Sprintf("127.0.0.1:%d", web),
			raft: fmt.Sprintf("127.0.0.1:%d", raft),
		}
		node.dir = filepath.Join(dir, node.name)
		c.nodes = append(c.nodes, node)
		peers = append(peers, node.name+"="+node.url())
	}
	for _, node := range c.nodes {
		node.args = append([]string{
			"serve", "--name", node.name, "--data", node.dir,
			"--http", node.http, "--raft", node.raft,
		}, extra...)
		if n > 1 {
			node.args = append(node.args, "--peers", strings.Join(peers, ","))
		}
	}
	return c, nil
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (n *localNode) url() string { return "http://" + n.http }

func (n *localNode) logPath() string { return filepath.Join(n.dir, "node.log") }

// start runs the node's process; its output goes to its log.
func (n *localNode) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.Command(self, n.args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: Ctrl-C in the terminal must reach dev alone, which
	// then stops the nodes in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	exited := make(chan error, 1)
	n.cmd, n.exited = cmd, exited
	go func() {
		err := cmd.Wait()
		n.mu.Lock()
		n.cmd = nil
		n.mu.Unlock()
		exited <- err
	}()
	return nil
}

// signal sends s to the process, if it runs.
func (n *localNode) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s)
	}
}

// kill ends the process with SIGKILL and waits until it is gone.
func (n *localNode) kill() {
	exited := n.ended()
	n.signal(syscall.SIGKILL)
	<-exited
}

// ended returns the channel that gets the process's end; filled already if it
// does not run.
func (n *localNode) ended() <-chan error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		gone := make(chan error, 1)
		gone <- nil
		return gone
	}
	return n.exited
}

// ready waits until the node can serve a linearizable read.
func (n *localNode) ready(ctx context.Context) error {
	client := &http.Client{Timeout: 3 * time.Second}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url()+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		n.mu.Lock()
		down := n.cmd == nil
		n.mu.Unlock()
		if down {
			return fmt.Errorf("%s ended before it was ready; see %s", n.name, n.logPath())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; see %s", n.name, ctx.Err(), n.logPath())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// start runs all nodes and waits until each is ready.
func (c *localCluster) start(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stop asks all nodes to leave in good order and kills those that have not
// after grace.
func (c *localCluster) stop(grace time.Duration) error {
	var errs []error
	deadline := time.After(grace)
	for _, n := range c.nodes {
		exited := n.ended()
		n.signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-deadline:
			n.kill()
			errs = append(errs, fmt.Errorf("%s did not stop within %s and was killed", n.name, grace))
		}
	}
	return errors.Join(errs...)
}

func (c *localCluster) urls() []string {
	var urls []string
	for _, n := range c.nodes {
		urls = append(urls, n.url())
	}
	return urls
}
