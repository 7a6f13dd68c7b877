package cluster

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// boltStory is a log beside what it should hold.
type boltStory struct {
	t    *testing.T
	path string
	log  boltLog
	want []*raft.Log
}

func newBoltStory(t *testing.T) *boltStory {
	s := &boltStory{t: t, path: filepath.Join(t.TempDir(), "log.db")}
	s.open()
	t.Cleanup(func() { _ = s.log.Close() })
	return s
}

func (s *boltStory) open() {
	s.t.Helper()
	log, err := openBoltLog(s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = log
}

func (s *boltStory) reopen() {
	s.t.Helper()
	if err := s.log.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

func (s *boltStory) store(logs []*raft.Log) {
	s.t.Helper()
	for _, log := range logs {
		log.Extensions = appendSum(log)
	}
	if err := s.log.StoreLogs(logs); err != nil {
		s.t.Fatal(err)
	}
	s.want = append(s.want, logs...)
}

func (s *boltStory) remove(low, high uint64) {
	s.t.Helper()
	if err := s.log.DeleteRange(low, high); err != nil {
		s.t.Fatal(err)
	}
	var want []*raft.Log
	for _, log := range s.want {
		if log.Index < low || log.Index > high {
			want = append(want, log)
		}
	}
	s.want = want
}

// Goal: whatever groups come, whichever end is cut off and wherever the cut goes
// through a group, the log holds each entry as it was stored, now and after a
// restart.
func TestBoltGroups(t *testing.T) {
	s := newBoltStory(t)
	rng := rand.New(rand.NewPCG(3, 4))
	next, term := uint64(1), uint64(1)
	for range 400 {
		switch n := len(s.want); {
		case n == 0 || rng.IntN(3) > 0 && n < 200:
			size := uint64(1 + rng.IntN(20))
			s.store(testEntries(next, next+size-1, term))
			next += size
		case rng.IntN(2) == 0: // a snapshot covers the front
			s.remove(s.want[0].Index, s.want[rng.IntN(n)].Index)
		default: // a new leader overrules the end
			next = s.want[rng.IntN(n)].Index
			s.remove(next, s.want[n-1].Index)
			term++
		}
		if rng.IntN(4) == 0 {
			s.reopen()
		}
		checkLogHolds(t, s.log, s.want)
	}
}

// Goal: a crash between the two commits of a cut leaves the log as it was before,
// or longer than asked, and never with a hole.
func TestBoltCutCrash(t *testing.T) {
	begin := func(t *testing.T) *boltStory {
		s := newBoltStory(t)
		s.store(testEntries(1, 10, 1))
		s.store(testEntries(11, 20, 1))
		s.store(testEntries(21, 30, 1))
		return s
	}
	t.Run("front", func(t *testing.T) { // the rest of the group is written, the group not yet deleted
		s := begin(t)
		if err := s.log.store.StoreLog(pack(s.want[14:20])); err != nil {
			t.Fatal(err)
		}
		s.reopen()
		checkLogHolds(t, s.log, s.want)
		s.remove(1, 14)
		s.reopen()
		checkLogHolds(t, s.log, s.want)
	})
	t.Run("end", func(t *testing.T) { // the groups behind are deleted, the one cut through not yet written anew
		s := begin(t)
		if err := s.log.store.DeleteRange(15, 30); err != nil {
			t.Fatal(err)
		}
		s.want = s.want[:20]
		s.reopen()
		checkLogHolds(t, s.log, s.want)
		s.remove(15, 20)
		s.store(testEntries(15, 17, 2))
		s.reopen()
		checkLogHolds(t, s.log, s.want)
	})
}

// Goal: a log with one element for each entry, as raft-boltdb itself writes it, is
// read on, and goes on in groups.
func TestBoltWithoutGroups(t *testing.T) {
	s := newBoltStory(t)
	entries := testEntries(5, 40, 1)
	for _, log := range entries {
		log.Extensions = appendSum(log)
	}
	if err := s.log.store.StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	s.want = entries
	s.reopen()
	checkLogHolds(t, s.log, s.want)
	s.store(testEntries(41, 60, 2))
	s.remove(5, 30)
	s.remove(50, 60)
	s.reopen()
	checkLogHolds(t, s.log, s.want)
}

// Goal: an entry that does not follow the last is refused, and a group is one
// element of the file.
func TestBoltOrder(t *testing.T) {
	s := newBoltStory(t)
	s.store(testEntries(1, 100, 1))
	for _, wrong := range [][]*raft.Log{testEntries(100, 100, 1), testEntries(102, 102, 1), {testEntry(101, 1), testEntry(103, 1)}} {
		if err := s.log.StoreLogs(wrong); err == nil {
			t.Errorf("took entry %d behind 100", wrong[0].Index)
		}
	}
	checkLogHolds(t, s.log, s.want)
	var record raft.Log
	if err := s.log.store.GetLog(1, &record); err != nil || record.Type != batchType {
		t.Errorf("the first element is of type %v, %v", record.Type, err)
	}
	if err := s.log.store.GetLog(2, &record); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("entry 2 has an element of its own: %v", err)
	}
}

// Goal: a group that is not what was written is damage, not other entries.
func TestBoltGroupDamage(t *testing.T) {
	good := pack(testEntries(1, 3, 1))
	inner, err := raftboltdb.NewBoltStore(filepath.Join(t.TempDir(), "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	for at := 0; at < len(good.Data); at += 16 {
		bad := *good
		bad.Data = append([]byte(nil), good.Data...)
		bad.Data[at] ^= 1
		if err := inner.StoreLog(&bad); err != nil {
			t.Fatal(err)
		}
		if _, err := openBatchLog(inner, []uint64{1}); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}
