package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/fencekv/fencekv/fsm/codec"
)

// batchLog keeps the entries of one StoreLogs call in one record of raft-boltdb:
// bbolt then sorts, copies and writes a page or two for the group instead of an
// element for each entry. An entry on its own is stored as itself. A group is a
// record under the index of its first entry:
//
//	Type  batchType
//	Data  for each entry: term, type, data, extensions, time of append
//
// with the checksum of checksum.go, over and above each entry's own. Entries of a
// group from the beginning of the next record on do not count: they were cut off.
type batchLog struct {
	inner *raftboltdb.BoltStore

	mu     sync.RWMutex
	starts []uint64 // indexes of the records, rising
	last   uint64   // index of the last entry, 0 for none
	recent []*raft.Log
}

// batchType is none of Raft's own.
const batchType raft.LogType = 200

// maxBatchData bounds one field while reading, far above what a group may hold.
const maxBatchData = 64 << 20

// openBatchLog takes the indexes of the records that stand in the store.
func openBatchLog(inner *raftboltdb.BoltStore, starts []uint64) (*batchLog, error) {
	l := &batchLog{inner: inner, starts: starts}
	if len(starts) == 0 {
		return l, nil
	}
	newest, err := l.group(starts[len(starts)-1])
	if err != nil {
		return nil, err
	}
	l.last = newest[len(newest)-1].Index
	return l, nil
}

// IsMonotonic tells Raft to leave no gap between entries.
func (l *batchLog) IsMonotonic() bool { return true }

func (l *batchLog) FirstIndex() (uint64, error) { return l.inner.FirstIndex() }

func (l *batchLog) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	newest, err := l.inner.LastIndex() // above l.last only if a deletion left it behind
	return max(newest, l.last), err
}

func (l *batchLog) GetLog(index uint64, log *raft.Log) error {
	l.mu.RLock()
	at, ok := l.holding(index)
	recent := l.recent
	var start uint64
	if ok {
		start = l.starts[at]
	}
	l.mu.RUnlock()
	if !ok {
		return raft.ErrLogNotFound
	}
	if len(recent) == 0 || recent[0].Index != start {
		group, err := l.group(start)
		if err != nil {
			return err
		}
		recent = group
		l.mu.Lock()
		l.recent = group // entries are read in order
		l.mu.Unlock()
	}
	if index-start >= uint64(len(recent)) {
		return raft.ErrLogNotFound
	}
	*log = *recent[index-start]
	return nil
}

// holding returns which record holds index, if the log does.
func (l *batchLog) holding(index uint64) (at int, ok bool) {
	at, exact := slices.BinarySearch(l.starts, index)
	if !exact {
		at--
	}
	return at, at >= 0 && index <= l.last
}

// StoreLog is StoreLogs of one.
func (l *batchLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *batchLog) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, log := range logs {
		if log.Index != logs[0].Index+uint64(i) || l.last != 0 && logs[0].Index != l.last+1 {
			return fmt.Errorf("entry %d does not follow entry %d", log.Index, max(l.last, logs[0].Index))
		}
	}
	if err := l.inner.StoreLog(pack(logs)); err != nil {
		return err
	}
	l.starts = append(l.starts, logs[0].Index)
	l.last = logs[len(logs)-1].Index
	return nil
}

// DeleteRange cuts off one end of the log. A group that the cut goes through is
// written anew: before the deletion where its end stays, behind it where its
// beginning does, so that a crash leaves the log longer than asked, without a hole.
func (l *batchLog) DeleteRange(low, high uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent = nil
	if at, ok := l.holding(high + 1); ok && l.starts[at] <= high {
		rest, err := l.group(l.starts[at])
		if err != nil {
			return err
		}
		rest = rest[min(high+1-l.starts[at], uint64(len(rest))):]
		if len(rest) > 0 {
			if err := l.inner.StoreLog(pack(rest)); err != nil {
				return err
			}
			l.starts = slices.Insert(l.starts, at+1, high+1)
		}
	}
	var kept []*raft.Log
	if at, ok := l.holding(low); ok && l.starts[at] < low {
		group, err := l.group(l.starts[at])
		if err != nil {
			return err
		}
		kept = group[:min(low-l.starts[at], uint64(len(group)))]
	}
	if err := l.inner.DeleteRange(low, high); err != nil {
		return err
	}
	if len(kept) > 0 {
		if err := l.inner.StoreLog(pack(kept)); err != nil {
			return err
		}
	}
	l.starts = slices.DeleteFunc(l.starts, func(start uint64) bool { return low <= start && start <= high })
	switch {
	case len(l.starts) == 0:
		l.last = 0
	case l.last <= high:
		l.last = min(l.last, low-1)
	}
	return nil
}

// group reads the record that begins at start.
func (l *batchLog) group(start uint64) ([]*raft.Log, error) {
	var record raft.Log
	if err := l.inner.GetLog(start, &record); err != nil {
		return nil, err
	}
	if record.Type != batchType {
		return []*raft.Log{&record}, nil
	}
	if err := verifySum(&record); err != nil {
		return nil, fmt.Errorf("group of entries at %d: %w", start, err)
	}
	var group []*raft.Log
	for d := codec.NewDecoder(record.Data); d.More(); {
		log := &raft.Log{
			Index: start + uint64(len(group)), Term: d.Uint(), Type: raft.LogType(d.Byte()),
			Data: d.Blob(maxBatchData), Extensions: d.Blob(maxBatchData),
		}
		if at := d.Int(); at != 0 {
			log.AppendedAt = time.Unix(0, at)
		}
		if err := d.Err(); err != nil {
			return nil, fmt.Errorf("group of entries at %d is %w: %w", start, ErrDamaged, err)
		}
		group = append(group, log)
	}
	if len(group) == 0 || record.Index != start {
		return nil, fmt.Errorf("group of entries at %d holds none: %w", start, ErrDamaged)
	}
	return group, nil
}

// pack returns the record of a group.
func pack(logs []*raft.Log) *raft.Log {
	if len(logs) == 1 {
		return logs[0]
	}
	size := 0
	for _, log := range logs {
		size += len(log.Data) + len(log.Extensions) + 32
	}
	e := codec.Encoder{Bytes: make([]byte, 0, size)}
	for _, log := range logs {
		e.Uint(log.Term)
		e.Byte(byte(log.Type))
		e.Blob(log.Data)
		e.Blob(log.Extensions)
		at := int64(0)
		if !log.AppendedAt.IsZero() {
			at = log.AppendedAt.UnixNano()
		}
		e.Int(at)
	}
	record := &raft.Log{Index: logs[0].Index, Term: logs[0].Term, Type: batchType, Data: e.Bytes}
	record.Extensions = appendSum(record)
	return record
}
