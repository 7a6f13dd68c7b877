package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
)

// Stories about moments that random faults hardly ever meet. Each is tried until
// it has come about as told, and must then hold.
const tries = 20

// tell runs a story in bubbles of simulated time until it reports that it came
// about.
func tell(t *testing.T, story func(w *simWorld, net *simNet) bool) {
	t.Helper()
	for seed := range uint64(tries) {
		happened := false
		synctest.Test(t, func(t *testing.T) {
			net := newSimNet(t, seed, "n1", "n2", "n3")
			defer net.close()
			happened = story(&simWorld{t: t, net: net, tokens: map[uint64]bool{}, begun: time.Now()}, net)
		})
		if happened || t.Failed() {
			return
		}
	}
	t.Fatalf("in %d tries the story never came about", tries)
}

// await waits for a leader, other than one that is out of office, to be ready.
func (w *simWorld) await(not string) string {
	for range 2_000 {
		for _, name := range w.net.names {
			if node := w.net.node(name); name != not && node != nil && node.IsLeader() {
				return name
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	w.t.Fatal("nobody leads")
	return ""
}

func (w *simWorld) put(name, id string) (fsm.Decision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return w.net.node(name).Propose(ctx, time.Minute, fsm.NewCommand(fsm.Request{ID: id}, &fsm.Put{Key: "k", Value: []byte(id)}))
}

// read checks that a read of the node, if it succeeds, holds the revision.
func (w *simWorld) read(name string, revision uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if state, err := w.net.node(name).Read(ctx); err == nil && state.Revision() < revision {
		w.t.Errorf("%s answered a read with revision %d after %d was acknowledged", name, state.Revision(), revision)
	}
}

// Goal: a leader that others have replaced answers no read, although it still
// believes in its lease: the answers to its last heartbeats were held up on the
// way and come in one by one, and each looks like fresh support.
func TestDeposedLeaderReadsNothing(t *testing.T) {
	tell(t, func(w *simWorld, net *simNet) bool {
		old := w.await("")
		if _, err := w.put(old, "first"); err != nil {
			return false
		}
		begin, held := time.Now(), time.Duration(0)
		net.govern(func(m simMessage) (time.Duration, bool) {
			switch {
			case !m.raft || m.from != old && m.to != old:
				return 0, false
			case m.to == old && m.answer:
				held++
				return max(0, held*240*time.Millisecond-time.Since(begin)), false
			case m.from == old && !m.answer && held < 4:
				return 0, false // one request each of heartbeat and replication to both
			}
			return 0, true
		})
		next := w.await(old)
		second, err := w.put(next, "second")
		if err != nil {
			return false
		}
		happened := false
		var readers sync.WaitGroup
		for net.node(old).IsLeader() {
			happened = true
			readers.Go(func() { w.read(old, second.Revision) })
			time.Sleep(5 * time.Millisecond)
		}
		readers.Wait()
		return happened
	})
}

// Goal: a new leader answers no read before it has applied what its predecessor
// acknowledged, although it has won the election and a quorum confirms its term.
func TestFreshLeaderReadsEverything(t *testing.T) {
	tell(t, func(w *simWorld, net *simNet) bool {
		old := w.await("")
		acknowledged, err := w.put(old, "w")
		if err != nil {
			return false
		}
		net.isolate(old)
		happened := true
		for _, name := range net.names {
			if state, _ := net.node(name).Stale(); name != old && state.Revision() >= acknowledged.Revision {
				happened = false // the others heard of the commit already
			}
		}
		net.crash(old)
		net.heal()
		net.govern(func(m simMessage) (time.Duration, bool) {
			if m.raft {
				return 50 * time.Millisecond, false
			}
			return 0, false
		})
		var readers sync.WaitGroup
		for range 400 {
			for _, name := range net.names {
				if name != old {
					readers.Go(func() { w.read(name, acknowledged.Revision) })
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
		readers.Wait()
		w.await(old)
		return happened
	})
}

// Goal: a write whose leader is cut off before it hears of the commit is never
// called not applied: it is in the others' logs, and they commit it.
func TestCutOffLeaderDoesNotKnow(t *testing.T) {
	tell(t, func(w *simWorld, net *simNet) bool {
		old := w.await("")
		net.govern(func(m simMessage) (time.Duration, bool) {
			return 0, m.raft && m.to == old
		})
		_, err := w.put(old, "w")
		var known *cluster.Error
		if !errors.As(err, &known) {
			w.t.Fatalf("the write came to %v, want an error of the cluster", err)
		}
		next := w.await(old)
		state, _ := net.node(next).Stale()
		applied := state.Record("k", "w") != nil
		if applied && !known.Unknown {
			w.t.Errorf("an applied write is said to be not applied: %v", err)
		}
		return applied
	})
}
