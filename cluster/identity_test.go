package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// Goal: a directory is one node of one cluster for its whole life, over restarts.
func TestIdentityLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	made, err := LoadOrCreateIdentity(dir, "n-1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := LoadOrCreateIdentity(t.TempDir(), "n-1")
	if err != nil || other.InstanceID == made.InstanceID || len(made.InstanceID) != 32 {
		t.Fatalf("instance IDs %q and %q, %v", made.InstanceID, other.InstanceID, err)
	}
	if want := raft.ServerID("n-1-" + made.InstanceID); made.ServerID() != want || NameOf(want) != "n-1" {
		t.Fatalf("server ID %q, name in it %q", made.ServerID(), NameOf(made.ServerID()))
	}
	loaded := func() Identity {
		t.Helper()
		id, err := LoadOrCreateIdentity(dir, "n-1")
		if err != nil {
			t.Fatal(err)
		}
		return *id
	}
	if loaded() != *made {
		t.Fatalf("loaded %+v, made %+v", loaded(), *made)
	}
	for range 2 {
		if err := made.SetClusterID(dir, "c1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "c2", strings.Repeat("c", maxClusterID+1)} {
		if err := made.SetClusterID(dir, bad); err == nil {
			t.Errorf("cluster ID changed to %q", bad)
		}
	}
	if made.ClusterID != "c1" || loaded() != *made {
		t.Fatalf("loaded %+v, set %+v", loaded(), *made)
	}
	if _, err := LoadOrCreateIdentity(dir, "n-2"); err == nil || !strings.Contains(err.Error(), `"n-1"`) {
		t.Fatalf("under another name: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, identityFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

// Goal: raft state without its identity is no fresh node.
func TestIdentityMissingBesideRaftState(t *testing.T) {
	dir := t.TempDir()
	if err := mustOpenStores(t, dir, LogStoreWAL).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateIdentity(dir, "n1"); err == nil || !strings.Contains(err.Error(), rejoinAdvice) {
		t.Fatalf("new identity beside raft state: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, identityFile)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("an identity was left: %v", err)
	}
}

// Goal: every flipped bit and every cut is refused with the file's name.
func TestIdentityDamage(t *testing.T) {
	dir := t.TempDir()
	id, err := LoadOrCreateIdentity(dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if err := id.SetClusterID(dir, "c1"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, identityFile)
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, at int, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := LoadOrCreateIdentity(dir, "n1"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s %d: %+v, %v", what, at, id, err)
		}
	}
	for bit := range len(sound) * 8 {
		flipped := append([]byte(nil), sound...)
		flipped[bit/8] ^= 1 << (bit % 8)
		refused("bit", bit, flipped)
	}
	for size := range len(sound) {
		refused("cut to", size, sound[:size])
	}
	refused("longer by", 1, append([]byte(nil), append(sound, '\n')...))
}

func TestIdentityOfLaterFormat(t *testing.T) {
	dir := t.TempDir()
	line := `{"format":2,"name":"n1","shape":"unknown to this build"}`
	if err := os.WriteFile(filepath.Join(dir, identityFile), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreateIdentity(dir, "n1"); err == nil || !strings.Contains(err.Error(), "upgrade this node") {
		t.Fatalf("later format: %v", err)
	}
}

func TestCheckNodeName(t *testing.T) {
	names := map[string]bool{
		"n": true, "1": true, "n1": true, "eu-west-1a": true, "a--b": true, strings.Repeat("x", 32): true,
		"": false, "-": false, "-a": false, "a-": false, "N1": false, "n_1": false, "n.1": false, "né": false,
		"a b": false, "a/b": false, "a\n": false, strings.Repeat("x", 33): false,
	}
	for name, good := range names {
		if err := CheckNodeName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := LoadOrCreateIdentity(t.TempDir(), name); (err == nil) != good {
			t.Errorf("%q made an identity: %v", name, err)
		}
	}
}
