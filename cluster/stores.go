package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// The log stores a node can run on.
const (
	LogStoreWAL  = "wal"    // hashicorp/raft-wal, segments under raft/wal/
	LogStoreBolt = "boltdb" // hashicorp/raft-boltdb, raft/log.db
)

// ErrDamaged marks every error that says bytes on disk are not the bytes that were written.
var ErrDamaged = errors.New("damaged")

// rejoinAdvice ends the errors after which this copy of the data must not vote again.
const rejoinAdvice = "move the data directory away and rejoin"

// Keys of our own in the stable store, beside raft's.
const (
	keyLogStore = "fencekv/log-store" // which log store this directory was written with
	keyLogEnd   = "fencekv/log-end"   // last index at the last clean stop; 0 while running
	keyWALMeta  = "fencekv/wal-meta"  // raft-wal's list of segments, see walMeta
)

// StoreConfig says where a node keeps its raft state and whom to tell when that state fails.
type StoreConfig struct {
	Dir        string        // data directory, made with mode 0700 when missing
	LogStore   string        // LogStoreWAL (default) or LogStoreBolt
	StallLimit time.Duration // a store call longer than this is fatal; default 5 s, at least 10 ms
	Retain     int           // snapshots kept; default 3, at least 1
	Logger     hclog.Logger  // default: none

	// Fatal is called at most once, with the first fault after which this node must not go on: damaged
	// bytes or a stalled disk. It may be called from any goroutine and must not wait for Close. Required.
	Fatal func(error)

	segmentSize int // bytes of a WAL segment; default 16 MiB. Tests use small ones
}

func (c StoreConfig) withDefaults() StoreConfig {
	if c.LogStore == "" {
		c.LogStore = LogStoreWAL
	}
	if c.StallLimit == 0 {
		c.StallLimit = 5 * time.Second
	}
	if c.Retain == 0 {
		c.Retain = 3
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.segmentSize == 0 {
		c.segmentSize = 16 << 20 // of raft-wal's own 64 MiB the last takes over a second to open
	}
	return c
}

func (c StoreConfig) validate() error {
	switch {
	case c.Dir == "":
		return errors.New("dir is empty")
	case c.LogStore != LogStoreWAL && c.LogStore != LogStoreBolt:
		return fmt.Errorf("log store is %q, want %q or %q", c.LogStore, LogStoreWAL, LogStoreBolt)
	case c.StallLimit < 10*time.Millisecond:
		return fmt.Errorf("stall limit is %s, want at least 10ms", c.StallLimit)
	case c.Retain < 1:
		return fmt.Errorf("retain is %d snapshots, want at least 1", c.Retain)
	case c.Fatal == nil:
		return errors.New("fatal is nil")
	}
	return nil
}

// raftPath is the place of a file or directory of raft state under the data directory.
func (c StoreConfig) raftPath(elem ...string) string {
	return filepath.Join(append([]string{c.Dir, "raft"}, elem...)...)
}

// dirs lists the directories of the layout, outermost first.
func (c StoreConfig) dirs() []string {
	dirs := []string{c.Dir, c.raftPath(), c.raftPath("snapshots")}
	if c.LogStore == LogStoreWAL {
		dirs = append(dirs, c.raftPath("wal"))
	}
	return dirs
}

// Stores is all that raft keeps of one node. The fields may be set directly, with in-memory stores for example.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore

	close []func() error // run last to first
}

// Close releases the stores of a raft node that has been shut down, and frees the data directory for another
// process. A log that damage cut short while the node was down shows at the next start only after a Close.
// After a stall Close can hang as the disk does.
func (s *Stores) Close() error {
	var errs []error
	for _, step := range slices.Backward(s.close) {
		errs = append(errs, step())
	}
	s.close = nil
	return errors.Join(errs...)
}

// OpenStores opens or creates the raft state of one node:
//
//	Dir/raft/stable.db   term, vote and our own records; its lock guards the whole directory
//	Dir/raft/log.db      the log, with LogStoreBolt
//	Dir/raft/wal/        the log, with LogStoreWAL
//	Dir/raft/snapshots/  the snapshots
//
// It reads everything that raft will read at its start, so that a hole or a flipped bit is an error here that
// names its file, not a panic in raft. A directory held by another process gives an error that wraps
// bbolt's ErrTimeout; bytes that are not what was written give one that wraps ErrDamaged.
func OpenStores(cfg StoreConfig) (*Stores, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("store config: %w", err)
	}
	for _, dir := range cfg.dirs() {
		if err := makePrivateDir(dir); err != nil {
			return nil, err
		}
	}
	s := &Stores{}
	if err := s.open(cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stores) open(cfg StoreConfig) error {
	fatal := &fatalOnce{report: cfg.Fatal}
	stable, err := openStable(cfg, fatal)
	if err != nil {
		return fmt.Errorf("open stable store: %w", err)
	}
	s.close = append(s.close, stable.Close)
	recorded, err := checkLogStoreKind(cfg, stable)
	if err != nil {
		return err
	}
	log, closeLog, err := openLog(cfg, stable, fatal)
	if err != nil {
		return fmt.Errorf("open log store: %w", err)
	}
	s.close = append(s.close, closeLog)
	snapshots, err := openSnapshots(cfg.raftPath(), cfg.Retain, cfg.Logger.Named("snapshots"))
	if err != nil {
		return fmt.Errorf("open snapshot store: %w", err)
	}
	if err := checkLogReaches(log, stable, snapshots); err != nil {
		return err
	}
	for _, dir := range cfg.dirs() {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	if !recorded {
		if err := stable.Set([]byte(keyLogStore), []byte(cfg.LogStore)); err != nil {
			return fmt.Errorf("record log store: %w", err)
		}
	}
	// From here raft may rightly cut the log's end off, so the record of the last clean stop is void.
	if err := stable.SetUint64([]byte(keyLogEnd), 0); err != nil {
		return fmt.Errorf("void record of log end: %w", err)
	}

	watch := startStallWatch(cfg.raftPath(), cfg.StallLimit, fatal.raise)
	s.Log = &recentLog{LogStore: watchedLog{inner: log, watch: watch}}
	s.Stable = watchedStable{inner: stable, watch: watch}
	s.Snapshots = snapshots
	s.close = append(s.close, func() error {
		watch.stop()
		fatal.armed.Store(false)
		if fatal.raised.Load() {
			return nil
		}
		return recordLogEnd(log, stable)
	})
	fatal.armed.Store(true)
	return nil
}

func openLog(cfg StoreConfig, stable *checkedStable, fatal *fatalOnce) (*checkedLog, func() error, error) {
	if cfg.LogStore == LogStoreBolt {
		path := cfg.raftPath("log.db")
		store, err := openBoltLog(path)
		if err != nil {
			return nil, nil, err
		}
		return &checkedLog{inner: store, name: path, fatal: fatal}, store.Close, nil
	}
	path := cfg.raftPath("wal")
	store, err := openWAL(path, stable, cfg)
	if err != nil {
		return nil, nil, err
	}
	return &checkedLog{inner: store, name: path, fatal: fatal}, store.Close, nil
}

// checkLogStoreKind refuses a directory whose log was written with the other log store, or whose log is gone.
// It tells whether the kind is on record already; a directory without a record may be a first start that crashed.
func checkLogStoreKind(cfg StoreConfig, stable *checkedStable) (recorded bool, err error) {
	found := ""
	for _, kind := range []string{LogStoreWAL, LogStoreBolt} {
		present, err := logFilesPresent(cfg, kind)
		if err != nil {
			return false, err
		}
		if present && kind != cfg.LogStore {
			return false, otherLogStoreError(cfg, kind)
		}
		if present {
			found = kind
		}
	}
	kind, err := stable.Get([]byte(keyLogStore))
	switch {
	case errors.Is(err, raftboltdb.ErrKeyNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read which log store was used: %w", err)
	case string(kind) != cfg.LogStore:
		return false, otherLogStoreError(cfg, string(kind))
	case found == "":
		return false, fmt.Errorf("%s has lost its %s log: %w; %s", cfg.raftPath(), kind, ErrDamaged, rejoinAdvice)
	}
	return true, nil
}

func otherLogStoreError(cfg StoreConfig, kind string) error {
	return fmt.Errorf("data directory %s was written with log store %q, not %q: start with %q, or %s",
		cfg.Dir, kind, cfg.LogStore, kind, rejoinAdvice)
}

func logFilesPresent(cfg StoreConfig, kind string) (bool, error) {
	if kind == LogStoreWAL {
		return holdsData(cfg.raftPath("wal"), ".wal")
	}
	return holdsData(cfg.raftPath(), "log.db")
}

// checkLogReaches makes sure that the log goes without a hole from the newest readable snapshot to where it
// ended at the last clean stop. Without this raft panics at its start (hashicorp/raft #85), or a log that lost
// its last entries votes as if it had never acknowledged them.
func checkLogReaches(log *checkedLog, stable *checkedStable, snapshots *sealedSnapshots) error {
	base, err := snapshots.newestReadable()
	if err != nil {
		return err
	}
	first, last, err := log.bounds()
	if err != nil {
		return err
	}
	end, err := stable.GetUint64([]byte(keyLogEnd))
	if err != nil && !errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return fmt.Errorf("read record of log end: %w", err)
	}
	if last < end {
		return fmt.Errorf("log %s ends at entry %d, but ended at %d when the node stopped: %w; %s",
			log.name, last, end, ErrDamaged, rejoinAdvice)
	}
	if last == 0 {
		return nil
	}
	if first > base+1 {
		return fmt.Errorf("log %s begins at entry %d and the newest readable snapshot ends at %d, the entries between are gone: %w; %s",
			log.name, first, base, ErrDamaged, rejoinAdvice)
	}
	// Raft reads the last entry even when the snapshot covers it.
	for index := min(base+1, last); index <= last; index++ {
		var entry raft.Log
		if err := log.read(index, &entry); err != nil {
			return fmt.Errorf("read entry %d of log %s (entries %d to %d, snapshot to %d): %w; %s",
				index, log.name, first, last, base, err, rejoinAdvice)
		}
	}
	return nil
}

// recordLogEnd lets the next start notice a log that lost its last entries while the node was down.
func recordLogEnd(log *checkedLog, stable *checkedStable) error {
	last, err := log.end()
	if err != nil {
		return err
	}
	if err := stable.SetUint64([]byte(keyLogEnd), last); err != nil {
		return fmt.Errorf("record log end: %w", err)
	}
	return nil
}

// fatalOnce passes the first fault on and drops the rest: the node leaves for one reason. It is armed while the
// stores are in raft's hands; before, OpenStores returns the fault, and after, closed stores only look faulty.
type fatalOnce struct {
	report func(error)
	armed  atomic.Bool
	raised atomic.Bool
}

func (f *fatalOnce) raise(err error) {
	if f.armed.Load() && f.raised.CompareAndSwap(false, true) {
		f.report(err)
	}
}

// makePrivateDir makes dir readable by this user alone even where raft or an earlier umask opened it wider.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("make directory private: %w", err)
	}
	return nil
}

// holdsData tells whether dir has a directory or a file that is not empty whose name ends in suffix.
func holdsData(dir, suffix string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return false, err
		}
		if strings.HasSuffix(entry.Name(), suffix) && (entry.IsDir() || info.Size() > 0) {
			return true, nil
		}
	}
	return false, nil
}
