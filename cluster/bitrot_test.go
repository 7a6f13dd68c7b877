package cluster

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// flipsPerFile is how many single bits of each file a run tries; each run tries others.
const flipsPerFile = 12

// rotStory is a node's state whose every value is known: a snapshot at 5, entries 6 to 57 of term 1, 58 to 66 of
// term 2 in batches, and a vote.
type rotStory struct {
	dir     string
	entries []*raft.Log
	batch   uint64 // first entry of the last batch
	stable  map[string]uint64
}

func tellRotStory(t *testing.T, kind string) (story rotStory, close func()) {
	t.Helper()
	story = rotStory{dir: t.TempDir(), batch: 64, stable: map[string]uint64{"CurrentTerm": 2, "LastVoteTerm": 2}}
	s := mustOpenStores(t, story.dir, kind)
	steps := []func() error{
		func() error { return s.Stable.SetUint64([]byte("CurrentTerm"), 1) },
		func() error { return s.Log.StoreLogs(testEntries(1, 20, 1)) },
		func() error { return s.Log.StoreLogs(testEntries(21, 60, 1)) },
		func() error { writeTestSnapshot(t, s.Snapshots, 5, "state at 5"); return nil },
		func() error { return s.Log.DeleteRange(1, 5) },
		func() error { return s.Log.DeleteRange(58, 60) },
		func() error { return s.Stable.SetUint64([]byte("CurrentTerm"), 2) },
		func() error { return s.Stable.SetUint64([]byte("LastVoteTerm"), 2) },
		func() error { return s.Log.StoreLogs(testEntries(58, 60, 2)) },
		func() error { return s.Log.StoreLogs(testEntries(61, 63, 2)) },
		func() error { return s.Log.StoreLogs(testEntries(64, 66, 2)) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	story.entries = append(testEntries(6, 57, 1), testEntries(58, 66, 2)...)
	return story, func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Goal: whatever single bit of a stopped node's files flips, each answer is the one that was stored or an error.
// No other entry, vote or snapshot, no shorter log, no panic.
func TestBitRotAfterCleanStop(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			story, stop := tellRotStory(t, kind)
			stop()
			rotEachFile(t, story, kind, story.entries[len(story.entries)-1].Index)
		})
	}
}

// Goal: the same for a node that crashed. Its last batch cannot be told from a torn write and may go; no more.
func TestBitRotAfterCrash(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			story, stop := tellRotStory(t, kind)
			defer stop()
			story.dir = copyTestDir(t, story.dir)
			rotEachFile(t, story, kind, story.batch-1)
		})
	}
}

func rotEachFile(t *testing.T, story rotStory, kind string, leastLast uint64) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for _, name := range filesBelow(t, story.dir) {
		data, err := os.ReadFile(filepath.Join(story.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for range flipsPerFile {
			bit := pickBit(rng, data)
			dir := copyTestDir(t, story.dir)
			flipBit(t, filepath.Join(dir, name), bit)
			if !story.survives(t, dir, kind, leastLast, name, bit) {
				refused++
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if refused == 0 {
		t.Error("no flip was noticed at all")
	}
}

// pickBit prefers bits next to written bytes: most of a preallocated file is zeros that nobody reads.
func pickBit(rng *rand.Rand, data []byte) int {
	for range 64 {
		at := rng.IntN(len(data))
		if near := data[max(0, at-16):min(len(data), at+16)]; bytes.Count(near, []byte{0}) < len(near) {
			return at*8 + rng.IntN(8)
		}
	}
	return rng.IntN(len(data) * 8)
}

// survives checks every answer of the damaged copy, and tells whether it was served without a complaint.
func (story rotStory) survives(t *testing.T, dir, kind string, leastLast uint64, name string, bit int) bool {
	t.Helper()
	where := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s bit %d: "+format, append([]any{name, bit}, args...)...)
	}
	faults := &faultRecorder{}
	s, err := OpenStores(storeTestConfig(dir, kind, faults))
	if err != nil {
		if !strings.Contains(err.Error(), dir) {
			where("refused without the file's name: %v", err)
		}
		return false
	}
	defer s.Close()
	clean := true
	for _, want := range story.entries {
		var got raft.Log
		switch err := s.Log.GetLog(want.Index, &got); {
		case err == nil && !sameEntry(&got, want):
			where("entry %d is another: %+v", want.Index, got)
		case err == nil:
		case errors.Is(err, raft.ErrLogNotFound):
			clean = false
		case len(faults.all()) != 1 || !strings.Contains(faults.all()[0].Error(), dir):
			where("entry %d: %v; fatal: %v", want.Index, err, faults.all())
		}
	}
	if last, err := s.Log.LastIndex(); err == nil && (last < leastLast || last > story.entries[len(story.entries)-1].Index) {
		where("log ends at %d", last)
	}
	for key, want := range story.stable {
		if got, err := s.Stable.GetUint64([]byte(key)); err == nil && got != want || errors.Is(err, raftboltdb.ErrKeyNotFound) {
			where("%s is %d, %v", key, got, err)
		}
	}
	story.checkSnapshot(s.Snapshots, where)
	return clean && len(faults.all()) == 0
}

func (story rotStory) checkSnapshot(store raft.SnapshotStore, where func(string, ...any)) {
	all, err := store.List()
	if err != nil || len(all) == 0 {
		return
	}
	meta, content, err := store.Open(all[0].ID)
	if err != nil {
		return
	}
	defer content.Close()
	state, err := io.ReadAll(content)
	if err == nil && (string(state) != "state at 5" || meta.Index != 5 || meta.Term != 1 || meta.ConfigurationIndex != 1 ||
		!slices.Equal(meta.Configuration.Servers, []raft.Server{{ID: "n1-0f", Address: "127.0.0.1:8701"}})) {
		where("snapshot is another: %+v %q", meta, state)
	}
}
