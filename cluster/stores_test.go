package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	berrors "go.etcd.io/bbolt/errors"
)

var bothLogStores = []string{LogStoreWAL, LogStoreBolt}

// faultRecorder stands in for the node: it keeps what Fatal was told.
type faultRecorder struct {
	mu     sync.Mutex
	faults []error
}

func (f *faultRecorder) fatal(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, err)
}

func (f *faultRecorder) all() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error(nil), f.faults...)
}

func storeTestConfig(dir, kind string, faults *faultRecorder) StoreConfig {
	// Segments so small that every story crosses a few of them.
	return StoreConfig{Dir: dir, LogStore: kind, Fatal: faults.fatal, StallLimit: time.Minute, segmentSize: 16 << 10}
}

func mustOpenStores(t *testing.T, dir, kind string) *Stores {
	t.Helper()
	faults := &faultRecorder{}
	s, err := OpenStores(storeTestConfig(dir, kind, faults))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if all := faults.all(); len(all) > 0 {
			t.Errorf("fatal: %v", all)
		}
	})
	return s
}

func testEntry(index, term uint64) *raft.Log {
	data := bytes.Repeat([]byte{byte(index), byte(term), 0x5A}, int(index*37%700))
	return &raft.Log{Index: index, Term: term, Type: raft.LogType(index % 2), Data: data}
}

func testEntries(low, high, term uint64) []*raft.Log {
	var logs []*raft.Log
	for index := low; index <= high; index++ {
		logs = append(logs, testEntry(index, term))
	}
	return logs
}

func sameEntry(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && bytes.Equal(a.Data, b.Data)
}

// checkLogHolds compares the whole log with the entries it should hold.
func checkLogHolds(t *testing.T, log raft.LogStore, want []*raft.Log) {
	t.Helper()
	var low, high uint64
	if len(want) > 0 {
		low, high = want[0].Index, want[len(want)-1].Index
	}
	first, err := log.FirstIndex()
	if err != nil || first != low {
		t.Fatalf("first index %d, %v; want %d", first, err, low)
	}
	last, err := log.LastIndex()
	if err != nil || last != high {
		t.Fatalf("last index %d, %v; want %d", last, err, high)
	}
	for _, entry := range want {
		var got raft.Log
		if err := log.GetLog(entry.Index, &got); err != nil || !sameEntry(&got, entry) {
			t.Fatalf("entry %d: got index %d term %d, %v", entry.Index, got.Index, got.Term, err)
		}
		if err := verifySum(&got); err != nil {
			t.Fatalf("entry %d goes to a follower without its checksum: %v", entry.Index, err)
		}
	}
	for _, outside := range []uint64{low - 1, high + 1} {
		// Raft compares with ==.
		if err := log.GetLog(outside, new(raft.Log)); err != raft.ErrLogNotFound {
			t.Fatalf("entry %d outside the log: %v", outside, err)
		}
	}
}

// Goal: both log stores hold what raft's life with them leaves, over appends, cuts at both ends and restarts.
func TestLogStoreLife(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpenStores(t, dir, kind)
			reopen := func() {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = mustOpenStores(t, dir, kind)
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}

			checkLogHolds(t, s.Log, nil)
			must(s.Log.StoreLog(testEntry(1, 1)))
			must(s.Log.StoreLogs(testEntries(2, 40, 1)))
			checkLogHolds(t, s.Log, testEntries(1, 40, 1))
			reopen()
			checkLogHolds(t, s.Log, testEntries(1, 40, 1))

			// A new leader of term 2 overrules the end.
			must(s.Log.DeleteRange(31, 40))
			must(s.Log.StoreLogs(testEntries(31, 60, 2)))
			want := append(testEntries(1, 30, 1), testEntries(31, 60, 2)...)
			checkLogHolds(t, s.Log, want)
			reopen()
			checkLogHolds(t, s.Log, want)

			// A snapshot replaces the front.
			writeTestSnapshot(t, s.Snapshots, 12, "state at 12")
			must(s.Log.DeleteRange(1, 12))
			checkLogHolds(t, s.Log, want[12:])
			reopen()
			checkLogHolds(t, s.Log, want[12:])

			// A restored snapshot replaces everything, and the log goes on behind it.
			writeTestSnapshot(t, s.Snapshots, 100, "state at 100")
			must(s.Log.DeleteRange(13, 60))
			checkLogHolds(t, s.Log, nil)
			reopen()
			must(s.Log.StoreLogs(testEntries(101, 103, 3)))
			reopen()
			checkLogHolds(t, s.Log, testEntries(101, 103, 3))
			if m, ok := s.Log.(raft.MonotonicLogStore); !ok || !m.IsMonotonic() {
				t.Fatal("raft is not told that the store takes no gaps")
			}
		})
	}
}

// Goal: the files are this user's alone, and left-over temporary snapshots are gone.
func TestStoreLayout(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := mustOpenStores(t, dir, kind).Close(); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"", "raft", "raft/snapshots", "raft/snapshots/1-2-3.tmp"} {
				if err := errors.Join(os.MkdirAll(filepath.Join(dir, name), 0o755), os.Chmod(filepath.Join(dir, name), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			s := mustOpenStores(t, dir, kind)
			writeTestSnapshot(t, s.Snapshots, 1, "x")
			for _, name := range []string{"", "raft", "raft/snapshots"} {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%q: %v, %v", name, info.Mode(), err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "raft", "snapshots", "*.tmp")); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// Goal: a second process on the directory is told so, soon. bbolt's lock is per open file, so a second open in
// this process meets it just the same.
func TestStoresInUse(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpenStores(t, dir, kind)
			_, err := OpenStores(storeTestConfig(dir, kind, &faultRecorder{}))
			if !errors.Is(err, berrors.ErrTimeout) || !strings.Contains(err.Error(), "data directory in use by another process") {
				t.Fatalf("second open: %v", err)
			}
			if err := s.Log.StoreLogs(testEntries(1, 3, 1)); err != nil {
				t.Fatalf("the first is disturbed: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			checkLogHolds(t, mustOpenStores(t, dir, kind).Log, testEntries(1, 3, 1))
		})
	}
}

// Goal: state that cannot be whole is refused with the file's name, never taken for a new node's.
func TestStoresRefuse(t *testing.T) {
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		name   string
		kinds  []string // stores the directory was written with
		open   func(written string) string
		damage func(t *testing.T, dir string)
		names  string
	}{
		{"other log store", bothLogStores, otherKind, nil, "was written with log store"},
		{"stable store lost", bothLogStores, nil, remove("raft/stable.db"), "stable.db"},
		{"log lost", []string{LogStoreBolt}, nil, remove("raft/log.db"), "lost its boltdb log"},
		{"log lost", []string{LogStoreWAL}, nil, remove("raft/wal"), "lost its wal log"},
		{"snapshots lost", bothLogStores, nil, remove("raft/snapshots"), "begins at entry 6"},
		{"snapshot unreadable", bothLogStores, nil, func(t *testing.T, dir string) {
			flipBit(t, onlyMatch(t, dir, "raft/snapshots/*/state.bin"), 3)
		}, "state.bin"},
		{"snapshot meta unreadable", bothLogStores, nil, func(t *testing.T, dir string) {
			if err := os.Truncate(onlyMatch(t, dir, "raft/snapshots/*/meta.json"), 7); err != nil {
				t.Fatal(err)
			}
		}, "snapshots"},
	}
	for _, c := range cases {
		for _, kind := range c.kinds {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				dir := t.TempDir()
				s := mustOpenStores(t, dir, kind)
				if err := s.Log.StoreLogs(testEntries(1, 20, 1)); err != nil {
					t.Fatal(err)
				}
				writeTestSnapshot(t, s.Snapshots, 5, "state at 5")
				if err := s.Log.DeleteRange(1, 5); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if c.damage != nil {
					c.damage(t, dir)
				}
				want := kind
				if c.open != nil {
					want = c.open(kind)
				}
				for range 2 { // a refused start must not heal the next one
					faults := &faultRecorder{}
					_, err := OpenStores(storeTestConfig(dir, want, faults))
					if err == nil || !strings.Contains(err.Error(), c.names) || !strings.Contains(err.Error(), rejoinAdvice) {
						t.Fatalf("open: %v", err)
					}
					if len(faults.all()) > 0 {
						t.Fatalf("fatal before raft ran: %v", faults.all())
					}
				}
			})
		}
	}
}

func otherKind(kind string) string {
	if kind == LogStoreWAL {
		return LogStoreBolt
	}
	return LogStoreWAL
}

// Goal: a damaged newest snapshot is survivable exactly when an older one and the log between are still there.
func TestStoresFallBackToOlderSnapshot(t *testing.T) {
	for _, kind := range bothLogStores {
		for _, cut := range []uint64{0, 5, 9} {
			t.Run(fmt.Sprintf("%s/log cut to %d", kind, cut), func(t *testing.T) {
				dir := t.TempDir()
				s := mustOpenStores(t, dir, kind)
				if err := s.Log.StoreLogs(testEntries(1, 20, 1)); err != nil {
					t.Fatal(err)
				}
				writeTestSnapshot(t, s.Snapshots, 5, "state at 5")
				writeTestSnapshot(t, s.Snapshots, 9, "state at 9")
				if cut > 0 {
					if err := s.Log.DeleteRange(1, cut); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				flipBit(t, onlyMatch(t, dir, "raft/snapshots/1-9-*/state.bin"), 0)
				s, err := OpenStores(storeTestConfig(dir, kind, &faultRecorder{}))
				if survives := cut <= 5; survives != (err == nil) {
					t.Fatalf("open: %v", err)
				}
				if err == nil {
					err = s.Close()
				}
				if err != nil && !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
			})
		}
	}
}

func TestStoreConfigRefuses(t *testing.T) {
	good := storeTestConfig(t.TempDir(), LogStoreWAL, &faultRecorder{})
	for name, spoil := range map[string]func(*StoreConfig){
		"dir":         func(c *StoreConfig) { c.Dir = "" },
		"log store":   func(c *StoreConfig) { c.LogStore = "badger" },
		"stall limit": func(c *StoreConfig) { c.StallLimit = time.Millisecond },
		"retain":      func(c *StoreConfig) { c.Retain = -1 },
		"fatal":       func(c *StoreConfig) { c.Fatal = nil },
	} {
		bad := good
		spoil(&bad)
		if _, err := OpenStores(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func writeTestSnapshot(t *testing.T, store raft.SnapshotStore, index uint64, content string) {
	t.Helper()
	servers := raft.Configuration{Servers: []raft.Server{{ID: "n1-0f", Address: "127.0.0.1:8701"}}}
	_, trans := raft.NewInmemTransport("127.0.0.1:8701")
	sink, err := store.Create(1, index, 1, servers, 1, trans)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(sink, content); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
}

func onlyMatch(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

func flipBit(t *testing.T, path string, bit int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[bit/8] ^= 1 << (bit % 8)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyTestDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			rel, relErr := filepath.Rel(dir, path)
			paths = append(paths, rel)
			return relErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
