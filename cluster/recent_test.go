package cluster

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

// countedLog counts reads of a log store and fails to store on demand.
type countedLog struct {
	*raft.InmemStore
	reads int
	full  error
}

func (l *countedLog) GetLog(index uint64, log *raft.Log) error {
	l.reads++
	return l.InmemStore.GetLog(index, log)
}

func (l *countedLog) StoreLogs(logs []*raft.Log) error {
	if l.full != nil {
		return l.full
	}
	return l.InmemStore.StoreLogs(logs)
}

// The store behind is what is true: whatever is read is what it would have said,
// from memory where it can be.
func TestRecentLog(t *testing.T) {
	inner := &countedLog{InmemStore: raft.NewInmemStore()}
	log := &recentLog{LogStore: inner}
	entry := func(index, term uint64, size int) *raft.Log {
		return &raft.Log{Index: index, Term: term, Data: bytes.Repeat([]byte{byte(term)}, size), Extensions: []byte("sum")}
	}
	agree := func(step string, index uint64, reads int) {
		t.Helper()
		var want, got raft.Log
		wantErr := inner.InmemStore.GetLog(index, &want)
		before := inner.reads
		gotErr := log.GetLog(index, &got)
		if !errors.Is(gotErr, wantErr) {
			t.Fatalf("%s: entry %d: %v, want %v", step, index, gotErr, wantErr)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: entry %d: %s", step, index, d)
		}
		if n := inner.reads - before; n != reads {
			t.Fatalf("%s: entry %d took %d reads of the store, want %d", step, index, n, reads)
		}
	}
	store := func(entries ...*raft.Log) {
		t.Helper()
		if err := log.StoreLogs(entries); err != nil {
			t.Fatal(err)
		}
	}

	agree("empty", 0, 1)
	for index := uint64(1); index <= recentEntries+10; index++ {
		store(entry(index, 1, 10))
	}
	agree("newest", recentEntries+10, 0)
	agree("oldest kept", 11, 0)
	agree("too old", 10, 1)

	store(entry(recentEntries+11, 1, recentEntryBytes+1))
	agree("too large", recentEntries+11, 1)
	agree("what the large one took the place of", 11, 1)

	if err := log.DeleteRange(recentEntries+5, recentEntries+11); err != nil {
		t.Fatal(err)
	}
	agree("deleted", recentEntries+5, 1)
	store(entry(recentEntries+5, 2, 10))
	agree("written anew", recentEntries+5, 0)

	inner.full = errors.New("disk full")
	if err := log.StoreLogs([]*raft.Log{entry(recentEntries+6, 2, 10)}); !errors.Is(err, inner.full) {
		t.Fatalf("store on a full disk: %v", err)
	}
	agree("not stored", recentEntries+6, 1)
}
