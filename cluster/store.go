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
// and publishes, and decides nothing. Raft calls its methods from one goroutine.
// A State is made when somebody asks for one and kept until the next entry:
// each costs the entries behind it copies of what they change.
type store struct {
	applying sync.Mutex // over batch
	batch    *fsm.Batch
	current  atomic.Pointer[fsm.State] // of batch; nil while nobody asked since it went on
	head     atomic.Pointer[fsm.Head]  // of batch
	fail     func(error)
	poke     func()
	broken   bool // owned by Raft's goroutine: an entry could not be applied

	// Who waits for what the state will become. The counter makes publishing
	// free while nobody does.
	mu      sync.Mutex
	watched atomic.Int64
	indexes map[chan struct{}]uint64          // for an index to be applied
	queued  map[string]map[chan struct{}]bool // for a waiting acquire, by resource and request
	seen    uint64                            // owned by wakeUp: newest event looked at
}

var errBroken = errors.New("state machine stopped")

func newStore(fail func(error), poke func()) *store {
	s := &store{fail: fail, poke: poke, indexes: make(map[chan struct{}]uint64), queued: make(map[string]map[chan struct{}]bool)}
	s.batch = fsm.New().Begin()
	s.publish()
	return s
}

// state returns all that was applied before the call.
func (s *store) state() *fsm.State {
	if current := s.current.Load(); current != nil {
		return current
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	current := s.current.Load()
	if current == nil {
		current = s.batch.State()
		s.current.Store(current)
	}
	return current
}

// Apply applies one entry; Raft uses ApplyBatch where it can.
func (s *store) Apply(entry *raft.Log) any { return s.ApplyBatch([]*raft.Log{entry})[0] }

// ApplyBatch applies a group of committed entries and publishes the result once.
// An entry that cannot be read stops the node for good: skipping it would make
// this replica differ from the others.
func (s *store) ApplyBatch(entries []*raft.Log) []any {
	answers := make([]any, len(entries))
	decisions := make([]fsm.Decision, len(entries))
	s.applying.Lock()
	for i, entry := range entries {
		if entry.Type != raft.LogCommand {
			continue
		}
		if !s.broken {
			command, err := fsm.Decode(entry.Data)
			if err == nil {
				decisions[i] = s.batch.Apply(fsm.Position{Index: entry.Index, Term: entry.Term}, command)
				answers[i] = &decisions[i]
				continue
			}
			s.broken = true
			s.fail(fmt.Errorf("apply entry %d: %w", entry.Index, err))
		}
		answers[i] = errBroken
	}
	before := s.head.Load().Deadline
	s.publish()
	s.applying.Unlock()
	if after := s.head.Load().Deadline; after != 0 && (before == 0 || after < before) {
		s.poke()
	}
	s.wakeUp()
	return answers
}

// publish makes what was applied what everybody else finds.
func (s *store) publish() {
	head := s.batch.Head()
	s.head.Store(&head)
	s.current.Store(nil)
}

// wakeUp lets go whom the new state concerns. Of ten thousand waiters of a lock
// one release concerns one; the events since the last state name it.
func (s *store) wakeUp() {
	head := s.head.Load()
	defer func() { s.seen = head.EventSeq }()
	if s.watched.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ready, index := range s.indexes {
		if head.Index >= index {
			close(ready)
			delete(s.indexes, ready)
			s.watched.Add(-1)
		}
	}
	if len(s.queued) == 0 || head.EventSeq == s.seen {
		return
	}
	for event := range s.state().Events(s.seen) {
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
	if s.head.Load().Index >= index {
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
	s.applying.Lock()
	s.batch = next.Begin()
	s.publish()
	s.applying.Unlock()
	s.poke()
	s.wakeUp()
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
