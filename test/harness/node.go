//go:build linux

package harness

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Node is one fencekv process, its data directory and the proxy in front of it.
// Kill and Start bring it back with the same data at the same addresses.
type Node struct {
	Name   string
	Client // speaks to the process itself
	Proxy  *Proxy

	t         *testing.T
	args      []string
	addresses []string // that it listens on
	log       string   // path
	running   *exec.Cmd
	exited    chan struct{} // closed when running has ended
}

// Start starts the process. It does not wait for it.
func (n *Node) Start() {
	n.t.Helper()
	if n.running != nil {
		n.t.Fatalf("%s runs already", n.Name)
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	process := exec.Command(os.Getenv(BinaryVariable), n.args...)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		n.t.Fatalf("start %s: %v", n.Name, err)
	}
	exited := make(chan struct{})
	n.running, n.exited = process, exited
	go func() {
		process.Wait() // how it ended is in its log
		close(exited)
	}()
}

// Kill ends the process as a power cut of its machine would, but for the page
// cache of the kernel: SIGKILL, nothing is flushed or closed.
func (n *Node) Kill() {
	n.t.Helper()
	n.signal(syscall.SIGKILL)
	n.gone()
}

// Stop asks the process to stop and waits until it has.
func (n *Node) Stop() {
	n.t.Helper()
	n.signal(syscall.SIGTERM)
	n.gone()
}

// Pause stops the process where it stands, as a long pause of its collector or
// machine would; its connections stay open. Resume lets it go on.
func (n *Node) Pause() {
	n.t.Helper()
	n.signal(syscall.SIGSTOP)
	AwaitStopped(n.t, n.running.Process.Pid)
}

// Resume lets a paused process go on.
func (n *Node) Resume() {
	n.t.Helper()
	n.signal(syscall.SIGCONT)
}

// AwaitStopped waits until the kernel has stopped every thread of a process
// that was sent SIGSTOP.
func AwaitStopped(t testing.TB, pid int) {
	t.Helper()
	Await(t, fmt.Sprintf("process %d to stop", pid), func() bool {
		threads, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
		for _, thread := range threads {
			if !stopped(thread) {
				return false
			}
		}
		return err == nil && len(threads) > 0
	})
}

// stopped reads the state of a thread: in its stat, behind the name in brackets.
func stopped(stat string) bool {
	line, err := os.ReadFile(stat)
	end := bytes.LastIndexByte(line, ')')
	return err == nil && end > 0 && bytes.HasPrefix(line[end:], []byte(") T"))
}

func (n *Node) signal(s syscall.Signal) {
	n.t.Helper()
	if n.running == nil {
		n.t.Fatalf("%s does not run", n.Name)
	}
	if err := n.running.Process.Signal(s); err != nil {
		n.t.Fatalf("send %s to %s: %v", s, n.Name, err)
	}
}

func (n *Node) gone() {
	n.t.Helper()
	select {
	case <-n.exited:
		n.running = nil
	case <-time.After(Patience):
		n.t.Fatalf("%s does not end", n.Name)
	}
}

// Runs reports whether the process was started and has not ended.
func (n *Node) Runs() bool {
	if n.running == nil {
		return false
	}
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// Ready reports whether the node can serve a linearizable read now.
func (n *Node) Ready() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	a, err := n.Do(ctx, "GET", "/readyz", nil, "")
	return err == nil && a.Status == http.StatusOK
}

// AwaitReady waits for Ready, and fails the test at once when the process ends.
func (n *Node) AwaitReady() {
	n.t.Helper()
	Await(n.t, n.Name+" to be ready", func() bool {
		if !n.Runs() {
			n.t.Fatalf("%s has ended", n.Name)
		}
		return n.Ready()
	})
}

// showLog writes the end of the process's log to the test.
func (n *Node) showLog() {
	const most = 6 << 10
	log, err := os.ReadFile(n.log)
	if err != nil {
		n.t.Log(err)
		return
	}
	if len(log) > most {
		log = log[len(log)-most:]
		log = log[bytes.IndexByte(log, '\n')+1:]
	}
	n.t.Logf("end of the log of %s:\n%s", n.Name, log)
}
