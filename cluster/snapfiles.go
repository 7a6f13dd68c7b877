package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// snapshotTmp is the suffix of a snapshot directory that raft is still writing.
const snapshotTmp = ".tmp"

// snapshotSealFile holds the CRC32C (Castagnoli), 8 hex digits, of what snapshotSeal says.
const snapshotSealFile = "meta.crc"

// sealedSnapshots is raft's file snapshot store with a checksum over meta.json, which has none: a flipped bit
// there moves the snapshot to another index, term or membership. The seal is written into the directory while
// raft still calls it temporary, so every finished snapshot has one. The content, state.bin, is covered by the
// CRC64 in meta.json, and by the snapshot format's own.
type sealedSnapshots struct {
	inner  *raft.FileSnapshotStore
	dir    string // …/snapshots
	logger hclog.Logger
}

// openSnapshots opens base/snapshots and removes what snapshots cut off by a crash have left there.
func openSnapshots(base string, retain int, logger hclog.Logger) (*sealedSnapshots, error) {
	inner, err := raft.NewFileSnapshotStoreWithLogger(base, retain, logger)
	if err != nil {
		return nil, err
	}
	s := &sealedSnapshots{inner: inner, dir: filepath.Join(base, "snapshots"), logger: logger}
	if err := makePrivateDir(s.dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasSuffix(entry.Name(), snapshotTmp) {
			continue
		}
		logger.Info("removing unfinished snapshot", "name", entry.Name())
		if err := os.RemoveAll(filepath.Join(s.dir, entry.Name())); err != nil {
			return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
		}
	}
	return s, nil
}

// Create implements raft.SnapshotStore.
func (s *sealedSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.inner.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	seal, err := snapshotSeal(&raft.SnapshotMeta{
		ID: sink.ID(), Version: version, Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	})
	dir := filepath.Join(s.dir, sink.ID()+snapshotTmp)
	if err == nil {
		err = writeFileSync(filepath.Join(dir, snapshotSealFile), []byte(seal))
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("seal snapshot: %w", err), sink.Cancel())
	}
	return sink, nil
}

// List implements raft.SnapshotStore. It leaves out, and logs, snapshots whose meta.json is not what was written.
func (s *sealedSnapshots) List() ([]*raft.SnapshotMeta, error) {
	all, err := s.inner.List()
	if err != nil {
		return nil, err
	}
	var sound []*raft.SnapshotMeta
	for _, meta := range all {
		if err := s.verifySeal(meta); err != nil {
			s.logger.Error("snapshot left out", "error", err)
			continue
		}
		sound = append(sound, meta)
	}
	return sound, nil
}

// Open implements raft.SnapshotStore. It reads the whole snapshot once to verify it.
func (s *sealedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	state := filepath.Join(s.dir, id, "state.bin")
	meta, content, err := s.inner.Open(id)
	if err != nil {
		return nil, nil, fmt.Errorf("open snapshot %s: %w", state, err)
	}
	err = s.verifySeal(meta)
	if err == nil && meta.ID != id {
		err = fmt.Errorf("snapshot %s says it is %q: %w", filepath.Join(s.dir, id), meta.ID, ErrDamaged)
	}
	if err == nil {
		err = verifySize(state, meta.Size)
	}
	if err != nil {
		return nil, nil, errors.Join(err, content.Close())
	}
	return meta, content, nil
}

// newestReadable returns the index of the snapshot that raft will restore at its start, 0 when there is none
// at all. Snapshots of which not one can be read are an error: the log before them is gone.
func (s *sealedSnapshots) newestReadable() (uint64, error) {
	listed, err := s.List()
	if err != nil {
		return 0, fmt.Errorf("list snapshots: %w", err)
	}
	var faults []error
	for _, meta := range listed {
		_, content, err := s.Open(meta.ID)
		if err == nil {
			return meta.Index, content.Close()
		}
		s.logger.Error("snapshot cannot be read", "error", err)
		faults = append(faults, err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("list snapshots: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			faults = append(faults, fmt.Errorf("no snapshot in %s can be read, %s among them: %w; %s",
				s.dir, entry.Name(), ErrDamaged, rejoinAdvice))
			return 0, errors.Join(faults...)
		}
	}
	return 0, nil
}

func (s *sealedSnapshots) verifySeal(meta *raft.SnapshotMeta) error {
	dir := filepath.Join(s.dir, filepath.Base(meta.ID))
	want, err := os.ReadFile(filepath.Join(dir, snapshotSealFile))
	if err != nil {
		return fmt.Errorf("read seal of snapshot: %w: %w", ErrDamaged, err)
	}
	got, err := snapshotSeal(meta)
	if err != nil {
		return err
	}
	if string(want) != got {
		return fmt.Errorf("%s is not what was written: %w", filepath.Join(dir, "meta.json"), ErrDamaged)
	}
	return nil
}

// snapshotSeal sums up what meta.json says, except for the size and checksum of the content, which the content
// itself verifies, and the peers, which raft reads in snapshots of version 0 only. The fields are spelled out, so
// that a raft that knows more of them still reads this one's seals.
func snapshotSeal(meta *raft.SnapshotMeta) (string, error) {
	type server struct {
		Suffrage int
		ID       string
		Address  string
	}
	sealed := struct {
		ID                              string
		Version                         int
		Index, Term, ConfigurationIndex uint64
		Servers                         []server
	}{meta.ID, int(meta.Version), meta.Index, meta.Term, meta.ConfigurationIndex, nil}
	for _, s := range meta.Configuration.Servers {
		sealed.Servers = append(sealed.Servers, server{int(s.Suffrage), string(s.ID), string(s.Address)})
	}
	encoded, err := json.Marshal(sealed)
	if err != nil {
		return "", fmt.Errorf("encode snapshot meta: %w", err)
	}
	return fmt.Sprintf("%08x", crc32.Checksum(encoded, crc32.MakeTable(crc32.Castagnoli))), nil
}

func verifySize(path string, want int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read size of snapshot: %w", err)
	}
	if info.Size() != want {
		return fmt.Errorf("%s has %d bytes, meta.json says %d: %w", path, info.Size(), want, ErrDamaged)
	}
	return nil
}
