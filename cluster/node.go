package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
)

// Node is one member of the cluster: a Raft server, the state machine it feeds,
// and the duties around both.
type Node struct {
	cfg   Config
	log   hclog.Logger
	raft  atomic.Pointer[raft.Raft] // nil while the node is forming
	store *store
	queue chan *proposal
	bytes atomic.Int64 // of the proposals in queue
	reads rounds
	lead  atomic.Pointer[leadership] // nil unless this node may propose
	wake  chan struct{}              // something the leader loop should look at

	clusterID atomic.Pointer[string] // empty until the node has adopted one

	cancel context.CancelFunc
	ctx    context.Context // ends when the node stops
	tasks  sync.WaitGroup

	down     chan struct{} // closed when Raft shuts down, by our hand or its own
	failOnce sync.Once
	done     chan struct{}
	err      error // set before done closes
}

// Start runs a node. It returns at once; a node without Raft state forms or
// joins its cluster in the background and is not ready until then. Whatever
// ends the node by itself closes Done.
func Start(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cluster config: %w", err)
	}
	self := *cfg.Identity // SaveClusterID may write to the caller's
	cfg.Identity = &self
	start, err := plan(cfg)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: cfg.Logger.Named("cluster"),
		queue: make(chan *proposal, cfg.MaxPending),
		wake:  make(chan struct{}, 1),
		down:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	n.clusterID.Store(&self.ClusterID)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.store = newStore(n.fail, n.poke)
	n.run(func() {
		if err := start(n); err != nil {
			n.fail(err)
		}
		if n.raft.Load() == nil {
			return
		}
		n.run(func() { n.untilDown(n.propose) })
		n.run(n.leadLoop)
		n.run(n.announce)
		n.run(n.snapshotByAge)
	})
	return n, nil
}

func (n *Node) run(task func()) {
	n.tasks.Add(1)
	go func() {
		defer n.tasks.Done()
		task()
	}()
}

// untilDown runs what waits for answers of Raft and reports whether it came to
// its end: a Raft that shuts down never answers what still stands in its queue.
func (n *Node) untilDown(task func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		task()
	}()
	select {
	case <-ended:
		return true
	case <-n.down:
		return false
	}
}

// startRaft opens Raft on the node's stores and takes up its state.
func (n *Node) startRaft() error {
	r, err := raft.NewRaft(n.cfg.raftConfig(), n.store, n.cfg.Stores.Log, n.cfg.Stores.Stable, n.cfg.Stores.Snapshots, n.cfg.Raft)
	if err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	// Its state says Shutdown for a moment only when it led before.
	r.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if state, ok := o.Data.(raft.RaftState); ok && state == raft.Shutdown {
			close(n.down)
		}
		return false
	}))
	n.raft.Store(r)
	n.log.Info("raft started", "server", n.cfg.Identity.ServerID(), "cluster", n.ClusterID())
	return nil
}

// fail stops the node for a reason that it cannot live with: damaged bytes, a
// stalled disk, an entry it cannot read, removal from the cluster. The first
// reason stays.
func (n *Node) fail(err error) {
	n.failOnce.Do(func() {
		n.err = err
		if err != nil {
			n.log.Error("node stops", "reason", err)
		}
		n.leave()
		n.cancel()
		// A hung disk would keep raft's own shutdown waiting; a closed
		// transport lets the others elect a leader now.
		if t, ok := n.cfg.Raft.(raft.WithClose); ok {
			_ = t.Close()
		}
		close(n.done)
	})
}

// Fail stops the node for an outside reason, such as a fault of its stores.
func (n *Node) Fail(err error) { n.fail(err) }

// Done is closed when the node stopped by itself or was closed; Err says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node stopped by itself; nil while it runs and after Close.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// Close leaves in good order: no new proposals; leadership handed over, so that
// the others need not wait for an election; what is in flight answered, for
// which Raft still has to run; Raft stopped; the transport closed last. It waits
// for each step no longer than ctx. The stores are the caller's to close
// afterwards.
func (n *Node) Close(ctx context.Context) error {
	n.HandOver()
	n.leave()
	n.cancel()
	err := within(ctx, func() error { n.tasks.Wait(); return nil })
	if r := n.raft.Load(); r != nil {
		err = errors.Join(err, within(ctx, func() error { return r.Shutdown().Error() }))
	}
	n.fail(nil)
	return err
}

// HandOver gives leadership to another voter, if this node leads and there is
// one. Raft bounds it by its election timeout.
func (n *Node) HandOver() {
	if n.lead.Load() == nil || len(n.voters()) < 2 {
		return
	}
	if err := n.raft.Load().LeadershipTransfer().Error(); err != nil {
		n.log.Warn("leadership not handed over", "error", err)
	}
}

func within(ctx context.Context, step func() error) error {
	done := make(chan error, 1)
	go func() { done <- step() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// snapshotByAge takes a snapshot at least once per SnapshotMaxAge if anything
// changed: a cluster with few writes would otherwise never reach the number of
// entries and its log would grow without bound.
func (n *Node) snapshotByAge() {
	tick := time.NewTicker(n.cfg.SnapshotMaxAge)
	defer tick.Stop()
	last := n.store.head.Load().Index
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-tick.C:
		}
		if index := n.store.head.Load().Index; index != last {
			last = index
			if err := n.raft.Load().Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
				n.log.Warn("snapshot by age", "error", err)
			}
		}
	}
}

func (n *Node) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Settings returns the settings in force, as far as this node has applied them.
func (n *Node) Settings() fsm.Settings { return n.store.head.Load().Settings }

// Stale returns this node's own state and its age: how long ago the leader was
// last heard, 0 on the leader. The state may be older than the age says only by
// what the leader had not yet sent.
func (n *Node) Stale() (*fsm.State, time.Duration) {
	age := n.age()
	return n.store.state(), age
}

func (n *Node) age() time.Duration {
	if n.lead.Load() != nil {
		return 0
	}
	if r := n.raft.Load(); r != nil {
		if last := r.LastContact(); !last.IsZero() {
			return time.Since(last)
		}
	}
	return n.cfg.Elapsed()
}
