package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// Bounds of the newest entries kept in memory, which so take at most 16 MiB. A
// larger entry is read from the store; there the read is the smaller part.
const (
	recentEntries    = 512
	recentEntryBytes = 32 << 10
)

// recentLog is a raft.LogStore that keeps the newest entries in memory: a leader
// reads each entry again for every follower, and every node to apply it. It keeps
// an entry only once the store has it, and forgets all when any is deleted.
type recentLog struct {
	raft.LogStore

	mu   sync.RWMutex
	ring [recentEntries]raft.Log // by index modulo its length; index 0 is none
}

func (l *recentLog) GetLog(index uint64, log *raft.Log) error {
	l.mu.RLock()
	entry := l.ring[index%recentEntries]
	l.mu.RUnlock()
	if entry.Index == index && index != 0 {
		*log = entry
		return nil
	}
	return l.LogStore.GetLog(index, log)
}

// StoreLog is StoreLogs of one.
func (l *recentLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *recentLog) StoreLogs(logs []*raft.Log) error {
	if err := l.LogStore.StoreLogs(logs); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range logs {
		slot := &l.ring[log.Index%recentEntries]
		if *slot = (raft.Log{}); len(log.Data) <= recentEntryBytes {
			*slot = *log
		}
	}
	return nil
}

func (l *recentLog) DeleteRange(low, high uint64) error {
	l.mu.Lock()
	l.ring = [recentEntries]raft.Log{}
	l.mu.Unlock()
	return l.LogStore.DeleteRange(low, high)
}

// IsMonotonic passes on what the store says; see raft.MonotonicLogStore.
func (l *recentLog) IsMonotonic() bool { return isMonotonic(l.LogStore) }
