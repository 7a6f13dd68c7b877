package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Goal: a write that was cut off with the machine is no damage: the entries before it stay, the node starts and
// goes on. raft-wal writes into space it has zeroed, so what was cut off reads as zeros.
func TestTornWriteIsNoDamage(t *testing.T) {
	story, stop := tellRotStory(t, LogStoreWAL)
	crashed := copyTestDir(t, story.dir)
	stop()
	last, whole := lastWALSegment(t, crashed)
	_, end := lastWALBatch(whole)
	for torn := 1; torn < 400; torn += 13 { // the last batch, of three entries, has more bytes
		dir := copyTestDir(t, crashed)
		data := append([]byte(nil), whole...)
		clear(data[end-torn : end])
		if err := os.WriteFile(filepath.Join(dir, "raft", "wal", filepath.Base(last)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustOpenStores(t, dir, LogStoreWAL)
		kept := story.entries[:len(story.entries)-3]
		checkLogHolds(t, s.Log, kept)
		if err := errors.Join(s.Log.StoreLogs(testEntries(story.batch, story.batch+9, 3)), s.Close()); err != nil {
			t.Fatal(err)
		}
		s = mustOpenStores(t, dir, LogStoreWAL)
		checkLogHolds(t, s.Log, append(kept[:len(kept):len(kept)], testEntries(story.batch, story.batch+9, 3)...))
	}
}

// Goal: any flipped bit before the last batch is damage, and none in the last batch, which may be torn, is.
func TestCommittedBatchesTellDamage(t *testing.T) {
	story, stop := tellRotStory(t, LogStoreWAL)
	defer stop()
	_, data := lastWALSegment(t, story.dir)
	start, end := lastWALBatch(data)
	if _, damaged := findWALDamage(data); damaged || start == 0 {
		t.Fatalf("sound segment: damaged %v, last batch at %d", damaged, start)
	}
	unread := make(map[int]bool) // the zeros in commit frames: under no checksum, and without meaning
	for next, whole := 0, true; whole; {
		next, _, whole = readWALBatch(data, next)
		for zero := next - 7; zero < next-4; zero++ {
			unread[zero] = true
		}
	}
	for bit := range end * 8 {
		if unread[bit/8] {
			continue
		}
		data[bit/8] ^= 1 << (bit % 8)
		if at, damaged := findWALDamage(data); damaged != (bit/8 < start) || damaged && at > bit/8 {
			t.Errorf("bit %d of byte %d: damaged %v behind %d; the last batch is %d to %d", bit%8, bit/8, damaged, at, start, end)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
}

func lastWALSegment(t *testing.T, dir string) (path string, data []byte) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "raft", "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	path = segments[len(segments)-1]
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, data
}

func lastWALBatch(data []byte) (start, end int) {
	for {
		next, _, whole := readWALBatch(data, end)
		if !whole {
			return start, end
		}
		start, end = end, next
	}
}
