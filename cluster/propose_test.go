package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
)

// future is Raft's answer to a proposal, made up.
type future struct {
	raft.ApplyFuture
	err      error
	response any
}

func (f future) Error() error  { return f.err }
func (f future) Response() any { return f.response }

// TestConclude: only what certainly never entered the log is not applied. Any
// other error, those nobody has thought of included, leaves the outcome open.
func TestConclude(t *testing.T) {
	decision := &fsm.Decision{Code: fsm.Written}
	for _, c := range []struct {
		name    string
		future  future
		reason  Reason // empty: decided
		unknown bool
	}{
		{"decided", future{response: decision}, "", false},
		{"not the leader", future{err: raft.ErrNotLeader}, NoLeader, false},
		{"handing over", future{err: raft.ErrLeadershipTransferInProgress}, NoLeader, false},
		{"queue full", future{err: raft.ErrEnqueueTimeout}, Overloaded, false},
		{"wrapped", future{err: fmt.Errorf("apply: %w", raft.ErrNotLeader)}, NoLeader, false},
		{"leadership lost", future{err: raft.ErrLeadershipLost}, Lost, true},
		{"shut down", future{err: raft.ErrRaftShutdown}, Lost, true},
		{"aborted by a restore", future{err: raft.ErrAbortedByRestore}, Lost, true},
		{"disk", future{err: errors.New("write log: input/output error")}, Lost, true},
		{"state machine stopped", future{response: errBroken}, Lost, true},
		{"no response", future{}, Lost, true},
	} {
		got := conclude(c.future)
		var known *Error
		switch {
		case c.reason == "":
			if got.err != nil || got.decision != decision {
				t.Errorf("%s: %+v, want the decision", c.name, got)
			}
		case !errors.As(got.err, &known) || known.Reason != c.reason || known.Unknown != c.unknown:
			t.Errorf("%s: %v, want %s, unknown %v", c.name, got.err, c.reason, c.unknown)
		}
	}
}

// leading returns a node that believes it leads and whose proposer does not run.
func leading(maxPending int, maxBytes int64) *Node {
	n := &Node{
		cfg: Config{MaxPending: maxPending, MaxPendingBytes: maxBytes}, queue: make(chan *proposal, maxPending), down: make(chan struct{}),
	}
	n.lead.Store(&leadership{ended: make(chan struct{})})
	return n
}

func command(id string) *fsm.Command {
	return fsm.NewCommand(fsm.Request{ID: id}, &fsm.Put{Key: "k", Value: []byte("v")})
}

// TestPatience: a command is given up when its time is over, and what that means
// depends on whether it was taken before.
func TestPatience(t *testing.T) {
	for _, taken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, begin := leading(1, 1<<20), time.Now()
			done := make(chan error, 1)
			go func() { _, err := n.Propose(context.Background(), time.Second, command("r")); done <- err }()
			if p := <-n.queue; taken {
				p.take()
			}
			var known *Error
			if err := <-done; !errors.As(err, &known) || known.Reason != TimedOut || known.Unknown != taken {
				t.Errorf("%v, want timed out, unknown %v", err, taken)
			}
			if waited := time.Since(begin); waited != time.Second {
				t.Errorf("gave up after %s", waited)
			}
		})
	}
}

// TestGivingUp: a caller that leaves while its proposal still waits knows that
// it was not applied; one that leaves after the proposer took it does not know.
func TestGivingUp(t *testing.T) {
	ends := map[string]func(n *Node, cancel func()){
		"context":  func(_ *Node, cancel func()) { cancel() },
		"shutdown": func(n *Node, _ func()) { close(n.down) },
	}
	for name, end := range ends {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, taken %v", name, taken), func(t *testing.T) {
				n := leading(1, 1<<20)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { _, err := n.Propose(ctx, time.Minute, command("r")); done <- err }()
				p := <-n.queue
				if taken && !p.take() {
					t.Fatal("the proposal was taken before")
				}
				end(n, cancel)
				var known *Error
				if err := <-done; !errors.As(err, &known) || known.Unknown != taken {
					t.Errorf("%v, want unknown %v", err, taken)
				}
				if !taken && p.take() {
					t.Error("a proposal that was given up can still be proposed")
				}
			})
		}
	}
}

// TestAnswerBeatsGivingUp: an answer that is there counts, whatever else ended
// at the same moment.
func TestAnswerBeatsGivingUp(t *testing.T) {
	for range 50 {
		n := leading(1, 1<<20)
		done := make(chan error, 1)
		go func() { _, err := n.Propose(context.Background(), time.Minute, command("r")); done <- err }()
		p := <-n.queue
		p.take()
		p.answer <- answer{decision: &fsm.Decision{}}
		close(n.down)
		if err := <-done; err != nil {
			t.Fatalf("the answer was there, and the caller got %v", err)
		}
	}
}

// TestProposeRefusesEarly: nothing waits that nobody will wait for, and what is
// refused was not applied.
func TestProposeRefusesEarly(t *testing.T) {
	one := int64(len(fsm.Encode(command("r"))))
	full := leading(1, 1<<20)
	full.queue <- &proposal{}
	heavy := leading(8, one-1)
	follower := leading(8, 1<<20)
	follower.lead.Store(nil)
	for name, c := range map[string]struct {
		node   *Node
		reason Reason
	}{
		"queue full":     {full, Overloaded},
		"too many bytes": {heavy, Overloaded},
		"not formed yet": {follower, NotReady},
	} {
		var known *Error
		_, err := c.node.Propose(t.Context(), time.Minute, command("r"))
		if !errors.As(err, &known) || known.Unknown || known.Reason != c.reason {
			t.Errorf("%s: %v, want %s, not applied", name, err, c.reason)
		}
		if used := c.node.bytes.Load(); used != 0 {
			t.Errorf("%s: %d bytes stay reserved", name, used)
		}
	}
	var invalid *fsm.InvalidError
	if _, err := leading(1, 1).Propose(t.Context(), time.Minute, fsm.NewCommand(fsm.Request{}, &fsm.Put{})); !errors.As(err, &invalid) {
		t.Errorf("an invalid command: %v", err)
	}
}

// TestGroupBounds: a group holds no more entries than one AppendEntries and no
// more bytes than one heartbeat may wait for.
func TestGroupBounds(t *testing.T) {
	for name, c := range map[string]struct{ size, want int }{
		"many":  {10, maxGroup},
		"large": {maxGroupBytes / 4, 4},
		"one":   {2 * maxGroupBytes, 1},
	} {
		n := leading(4*maxGroup, 1<<40)
		entry := make([]byte, c.size)
		for range 4 * maxGroup {
			n.bytes.Add(int64(c.size))
			n.queue <- &proposal{entry: entry}
		}
		group := n.gather([]*proposal{<-n.queue})
		if len(group) != c.want {
			t.Errorf("%s: a group of %d, want %d", name, len(group), c.want)
		}
		if left := n.bytes.Load(); left != int64(c.size*(4*maxGroup-len(group))) {
			t.Errorf("%s: %d bytes reserved for %d proposals", name, left, 4*maxGroup-len(group))
		}
	}
}
