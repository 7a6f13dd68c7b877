package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"sync"

	"github.com/hashicorp/raft"
)

// The checksum of an entry lives in the entry's Extensions, so that it is made once, by the leader, and every
// node that stores, reads or is sent the entry verifies the same sum:
//
//	byte  0     1     2     3     4     5
//	      +-----+-----+-----+-----+-----+-----+
//	      | 0xFC| 0x01| CRC32C, little endian |
//	      +-----+-----+-----+-----+-----+-----+
//	      magic  form
//
// CRC32C (Castagnoli) runs over index (8 bytes, little endian), term (8), type (1) and data. AppendedAt is not
// covered: it decides nothing, and its encoding differs between stores.
const (
	sumMagic = 0xFC
	sumForm  = 0x01
	sumSize  = 6
)

// maxDeletePasses bounds how often a range is deleted until it is empty; bbolt's Cursor.Delete followed by Next
// can skip keys (bbolt #146, #611).
const maxDeletePasses = 3

// checkedLog is a raft.LogStore that notices every entry that is not what was stored. Neither raft-wal nor
// raft-boltdb does.
type checkedLog struct {
	inner raft.LogStore
	name  string // path of the store, for errors
	fatal *fatalOnce

	writing sync.Mutex // held over each change of the store, which takes one at a time anyway
	ended   bool       // no more changes; owned by writing
}

var errLogEnded = errors.New("log store is closed")

func (c *checkedLog) FirstIndex() (uint64, error) {
	first, _, err := c.bounds()
	return first, c.judge(err)
}

func (c *checkedLog) LastIndex() (uint64, error) {
	_, last, err := c.bounds()
	return last, c.judge(err)
}

// GetLog answers raft.ErrLogNotFound as it is, because raft compares with it to decide to send a snapshot. Any
// other failure is fatal: the entry is there and cannot be trusted.
func (c *checkedLog) GetLog(index uint64, log *raft.Log) error {
	err := c.read(index, log)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	err = fmt.Errorf("read entry %d of log %s: %w", index, c.name, err)
	c.fatal.raise(err)
	return err
}

// StoreLog is StoreLogs of one.
func (c *checkedLog) StoreLog(log *raft.Log) error { return c.StoreLogs([]*raft.Log{log}) }

// StoreLogs adds the checksum to entries without one, as a leader does with its own, and verifies it on entries
// that carry one, as a follower does. The checksum is set on the caller's entries: raft owns them alone until
// StoreLogs returns, and its replication reads them back from here.
func (c *checkedLog) StoreLogs(logs []*raft.Log) error {
	for _, log := range logs {
		if len(log.Extensions) == 0 {
			log.Extensions = appendSum(log)
			continue
		}
		if err := verifySum(log); err != nil {
			err = fmt.Errorf("store entry %d in log %s: received %w", log.Index, c.name, err)
			c.fatal.raise(err)
			return err
		}
	}
	return c.judge(c.store(logs))
}

// DeleteRange makes sure that nothing of the range is left: an entry that came back would be replayed.
func (c *checkedLog) DeleteRange(low, high uint64) error {
	for range maxDeletePasses {
		if err := c.remove(low, high); err != nil {
			return c.judge(err)
		}
		first, last, err := c.bounds()
		if err != nil {
			return c.judge(err)
		}
		// Raft deletes from one end of the log, so a left-over entry would now be an end itself.
		inside := func(index uint64) bool { return index != 0 && low <= index && index <= high }
		if !inside(first) && !inside(last) {
			return nil
		}
	}
	return c.judge(fmt.Errorf("delete entries %d to %d of log %s: some are still there: %w", low, high, c.name, ErrDamaged))
}

// IsMonotonic tells raft whether gaps between entries are forbidden; see raft.MonotonicLogStore.
func (c *checkedLog) IsMonotonic() bool { return isMonotonic(c.inner) }

func isMonotonic(store raft.LogStore) bool {
	m, ok := store.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// judge raises damage and lets everything else (a full disk, say) be raft's to handle.
func (c *checkedLog) judge(err error) error {
	if errors.Is(err, ErrDamaged) {
		c.fatal.raise(err)
	}
	return err
}

// read fetches and verifies without raising. It decodes into a value of its own: the decoder of raft-boltdb keeps
// fields that the stored form lacks and reuses the slices it finds, which raft may still hold.
func (c *checkedLog) read(index uint64, log *raft.Log) (err error) {
	defer containDamage(c.name, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var entry raft.Log
	if err := c.inner.GetLog(index, &entry); err != nil {
		return err
	}
	if entry.Index != index {
		return fmt.Errorf("found entry %d in its place: %w", entry.Index, ErrDamaged)
	}
	if err := verifySum(&entry); err != nil {
		return fmt.Errorf("stored %w", err)
	}
	*log = entry
	return nil
}

func (c *checkedLog) bounds() (first, last uint64, err error) {
	defer containDamage(c.name, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if first, err = c.inner.FirstIndex(); err != nil {
		return 0, 0, fmt.Errorf("find first entry of log %s: %w", c.name, err)
	}
	if last, err = c.inner.LastIndex(); err != nil {
		return 0, 0, fmt.Errorf("find last entry of log %s: %w", c.name, err)
	}
	return first, last, nil
}

func (c *checkedLog) store(logs []*raft.Log) (err error) {
	defer containDamage(c.name, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return errLogEnded
	}
	if err := c.inner.StoreLogs(logs); err != nil {
		return fmt.Errorf("store entries in log %s: %w", c.name, err)
	}
	return nil
}

func (c *checkedLog) remove(low, high uint64) (err error) {
	defer containDamage(c.name, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return errLogEnded
	}
	if err := c.inner.DeleteRange(low, high); err != nil {
		return fmt.Errorf("delete entries %d to %d of log %s: %w", low, high, c.name, err)
	}
	return nil
}

// end lets no change of the log through any more and returns its last index.
func (c *checkedLog) end() (uint64, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.ended = true
	_, last, err := c.bounds()
	return last, err
}

// containDamage, deferred, turns a library's panic over bytes it did not expect into an error. With
// debug.SetPanicOnFault this includes reads of bbolt's memory map beyond the end of its file.
func containDamage(name string, err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%s is %w: %v", name, ErrDamaged, cause)
	}
}

func appendSum(log *raft.Log) []byte {
	ext := make([]byte, 0, sumSize)
	return binary.LittleEndian.AppendUint32(append(ext, sumMagic, sumForm), entrySum(log))
}

func verifySum(log *raft.Log) error {
	ext := log.Extensions
	if len(ext) > 2 && ext[0] == sumMagic && ext[1] > sumForm {
		return fmt.Errorf("checksum has form %d, this build knows %d: upgrade this node (or the entry is %w)", ext[1], sumForm, ErrDamaged)
	}
	if len(ext) != sumSize || ext[0] != sumMagic || ext[1] != sumForm {
		return fmt.Errorf("entry has no checksum but % x: %w", ext[:min(len(ext), sumSize)], ErrDamaged)
	}
	if want, got := binary.LittleEndian.Uint32(ext[2:]), entrySum(log); want != got {
		return fmt.Errorf("checksum is %08x, content gives %08x: entry is %w", want, got, ErrDamaged)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func entrySum(log *raft.Log) uint32 {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[0:], log.Index)
	binary.LittleEndian.PutUint64(head[8:], log.Term)
	head[16] = byte(log.Type)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, log.Data)
}
