//go:build linux

package system

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"testing"

	"github.com/fencekv/fencekv/httpapi/wire"
	"github.com/fencekv/fencekv/test/harness"
)

// TestPausedLeader stops the leader's process where it stands and lets the
// others go on without it. Goal: when it wakes, sure that it leads, it answers
// no read with what it knew, and no write with a success that the others do not
// have.
func TestPausedLeader(t *testing.T) {
	c := harness.Start(t, 3, "--raft-rtt", "4ms")
	for round := range 5 {
		old := c.Leader()
		old.Put(t, "k", "before", nil)
		old.Pause()
		next := newLeader(t, c, old)
		after := harness.Decode[wire.Written](t, next.Put(t, "k", fmt.Sprintf("after %d", round), nil))
		var answered, sent sync.WaitGroup
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { sent.Done() },
		})
		for i := range 32 {
			sent.Add(1)
			answered.Go(func() {
				if i%4 == 0 {
					writeToPaused(ctx, t, c, old, fmt.Sprintf("w%d-%d", round, i))
				} else {
					readFromPaused(ctx, t, old, after.Revision)
				}
			})
		}
		sent.Wait() // all of them stand in its sockets when it wakes
		old.Resume()
		answered.Wait()
		c.AwaitReady()
	}
}

func readFromPaused(ctx context.Context, t *testing.T, n *harness.Node, acknowledged uint64) {
	a, err := n.Do(ctx, "GET", harness.KV("k"), nil, "")
	if err != nil {
		t.Errorf("read: %v", err)
		return
	}
	revision, _ := strconv.ParseUint(a.Header.Get("Fence-Revision"), 10, 64)
	if a.Status == http.StatusOK && revision < acknowledged {
		t.Errorf("a linearizable read gave %q of revision %d after %d was acknowledged", a.Body, revision, acknowledged)
	}
}

func writeToPaused(ctx context.Context, t *testing.T, c *harness.Cluster, n *harness.Node, key string) {
	a, err := n.Do(ctx, "PUT", harness.KV(key), nil, "late")
	if err != nil {
		t.Errorf("write: %v", err)
		return
	}
	applied := a.Outcome() == wire.Applied
	if !applied && a.Outcome() != wire.NotApplied && a.Outcome() != wire.Unknown {
		t.Errorf("the answer to a write says nothing of its outcome: %s", a)
	}
	for _, other := range c.Others(n) {
		if got := other.Get(t, key); applied != (got.Status == http.StatusOK) && a.Outcome() != wire.Unknown {
			t.Errorf("%s: the write was %s, a read gives %s", key, a.Outcome(), got)
		}
	}
}

// newLeader waits until a node other than old leads.
func newLeader(t *testing.T, c *harness.Cluster, old *harness.Node) *harness.Node {
	t.Helper()
	var leader *harness.Node
	harness.Await(t, "another leader", func() bool {
		for _, n := range c.Others(old) {
			if n.Role() == "leader" && n.Ready() {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}
