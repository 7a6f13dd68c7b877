package cluster

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// hangingLog hangs in the first group of entries it is given, and then fails.
type hangingLog struct {
	*raft.InmemStore
	asked, release chan struct{}
}

func (l *hangingLog) StoreLogs([]*raft.Log) error {
	close(l.asked)
	<-l.release
	return errors.New("no disk")
}

// Goal: a node ends although Raft shut down by itself and left the Barrier of a
// new leader unanswered in its queue, which it does.
func TestNodeEndsWithoutAnswerToBarrier(t *testing.T) {
	log := &hangingLog{InmemStore: raft.NewInmemStore(), asked: make(chan struct{}), release: make(chan struct{})}
	_, transport := raft.NewInmemTransport("n1")
	n, err := Start(Config{
		Identity:      &Identity{Name: "n1", InstanceID: "1"},
		Stores:        &Stores{Log: log, Stable: emptyStable{log.InmemStore}, Snapshots: raft.NewInmemSnapshotStore()},
		Raft:          transport,
		Peers:         nobody{},
		SaveClusterID: func(string) error { return nil },
		HTTPAddress:   "http://n1", RaftAddress: "n1", RTT: time.Millisecond, Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	<-log.asked // Raft leads and writes the first entry of its term
	stacks := make([]byte, 1<<20)
	awaitStoreNodes(t, "the Barrier", func() bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*Node).enter.func1("))
	})
	stopped := n.raft.Load().Shutdown()
	close(log.release)
	if err := stopped.Error(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.Done():
	case <-time.After(time.Minute):
		t.Fatal("the node lives on without Raft")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// emptyStable answers a missing key as the stores of a real node do.
type emptyStable struct{ *raft.InmemStore }

func (s emptyStable) Get(key []byte) ([]byte, error) {
	if v, err := s.InmemStore.Get(key); err == nil {
		return v, nil
	}
	return nil, nil
}

// nobody is a cluster without other nodes.
type nobody struct{}

func (nobody) Call(context.Context, raft.ServerID, raft.ServerAddress, byte, []byte) ([]byte, error) {
	return nil, errors.New("nobody there")
}
