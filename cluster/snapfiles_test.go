package cluster

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Goal: no flipped bit in any file of a snapshot changes what raft is told about it or restores from it.
func TestSnapshotDamage(t *testing.T) {
	base := t.TempDir()
	store, err := openSnapshots(base, 3, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	writeTestSnapshot(t, store, 7, "state at 7")
	all, err := store.List()
	if err != nil || len(all) != 1 {
		t.Fatalf("list: %v, %v", all, err)
	}
	id, want := all[0].ID, *all[0]
	read := func() (raft.SnapshotMeta, string, error) {
		meta, content, err := store.Open(id)
		if err != nil {
			return raft.SnapshotMeta{}, "", err
		}
		defer content.Close()
		state, err := io.ReadAll(content)
		meta.Peers = want.Peers // for raft before protocol 2; nobody reads it
		return *meta, string(state), err
	}
	if meta, state, err := read(); err != nil || state != "state at 7" || !reflect.DeepEqual(meta, want) {
		t.Fatalf("sound snapshot: %+v, %q, %v", meta, state, err)
	}
	for _, name := range []string{"meta.json", "state.bin", snapshotSealFile} {
		path := filepath.Join(base, "snapshots", id, name)
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for bit := range len(sound) * 8 {
			flipBit(t, path, bit)
			meta, state, err := read()
			if err == nil && (state != "state at 7" || !reflect.DeepEqual(meta, want)) {
				t.Errorf("%s bit %d: %+v, %q", name, bit, meta, state)
			}
			if err != nil {
				refused++
			}
			if index, err := store.newestReadable(); err == nil && index != 7 {
				t.Errorf("%s bit %d: newest readable snapshot ends at %d", name, bit, index)
			}
			flipBit(t, path, bit)
		}
		if refused < len(sound)*8/2 {
			t.Errorf("%s: only %d of %d flips were noticed", name, refused, len(sound)*8)
		}
	}
}

func TestNoSnapshotIsNoFault(t *testing.T) {
	store, err := openSnapshots(t.TempDir(), 3, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	if index, err := store.newestReadable(); index != 0 || err != nil {
		t.Fatalf("newest of none: %d, %v", index, err)
	}
}

// Goal: a cancelled snapshot leaves nothing, and no more are kept than asked for.
func TestSnapshotsKept(t *testing.T) {
	base := t.TempDir()
	store, err := openSnapshots(base, 2, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for index := range uint64(4) {
		writeTestSnapshot(t, store, index+1, "x")
	}
	_, trans := raft.NewInmemTransport("")
	sink, err := store.Create(1, 9, 1, raft.Configuration{}, 1, trans)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	all, err := store.List()
	if err != nil || len(all) != 2 || all[0].Index != 4 || all[1].Index != 3 {
		t.Fatalf("list: %v, %v", all, err)
	}
	if names := filesBelow(t, base); len(names) != 2*3 {
		t.Fatalf("files: %v", names)
	}
}
