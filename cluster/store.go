package cluster

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/snapshot"
)

// store is the adapter between Raft and the state machine: it decodes, applies
// and publishes, and decides nothing. Raft calls its methods from one goroutine;
// everybody else only reads the published state.
type store struct {
	current atomic.Pointer[fsm.State]
	fail    func(error)
	poke    func()
	broken  bool // owned by Raft's goroutine: an entry could not be applied

	// Who waits for what the state will become. The counter makes publishing
	// free while nobody does.
	mu      sync.Mutex
	watched atomic.Int64
	indexes map[chan struct{}]uint64          // for an index to be applied
	queued  map[string]map[chan struct{}]bool // for a waiting acquire, by resource and request
	seen    uint64                            // owned by publish: newest event looked at
}

var errBroken = errors.New("state machine stopped")

func newStore(fail func(error), poke func()) *store {
	s := &store{fail: fail, poke: poke, indexes: make(map[chan struct{}]uint64), queued: make(map[string]map[chan struct{}]bool)}
	s.current.Store(fsm.New())
	return s
}

func (s *store) state() *fsm.State { return s.current.Load() }

// Apply applies one entry; Raft uses ApplyBatch where it can.
func (s *store) Apply(entry *raft.Log) any { return s.ApplyBatch([]*raft.Log{entry})[0] }

// ApplyBatch applies a group of committed entries and publishes the result once.
// An entry that cannot be read stops the node for good: skipping it would make
// this replica differ from the others.
func (s *store) ApplyBatch(entries []*raft.Log) []any {
	answers := make([]any, len(entries))
	decisions := make([]fsm.Decision, len(entries))
	batch := s.state().Begin()
	for i, entry := range entries {
		if entry.Type != raft.LogCommand {
			continue
		}
		if !s.broken {
			command, err := fsm.Decode(entry.Data)
			if err == nil {
				decisions[i] = batch.Apply(fsm.Position{Index: entry.Index, Term: entry.Term}, command)
				answers[i] = &decisions[i]
				continue
			}
			s.broken = true
			s.fail(fmt.Errorf("apply entry %d: %w", entry.Index, err))
		}
		answers[i] = errBroken
	}
	s.publish(batch.State())
	return answers
}

func (s *store) publish(next *fsm.State) {
	before, _ := s.state().NextDeadline()
	s.current.Store(next)
	if after, ok := next.NextDeadline(); ok && (before == 0 || after < before) {
		s.poke()
	}
	if s.watched.Load() > 0 {
		s.wakeUp(next)
	}
	s.seen = next.EventSeq()
}

// wakeUp lets go whom the new state concerns. Of ten thousand waiters of a lock
// one release concerns one; the events since the last state name it.
func (s *store) wakeUp(next *fsm.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ready, index := range s.indexes {
		if next.Index() >= index {
			close(ready)
			delete(s.indexes, ready)
			s.watched.Add(-1)
		}
	}
	for event := range next.Events(s.seen) {
		switch d := event.Decision; d.Code {
		case fsm.Granted, fsm.WaitOver, fsm.Withdrawn:
			s.release(queuedKey(d.Resource, d.RequestID))
		}
	}
}

func (s *store) release(key string) {
	for ready := range s.queued[key] {
		close(ready)
		s.watched.Add(-1)
	}
	delete(s.queued, key)
}

func queuedKey(resource, request string) string { return resource + "\x00" + request }

// applied returns a channel that is closed once index is applied here, and a
// function to give up with.
func (s *store) applied(index uint64) (ready chan struct{}, stop func()) {
	ready = make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes[ready] = index
	s.watched.Add(1)
	stop = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, waits := s.indexes[ready]; waits {
			delete(s.indexes, ready)
			s.watched.Add(-1)
		}
	}
	if s.state().Index() >= index {
		close(ready)
		delete(s.indexes, ready)
		s.watched.Add(-1)
	}
	return ready, stop
}

// decided returns a channel that is closed once a waiting acquire waits no
// more, and a function to give up with.
func (s *store) decided(resource, request string) (ready chan struct{}, stop func()) {
	ready = make(chan struct{})
	key := queuedKey(resource, request)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued[key] == nil {
		s.queued[key] = make(map[chan struct{}]bool)
	}
	s.queued[key][ready] = true
	s.watched.Add(1)
	stop = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.queued[key][ready] {
			delete(s.queued[key], ready)
			s.watched.Add(-1)
		}
		if len(s.queued[key]) == 0 {
			delete(s.queued, key)
		}
	}
	if s.state().Waiter(resource, request) == nil {
		s.release(key)
	}
	return ready, stop
}

// Snapshot returns the state as it is; being immutable it needs no copy.
func (s *store) Snapshot() (raft.FSMSnapshot, error) {
	if s.broken {
		return nil, errBroken
	}
	return frozen{s.state()}, nil
}

// Restore builds the state of a snapshot aside, verified to its last byte, and
// only then puts it in place.
func (s *store) Restore(r io.ReadCloser) error {
	defer r.Close()
	next, _, err := snapshot.Read(r)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	s.publish(next)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.queued { // the ring may no longer hold what became of them
		s.release(key)
	}
	return nil
}

// frozen is a state on its way into a snapshot file.
type frozen struct{ state *fsm.State }

// Persist writes the snapshot beside whatever is applied meanwhile.
func (f frozen) Persist(sink raft.SnapshotSink) error {
	if _, err := snapshot.Write(sink, f.state); err != nil {
		return errors.Join(fmt.Errorf("write snapshot: %w", err), sink.Cancel())
	}
	return sink.Close()
}

// Release does nothing: the state is the garbage collector's.
func (f frozen) Release() {}
