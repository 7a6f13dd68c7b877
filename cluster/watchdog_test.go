package cluster

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// hangingStore is a log and stable store whose calls wait until the disk is let go.
type hangingStore struct {
	*raft.InmemStore
	letGo chan struct{}
}

func (s hangingStore) StoreLogs([]*raft.Log) error      { <-s.letGo; return nil }
func (s hangingStore) GetLog(uint64, *raft.Log) error   { <-s.letGo; return nil }
func (s hangingStore) DeleteRange(uint64, uint64) error { <-s.letGo; return nil }
func (s hangingStore) FirstIndex() (uint64, error)      { <-s.letGo; return 0, nil }
func (s hangingStore) LastIndex() (uint64, error)       { <-s.letGo; return 0, nil }
func (s hangingStore) StoreLog(*raft.Log) error         { <-s.letGo; return nil }
func (s hangingStore) Set([]byte, []byte) error         { <-s.letGo; return nil }
func (s hangingStore) Get([]byte) ([]byte, error)       { <-s.letGo; return nil, nil }
func (s hangingStore) SetUint64([]byte, uint64) error   { <-s.letGo; return nil }
func (s hangingStore) GetUint64([]byte) (uint64, error) { <-s.letGo; return 0, nil }

var watchedCalls = map[string]func(watchedLog, watchedStable){
	"FirstIndex":       func(l watchedLog, _ watchedStable) { _, _ = l.FirstIndex() },
	"LastIndex":        func(l watchedLog, _ watchedStable) { _, _ = l.LastIndex() },
	"GetLog":           func(l watchedLog, _ watchedStable) { _ = l.GetLog(1, new(raft.Log)) },
	"StoreLogs":        func(l watchedLog, _ watchedStable) { _ = l.StoreLogs(nil) },
	"DeleteRange":      func(l watchedLog, _ watchedStable) { _ = l.DeleteRange(1, 2) },
	"stable store Set": func(_ watchedLog, s watchedStable) { _ = s.SetUint64(nil, 1) },
	"stable store Get": func(_ watchedLog, s watchedStable) { _, _ = s.Get(nil) },
}

// Goal: any call that hangs is named, once, when the limit has passed and not before.
func TestStallIsReported(t *testing.T) {
	for name, call := range watchedCalls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := &faultRecorder{}
				watch := startStallWatch("data/raft", 5*time.Second, faults.fatal)
				defer watch.stop()
				store := hangingStore{raft.NewInmemStore(), make(chan struct{})}
				defer close(store.letGo)
				time.Sleep(1250 * time.Millisecond) // in the bubble: begin between two ticks
				for range 3 {
					go call(watchedLog{store, watch}, watchedStable{store, watch})
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if all := faults.all(); len(all) != 0 {
					t.Fatalf("reported before its time: %v", all)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				all := faults.all()
				if len(all) != 1 {
					t.Fatalf("reports: %v", all)
				}
				for _, part := range []string{name, "5s", "data/raft"} {
					if !strings.Contains(all[0].Error(), part) {
						t.Errorf("report %q does not say %q", all[0], part)
					}
				}
			})
		})
	}
}

// Goal: no number of quick calls, idle hours or calls just under the limit is taken for a stall.
func TestSlowIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := &faultRecorder{}
		watch := startStallWatch("data/raft", 5*time.Second, faults.fatal)
		var wg sync.WaitGroup
		for range 2 * stallSlots { // more at once than there are slots
			wg.Go(func() {
				for range 20 {
					mark := watch.begin(callStoreLogs)
					time.Sleep(4900 * time.Millisecond)
					mark.Store(0)
				}
			})
		}
		wg.Wait()
		time.Sleep(3 * time.Hour)
		watch.stop()
		watch.stop()
		if all := faults.all(); len(all) != 0 {
			t.Fatalf("reports: %v", all)
		}
		for i := range watch.slots {
			if watch.slots[i].Load() != 0 {
				t.Fatalf("slot %d is still taken", i)
			}
		}
	})
}

// Goal: a call that hangs after stop is nobody's concern, and a report may itself stop the watch.
func TestStallWatchStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int32
		var watch *stallWatch
		ready := make(chan struct{})
		watch = startStallWatch("data/raft", time.Second, func(error) {
			<-ready
			watch.stop()
			reports.Add(1)
		})
		close(ready)
		hanging := watch.begin(callGetLog)
		time.Sleep(time.Hour)
		hanging.Store(0)

		silent := startStallWatch("data/raft", time.Second, func(err error) { t.Errorf("report after stop: %v", err) })
		silent.stop()
		silent.begin(callGetLog)
		time.Sleep(time.Hour)
		if reports.Load() != 1 {
			t.Fatalf("%d reports", reports.Load())
		}
	})
}

func TestStallWatchCostsNothing(t *testing.T) {
	watch := startStallWatch("", time.Minute, func(error) {})
	defer watch.stop()
	log := watchedLog{raft.NewInmemStore(), watch}
	if n := testing.AllocsPerRun(100, func() { _, _ = log.LastIndex() }); n != 0 {
		t.Fatalf("%v allocations a call", n)
	}
}

// Goal: stores from outside, as a simulation has them, need nothing to close; and a close reports every fault.
func TestStoresClose(t *testing.T) {
	inmem := raft.NewInmemStore()
	if err := (&Stores{Log: inmem, Stable: inmem, Snapshots: raft.NewInmemSnapshotStore()}).Close(); err != nil {
		t.Fatal(err)
	}
	var order []int
	first, last := errors.New("first"), errors.New("last")
	s := &Stores{close: []func() error{
		func() error { order = append(order, 1); return first },
		func() error { order = append(order, 2); return last },
	}}
	if err := s.Close(); !errors.Is(err, first) || !errors.Is(err, last) || len(order) != 2 || order[0] != 2 {
		t.Fatalf("close: %v, order %v", err, order)
	}
	if err := s.Close(); err != nil || len(order) != 2 {
		t.Fatalf("second close: %v, order %v", err, order)
	}
}
