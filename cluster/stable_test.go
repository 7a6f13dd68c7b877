package cluster

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// Goal: missing keys are what raft expects, and values come back as set.
func TestStableStoreLife(t *testing.T) {
	dir := t.TempDir()
	s := mustOpenStores(t, dir, LogStoreWAL)
	if _, err := s.Stable.Get([]byte("LastVoteCand")); err != raftboltdb.ErrKeyNotFound || err.Error() != "not found" {
		t.Fatalf("missing key: %v", err)
	}
	if n, err := s.Stable.GetUint64([]byte("CurrentTerm")); n != 0 || err != raftboltdb.ErrKeyNotFound {
		t.Fatalf("missing number: %d, %v", n, err)
	}
	values := map[string][]byte{"LastVoteCand": []byte("127.0.0.1:8701"), "empty": {}, "big": bytes.Repeat([]byte{7}, 9000)}
	for key, value := range values {
		if err := s.Stable.Set([]byte(key), value); err != nil {
			t.Fatal(err)
		}
	}
	for term := range uint64(5) {
		if err := s.Stable.SetUint64([]byte("CurrentTerm"), term); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpenStores(t, dir, LogStoreWAL)
	for key, value := range values {
		if got, err := s.Stable.Get([]byte(key)); err != nil || got == nil || !bytes.Equal(got, value) {
			t.Errorf("%s: %x, %v", key, got, err)
		}
	}
	if n, err := s.Stable.GetUint64([]byte("CurrentTerm")); n != 4 || err != nil {
		t.Errorf("term: %d, %v", n, err)
	}
	if _, err := s.Stable.GetUint64([]byte("big")); err == nil {
		t.Error("9000 bytes read as a number")
	}
}

// Goal: a value that changes under a running node stops it, with the file and the key in the reason.
func TestStableDamageIsFatal(t *testing.T) {
	faults := &faultRecorder{}
	cfg := storeTestConfig(t.TempDir(), LogStoreBolt, faults)
	s, err := OpenStores(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	term := []byte("CurrentTerm")
	if err := s.Stable.SetUint64(term, 7); err != nil {
		t.Fatal(err)
	}
	beneath := s.Stable.(watchedStable).inner.(*checkedStable).inner
	for _, stored := range [][]byte{{0, 0, 0, 0, 0, 0, 0, 6, 1, 2, 3, 4}, {1, 2, 3}} {
		if err := beneath.Set(term, stored); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Stable.GetUint64(term); n != 0 || !errors.Is(err, ErrDamaged) {
			t.Fatalf("read %d, %v", n, err)
		}
	}
	all := faults.all()
	if len(all) != 1 || !strings.Contains(all[0].Error(), cfg.raftPath("stable.db")) || !strings.Contains(all[0].Error(), "CurrentTerm") {
		t.Fatalf("fatal: %v", all)
	}
}

// Goal: a straggler that comes after Close is answered with errors, and takes nothing for damage.
func TestClosedStores(t *testing.T) {
	for _, kind := range bothLogStores {
		t.Run(kind, func(t *testing.T) {
			s := mustOpenStores(t, t.TempDir(), kind) // fails the test on a fault
			if err := errors.Join(s.Log.StoreLogs(testEntries(1, 3, 1)), s.Close()); err != nil {
				t.Fatal(err)
			}
			for name, err := range map[string]error{
				"store":  s.Log.StoreLogs(testEntries(4, 5, 1)),
				"delete": s.Log.DeleteRange(1, 2),
				"read":   s.Log.GetLog(1, new(raft.Log)),
				"set":    s.Stable.Set([]byte("k"), nil),
			} {
				if err == nil {
					t.Errorf("%s on closed stores", name)
				}
			}
		})
	}
}
