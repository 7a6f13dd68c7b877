package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// checkedStable is a raft.StableStore that never answers a value that was not set for that key: a wrong term or
// vote lets a node vote twice. Each stored value is
//
//	byte  0 … n-1   n … n+3
//	      +---------+-----------------------+
//	      | value   | CRC32C, little endian |
//	      +---------+-----------------------+
//
// with CRC32C (Castagnoli) over key and value. A number's value is 8 bytes, big endian. A key that was never set
// gives raftboltdb.ErrKeyNotFound as it is, because raft compares its text.
type checkedStable struct {
	inner *raftboltdb.BoltStore
	name  string // path of the store, for errors
	fatal *fatalOnce
}

// openStable opens raft/stable.db and verifies every pair in it, because a flipped bit in a key shows only as a
// key that is missing. The file's lock guards the whole data directory until Close.
func openStable(cfg StoreConfig, fatal *fatalOnce) (*checkedStable, error) {
	path := cfg.raftPath("stable.db")
	if err := refuseLostStable(cfg); err != nil {
		return nil, err
	}
	store, err := openBolt(path, func(bucket string, key, stored []byte) error {
		if bucket != boltStableBucket {
			return fmt.Errorf("bucket %q has an entry: %w", bucket, ErrDamaged)
		}
		_, err := cutStableSum(key, stored)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &checkedStable{inner: store, name: path, fatal: fatal}, nil
}

// refuseLostStable refuses to start a new stable store beside an old log or snapshots: with the term and the vote
// forgotten this node could vote twice, and its new snapshots would sort below the old ones (hashicorp/raft #395).
func refuseLostStable(cfg StoreConfig) error {
	for _, kept := range []struct{ dir, suffix string }{
		{cfg.raftPath(), "stable.db"}, // the first, for then nothing is lost
		{cfg.raftPath(), "log.db"},
		{cfg.raftPath("wal"), ".wal"},
		{cfg.raftPath("snapshots"), ""},
	} {
		found, err := holdsData(kept.dir, kept.suffix)
		if err != nil {
			return err
		}
		if found && kept.suffix == "stable.db" {
			return nil
		}
		if found {
			return fmt.Errorf("%s is missing or empty, but %s has raft state: %w; %s",
				cfg.raftPath("stable.db"), kept.dir, ErrDamaged, rejoinAdvice)
		}
	}
	return nil
}

// Close frees the data directory.
func (s *checkedStable) Close() error { return s.inner.Close() }

// Set stores value under key, durably.
func (s *checkedStable) Set(key, value []byte) (err error) {
	defer s.judge(&err)
	defer containDamage(s.name, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := s.inner.Set(key, appendStableSum(key, value)); err != nil {
		return fmt.Errorf("store %q in %s: %w", key, s.name, err)
	}
	return nil
}

// Get returns the value of key, a copy, or raftboltdb.ErrKeyNotFound.
func (s *checkedStable) Get(key []byte) (value []byte, err error) {
	defer s.judge(&err)
	defer containDamage(s.name, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	stored, err := s.inner.Get(key)
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return nil, raftboltdb.ErrKeyNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %q from %s: %w", key, s.name, err)
	}
	if value, err = cutStableSum(key, stored); err != nil {
		return nil, fmt.Errorf("read from %s: %w", s.name, err)
	}
	return value, nil
}

// SetUint64 stores a number under key, durably.
func (s *checkedStable) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 returns the number of key, or raftboltdb.ErrKeyNotFound.
func (s *checkedStable) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("read %q from %s: %d bytes are not a number", key, s.name, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

func (s *checkedStable) judge(err *error) {
	if errors.Is(*err, ErrDamaged) {
		s.fatal.raise(*err)
	}
}

func appendStableSum(key, value []byte) []byte {
	stored := append(make([]byte, 0, len(value)+4), value...)
	return binary.LittleEndian.AppendUint32(stored, stableSum(key, value))
}

func cutStableSum(key, stored []byte) ([]byte, error) {
	at := len(stored) - 4
	if at < 0 {
		return nil, fmt.Errorf("key %q has no checksum: %w", key, ErrDamaged)
	}
	value := stored[:at:at]
	if want, got := binary.LittleEndian.Uint32(stored[at:]), stableSum(key, value); want != got {
		return nil, fmt.Errorf("key %q has checksum %08x, content gives %08x: %w", key, want, got, ErrDamaged)
	}
	return value, nil
}

func stableSum(key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(key, table), table, value)
}
