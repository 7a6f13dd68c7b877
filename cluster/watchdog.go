package cluster

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's heartbeats do not touch the disk. A leader whose disk hangs therefore stays leader and commits nothing,
// for ever (hashicorp/raft #503). The stall watch finds the hanging store call, so that the node can leave and
// the others elect a leader that works.

// stallTicks is how many ticks make the limit; a stall is reported between one limit and one tick more.
const stallTicks = 10

// stallSlots bounds the calls watched at once. More than that can only pile up behind a stall, which the
// watched ones show.
const stallSlots = 64

// stallWatch notices store calls that do not come back. Ages are counted in ticks of its own ticker, not by a
// clock: a process that was stopped for a minute sees one tick, and no stall.
type stallWatch struct {
	name  string
	limit time.Duration
	raise func(error)

	ticks atomic.Uint64
	next  atomic.Uint64             // where the next call looks first
	slots [stallSlots]atomic.Uint64 // 0: free, else the tick of the start << 8 | storeCall
	spare atomic.Uint64             // written, never read: for calls that found no slot
	quit  chan struct{}
	once  sync.Once
}

// startStallWatch begins to watch; raise is called at most once, and must not block on stop.
func startStallWatch(name string, limit time.Duration, raise func(error)) *stallWatch {
	w := &stallWatch{name: name, limit: limit, raise: raise, quit: make(chan struct{})}
	go w.run()
	return w
}

// stop ends the watch. It does not wait for a report in progress, which may be what led here.
func (w *stallWatch) stop() { w.once.Do(func() { close(w.quit) }) }

func (w *stallWatch) run() {
	ticker := time.NewTicker(w.limit / stallTicks)
	defer ticker.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-ticker.C:
		}
		if call, stalled := w.tick(); stalled {
			w.raise(fmt.Errorf("disk stalled: %s under %s has not returned for more than %s", call, w.name, w.limit))
			return
		}
	}
}

func (w *stallWatch) tick() (storeCall, bool) {
	now := w.ticks.Add(1)
	for i := range w.slots {
		mark := w.slots[i].Load()
		// A call begins anywhere inside its tick, so only stallTicks+1 tick ends prove stallTicks full ticks.
		if mark != 0 && now-mark>>8 > stallTicks {
			return storeCall(mark & 0xFF), true
		}
	}
	return 0, false
}

// begin marks the start of a call; store 0 in the result at its end.
func (w *stallWatch) begin(call storeCall) *atomic.Uint64 {
	mark := w.ticks.Load()<<8 | uint64(call)
	at := w.next.Add(1)
	for i := range uint64(stallSlots) {
		slot := &w.slots[(at+i)%stallSlots]
		if slot.CompareAndSwap(0, mark) {
			return slot
		}
	}
	return &w.spare
}

// storeCall names a call of a store. Zero is none.
type storeCall uint8

const (
	callFirstIndex storeCall = iota + 1
	callLastIndex
	callGetLog
	callStoreLogs
	callDeleteRange
	callStableSet
	callStableGet
)

func (c storeCall) String() string {
	switch c {
	case callFirstIndex:
		return "log store FirstIndex"
	case callLastIndex:
		return "log store LastIndex"
	case callGetLog:
		return "log store GetLog"
	case callStoreLogs:
		return "log store StoreLogs"
	case callDeleteRange:
		return "log store DeleteRange"
	case callStableSet:
		return "stable store Set"
	case callStableGet:
		return "stable store Get"
	}
	return fmt.Sprintf("store call %d", uint8(c))
}

// watchedLog is a raft.LogStore under a stall watch.
type watchedLog struct {
	inner raft.LogStore
	watch *stallWatch
}

func (l watchedLog) FirstIndex() (uint64, error) {
	defer l.watch.begin(callFirstIndex).Store(0)
	return l.inner.FirstIndex()
}

func (l watchedLog) LastIndex() (uint64, error) {
	defer l.watch.begin(callLastIndex).Store(0)
	return l.inner.LastIndex()
}

func (l watchedLog) GetLog(index uint64, log *raft.Log) error {
	defer l.watch.begin(callGetLog).Store(0)
	return l.inner.GetLog(index, log)
}

func (l watchedLog) StoreLog(log *raft.Log) error {
	defer l.watch.begin(callStoreLogs).Store(0)
	return l.inner.StoreLog(log)
}

func (l watchedLog) StoreLogs(logs []*raft.Log) error {
	defer l.watch.begin(callStoreLogs).Store(0)
	return l.inner.StoreLogs(logs)
}

func (l watchedLog) DeleteRange(low, high uint64) error {
	defer l.watch.begin(callDeleteRange).Store(0)
	return l.inner.DeleteRange(low, high)
}

// IsMonotonic passes on what the inner store says; see raft.MonotonicLogStore.
func (l watchedLog) IsMonotonic() bool { return isMonotonic(l.inner) }

// watchedStable is a raft.StableStore under a stall watch.
type watchedStable struct {
	inner raft.StableStore
	watch *stallWatch
}

func (s watchedStable) Set(key, value []byte) error {
	defer s.watch.begin(callStableSet).Store(0)
	return s.inner.Set(key, value)
}

func (s watchedStable) Get(key []byte) ([]byte, error) {
	defer s.watch.begin(callStableGet).Store(0)
	return s.inner.Get(key)
}

func (s watchedStable) SetUint64(key []byte, value uint64) error {
	defer s.watch.begin(callStableSet).Store(0)
	return s.inner.SetUint64(key, value)
}

func (s watchedStable) GetUint64(key []byte) (uint64, error) {
	defer s.watch.begin(callStableGet).Store(0)
	return s.inner.GetUint64(key)
}
