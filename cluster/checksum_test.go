package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

func newCheckedLog(inner raft.LogStore) (*checkedLog, *faultRecorder) {
	faults := &faultRecorder{}
	fatal := &fatalOnce{report: faults.fatal}
	fatal.armed.Store(true)
	return &checkedLog{inner: inner, name: "raft/log.db", fatal: fatal}, faults
}

// Goal: the sum that the leader made reaches the follower and is verified there, in StoreLogs and in later reads.
func TestChecksumTravels(t *testing.T) {
	leader, leaderFaults := newCheckedLog(raft.NewInmemStore())
	if err := leader.StoreLogs(testEntries(1, 9, 1)); err != nil {
		t.Fatal(err)
	}
	follower, faults := newCheckedLog(raft.NewInmemStore())
	for index := uint64(1); index <= 9; index++ {
		var sent raft.Log
		if err := leader.GetLog(index, &sent); err != nil {
			t.Fatal(err)
		}
		made := bytes.Clone(sent.Extensions)
		if index == 5 {
			sent.Data = bytes.Clone(sent.Data)
			sent.Data[3] ^= 0x10 // on the way
		}
		err := follower.StoreLogs([]*raft.Log{&sent})
		if damaged := index == 5; damaged != errors.Is(err, ErrDamaged) || (!damaged && err != nil) {
			t.Fatalf("entry %d: %v", index, err)
		}
		if !bytes.Equal(sent.Extensions, made) {
			t.Fatalf("entry %d: the follower made a sum of its own", index)
		}
	}
	if err := follower.GetLog(5, new(raft.Log)); err != raft.ErrLogNotFound {
		t.Fatalf("the damaged entry was stored: %v", err)
	}
	all := faults.all()
	if len(all) != 1 || !strings.Contains(all[0].Error(), "entry 5 in log raft/log.db") || len(leaderFaults.all()) != 0 {
		t.Fatalf("fatal: %v; at the leader: %v", all, leaderFaults.all())
	}
}

// Goal: every field under the sum is under the sum, and only the first mismatch is reported.
func TestChecksumCovers(t *testing.T) {
	spoils := map[string]func(*raft.Log){
		"term":       func(l *raft.Log) { l.Term++ },
		"type":       func(l *raft.Log) { l.Type ^= 1 },
		"data":       func(l *raft.Log) { l.Data = append(bytes.Clone(l.Data), 0) },
		"index":      func(l *raft.Log) { l.Index++ },
		"no sum":     func(l *raft.Log) { l.Extensions = nil },
		"other sum":  func(l *raft.Log) { l.Extensions = []byte("chunked") },
		"later form": func(l *raft.Log) { l.Extensions = append(bytes.Clone(l.Extensions), 1); l.Extensions[1] = 2 },
	}
	for name, spoil := range spoils {
		t.Run(name, func(t *testing.T) {
			store := raft.NewInmemStore()
			log, faults := newCheckedLog(store)
			if err := log.StoreLogs(testEntries(1, 3, 1)); err != nil {
				t.Fatal(err)
			}
			var entry raft.Log
			if err := store.GetLog(2, &entry); err != nil {
				t.Fatal(err)
			}
			spoil(&entry)
			place := entry.Index
			entry.Index = 2
			if err := store.StoreLog(&entry); err != nil {
				t.Fatal(err)
			}
			entry.Index = place // the in-memory store keeps the pointer
			got := raft.Log{Index: 99}
			for range 2 {
				if err := log.GetLog(2, &got); !errors.Is(err, ErrDamaged) {
					t.Fatalf("read: %v", err)
				}
			}
			if got.Index != 99 {
				t.Fatal("a damaged entry was handed out beside the error")
			}
			if all := faults.all(); len(all) != 1 || !strings.Contains(all[0].Error(), "entry 2 of log raft/log.db") {
				t.Fatalf("fatal: %v", all)
			}
			var other raft.Log
			if err := log.GetLog(3, &other); err != nil || !sameEntry(&other, testEntry(3, 1)) {
				t.Fatalf("the sound neighbour: %v", err)
			}
		})
	}
}

// Goal: what GetLog gave stays as it was, whatever is read into the same variable or deleted later.
func TestReadEntriesShareNothing(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			s := mustOpenStores(t, t.TempDir(), kind)
			if err := s.Log.StoreLogs(testEntries(1, 60, 1)); err != nil {
				t.Fatal(err)
			}
			var reused raft.Log
			var kept []raft.Log
			for index := uint64(1); index <= 60; index++ {
				if err := s.Log.GetLog(index, &reused); err != nil {
					t.Fatal(err)
				}
				kept = append(kept, reused)
			}
			if err := s.Log.DeleteRange(1, 60); err != nil {
				t.Fatal(err)
			}
			if err := s.Log.StoreLogs(testEntries(61, 120, 2)); err != nil {
				t.Fatal(err)
			}
			for i := range kept {
				if !sameEntry(&kept[i], testEntry(uint64(i+1), 1)) || verifySum(&kept[i]) != nil {
					t.Fatalf("entry %d changed after it was read", i+1)
				}
			}
		})
	}
}

// skippingStore leaves entries behind in its first deletions, as a skipping cursor would; panicking makes reads of
// entry 1 panic, as bbolt does over a damaged page.
type skippingStore struct {
	*raft.InmemStore
	skips     int
	panicking bool
}

func (s *skippingStore) DeleteRange(low, high uint64) error {
	if s.skips > 0 {
		s.skips--
		high--
	}
	return s.InmemStore.DeleteRange(low, high)
}

func (s *skippingStore) GetLog(index uint64, log *raft.Log) error {
	if s.panicking && index == 1 {
		panic("page 7: not a leaf")
	}
	return s.InmemStore.GetLog(index, log)
}

func TestDeleteRangeLeavesNothing(t *testing.T) {
	for skips := range 5 {
		t.Run(fmt.Sprint(skips, " skips"), func(t *testing.T) {
			store := &skippingStore{InmemStore: raft.NewInmemStore(), skips: skips}
			log, faults := newCheckedLog(store)
			if err := log.StoreLogs(testEntries(1, 10, 1)); err != nil {
				t.Fatal(err)
			}
			err := log.DeleteRange(1, 4)
			if emptied := skips < maxDeletePasses; emptied != (err == nil) || emptied != (len(faults.all()) == 0) {
				t.Fatalf("delete: %v; fatal: %v", err, faults.all())
			}
			if first, _ := log.FirstIndex(); err == nil && first != 5 {
				t.Fatalf("first index %d after the delete", first)
			}
		})
	}
}

func TestLibraryPanicIsDamage(t *testing.T) {
	store := &skippingStore{InmemStore: raft.NewInmemStore(), panicking: true}
	log, faults := newCheckedLog(store)
	if err := log.StoreLogs(testEntries(1, 2, 1)); err != nil {
		t.Fatal(err)
	}
	if err := log.GetLog(1, new(raft.Log)); !errors.Is(err, ErrDamaged) || len(faults.all()) != 1 {
		t.Fatalf("read: %v; fatal: %v", err, faults.all())
	}
}
