package httpapi_test

import (
	"context"
	"sync"
	"time"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
)

// fakeNode is a cluster of one in memory: it applies what is proposed to a real
// State at once. Its clock stands still until a test moves it.
type fakeNode struct {
	name string
	url  string // advertised

	mu      sync.Mutex
	changed chan struct{} // closed with each change
	state   *fsm.State
	index   uint64
	clockMs int64
	leader  cluster.Peer // zero: unknown
	through *fakeNode    // the leader, where commands can be carried to it
	err     error        // what Propose, Read and the changes of members answer instead
	age     time.Duration
	asked   []string      // changes of members
	hold    chan struct{} // not nil: a change of members waits until it is closed
}

func newFakeNode(name, url string) *fakeNode {
	n := &fakeNode{name: name, url: url, changed: make(chan struct{}), state: fsm.New(), clockMs: 1_000}
	n.leader = cluster.Peer{Name: name, HTTPAddress: url}
	return n
}

func (n *fakeNode) Propose(ctx context.Context, patience time.Duration, c *fsm.Command) (fsm.Decision, error) {
	if err := fsm.Validate(c); err != nil {
		return fsm.Decision{}, err
	}
	leads := n.IsLeader()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.err != nil:
		return fsm.Decision{}, n.err
	case leads:
		return n.apply(c), nil
	case n.through != nil && n.through.IsLeader():
		return n.through.Propose(ctx, patience, c)
	}
	return fsm.Decision{}, &cluster.Error{Reason: cluster.NoLeader, RetryAfter: time.Second}
}

func (n *fakeNode) apply(c *fsm.Command) fsm.Decision {
	n.index++
	c.Stamp = fsm.Stamp{Term: 1, ClockMs: n.clockMs, WallMs: 1_764_000_000_000 + n.clockMs}
	next, d := n.state.Apply(fsm.Position{Index: n.index, Term: 1}, c)
	n.state = next
	close(n.changed)
	n.changed = make(chan struct{})
	return d
}

// pass moves the clock and lets what is due end.
func (n *fakeNode) pass(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clockMs += d.Milliseconds()
	n.apply(&fsm.Command{Op: &fsm.Tick{}})
}

func (n *fakeNode) Await(ctx context.Context, resource, requestID string) (fsm.Decision, error) {
	for {
		n.mu.Lock()
		state, changed := n.state, n.changed
		n.mu.Unlock()
		if state.Waiter(resource, requestID) == nil {
			return state.Granted(resource, requestID), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			n.mu.Lock()
			defer n.mu.Unlock()
			n.apply(fsm.NewCommand(fsm.Request{ID: requestID}, &fsm.Withdraw{Resource: resource}))
			return fsm.Decision{}, &cluster.Error{Reason: cluster.TimedOut, Unknown: true, Err: ctx.Err()}
		}
	}
}

func (n *fakeNode) Read(context.Context) (*fsm.State, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, n.err
}

func (n *fakeNode) Stale() (*fsm.State, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, n.age
}

func (n *fakeNode) Settings() fsm.Settings {
	state, _ := n.Stale()
	return state.Settings()
}

func (n *fakeNode) Leader() (cluster.Peer, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leader, n.leader.Name != ""
}

func (n *fakeNode) IsLeader() bool {
	leader, known := n.Leader()
	return known && leader.Name == n.name
}

func (n *fakeNode) follow(leader cluster.Peer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leader = leader
}

func (n *fakeNode) failWith(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

func (n *fakeNode) Status() cluster.Status {
	leader, _ := n.Leader()
	return cluster.Status{Name: n.name, ServerID: n.name + "-1", ClusterID: "c1", Role: "leader", Build: "test", LogStore: "wal", Term: 1, Leader: leader}
}

func (n *fakeNode) Members() []cluster.MemberStatus {
	return []cluster.MemberStatus{{Name: n.name, ServerID: n.name + "-1", HTTPAddress: n.url, Voter: true, Leader: n.IsLeader()}}
}

func (n *fakeNode) Join(ctx context.Context, j cluster.Joiner) (cluster.Joined, error) {
	return cluster.Joined{ClusterID: "c1", Servers: []string{n.name + "-1"}}, n.ask(ctx, "join "+j.Name)
}

func (n *fakeNode) Remove(ctx context.Context, name string) error { return n.ask(ctx, "remove "+name) }

func (n *fakeNode) Transfer(ctx context.Context, name string) error {
	return n.ask(ctx, "transfer "+name)
}

func (n *fakeNode) ask(ctx context.Context, what string) error {
	if n.hold != nil {
		<-n.hold
	}
	if ctx.Err() != nil {
		return &cluster.Error{Reason: cluster.Lost, Unknown: true, Err: ctx.Err()}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil {
		n.asked = append(n.asked, what)
	}
	return n.err
}

func (n *fakeNode) Hello() cluster.Hello {
	return cluster.Hello{Name: n.name, ServerID: n.name + "-1", ClusterID: "c1", HTTPAddress: n.url}
}
