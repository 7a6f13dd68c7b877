package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"runtime/debug"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	boltLogBucket    = "logs" // raft-boltdb's, with the entries by index, big endian
	boltStableBucket = "conf" // raft-boltdb's, with the pairs of the stable store
)

// bbolt trusts its file: a flipped bit in a page makes it panic on a goroutine of its own, recurse without end or
// read outside its map, none of which can be recovered, and a damaged meta page makes it fall back, silently, to
// the state before the last commit. So the whole tree is read and verified here before bbolt opens the file for
// writing. The layout, from bbolt's internal/common, in the machine's byte order:
//
//	page     id 8 | flags 2 | count 2 | overflow 4 | elements | keys and values, packed in order
//	leaf     flags 4 | pos 4 | key size 4 | value size 4      (an element; pos counts from the element)
//	branch   pos 4 | key size 4 | child page id 8             (an element)
//	meta     magic 4 | version 4 | page size 4 | flags 4 | root page 8 | root sequence 8 | freelist page 8 |
//	         page count 8 | txid 8 | FNV-1a 8                 (after the header of pages 0 and 1)
//	bucket   root page 8 | sequence 8 | page, when the root page is 0     (the value of a leaf element with flag 1)
const (
	boltHeader     = 16
	boltElement    = 16
	boltMetaSize   = 64
	boltBranchPage = 0x01
	boltLeafPage   = 0x02
	boltMagic      = 0xED0CDAED
	boltMaxDepth   = 64 // far above any tree of 2^63 keys with two keys a page
	boltMaxPage    = 64 << 10
	boltMaxSpan    = 1 << 30 // bytes of a page with its overflow: far above the largest entry
)

// openBolt opens or creates a raft-boltdb store. visit sees every pair of an existing file first.
func openBolt(path string, visit func(bucket string, key, value []byte) error) (store *raftboltdb.BoltStore, err error) {
	defer containDamage(path, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	switch info, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Size() > 0:
		if err := verifyBoltLocked(path, visit); err != nil {
			return nil, err
		}
	}
	store, err = raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: boltOptions(false)})
	if err != nil {
		return nil, explainBoltOpen(path, err)
	}
	return store, nil
}

// boltLog is a raft-boltdb log whose entries stand in groups.
type boltLog struct {
	*batchLog
	store *raftboltdb.BoltStore
}

// Close releases the file.
func (l boltLog) Close() error { return l.store.Close() }

// openBoltLog opens or creates a raft-boltdb log. A key's size, when it is the last of its page, is all that the
// packing of the page does not give away; the value behind it is under the entry's checksum.
func openBoltLog(path string) (log boltLog, err error) {
	defer containDamage(path, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var starts []uint64
	store, err := openBolt(path, func(bucket string, key, _ []byte) error {
		if bucket != boltLogBucket || len(key) != 8 {
			return fmt.Errorf("entry %x of bucket %q: %w", key, bucket, ErrDamaged)
		}
		starts = append(starts, binary.BigEndian.Uint64(key))
		return nil
	})
	if err != nil {
		return boltLog{}, err
	}
	groups, err := openBatchLog(store, starts)
	if err != nil {
		return boltLog{}, errors.Join(fmt.Errorf("open %s: %w; %s", path, err, rejoinAdvice), store.Close())
	}
	return boltLog{groups, store}, nil
}

// boltOptions leaves the freelist out of the file: it would be written with every commit, and is rebuilt at open.
func boltOptions(readOnly bool) *bbolt.Options {
	return &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, ReadOnly: readOnly}
}

func explainBoltOpen(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("data directory in use by another process: lock %s: %w", path, err)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("open %s: %w: %w; %s", path, ErrDamaged, err, rejoinAdvice)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// verifyBoltLocked verifies the file under bbolt's shared lock, so that no other process is changing it.
func verifyBoltLocked(path string, visit func(bucket string, key, value []byte) error) error {
	lock, err := bbolt.Open(path, 0o600, boltOptions(true))
	if err != nil {
		return explainBoltOpen(path, err)
	}
	err = verifyBolt(path, visit)
	return errors.Join(err, lock.Close())
}

func verifyBolt(path string, visit func(bucket string, key, value []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	tree := &boltTree{file: file, seen: make(map[uint64]bool), visit: visit}
	if err := tree.verify(); err != nil {
		return fmt.Errorf("%s: %w; %s", path, err, rejoinAdvice)
	}
	return nil
}

// boltTree is one walk over the pages of a bbolt file.
type boltTree struct {
	file     *os.File
	pageSize uint64
	pages    uint64 // page ids are below this
	seen     map[uint64]bool
	visit    func(bucket string, key, value []byte) error
}

// boltItem is an element of a page with its bytes.
type boltItem struct {
	flags      uint32
	child      uint64
	key, value []byte
}

func (t *boltTree) verify() error {
	root, txid, err := t.readMetas()
	if err != nil {
		return err
	}
	buckets := make(map[string]bool)
	err = t.walk(root, nil, nil, 0, func(item boltItem) error {
		if item.flags != 1 {
			return fmt.Errorf("root entry %q is no bucket: %w", item.key, ErrDamaged)
		}
		buckets[string(item.key)] = true
		return t.walkBucket(item)
	})
	if err != nil {
		return err
	}
	// Before transaction 2, raft-boltdb's first, the file is new and empty.
	if txid >= 2 && (len(buckets) != 2 || !buckets[boltLogBucket] || !buckets[boltStableBucket]) {
		return fmt.Errorf("buckets are missing: %w", ErrDamaged)
	}
	return nil
}

// readMetas demands both meta pages to be valid. A commit writes one of them inside one disk sector, so a crash
// leaves no invalid one; with one lost, bbolt would take up the state before the last commit.
func (t *boltTree) readMetas() (root, txid uint64, err error) {
	newest := make([]byte, boltMetaSize)
	if err := t.readMeta(0, newest); err != nil {
		return 0, 0, err
	}
	t.pageSize = uint64(binary.NativeEndian.Uint32(newest[8:]))
	if t.pageSize < 1024 || t.pageSize > boltMaxPage {
		return 0, 0, fmt.Errorf("page size is %d: %w", t.pageSize, ErrDamaged)
	}
	other := make([]byte, boltMetaSize)
	if err := t.readMeta(t.pageSize, other); err != nil {
		return 0, 0, err
	}
	txidOf := func(meta []byte) uint64 { return binary.NativeEndian.Uint64(meta[48:]) }
	if txidOf(other) > txidOf(newest) {
		newest = other
	}
	t.pages = binary.NativeEndian.Uint64(newest[40:])
	return binary.NativeEndian.Uint64(newest[16:]), txidOf(newest), nil
}

func (t *boltTree) readMeta(offset uint64, meta []byte) error {
	if _, err := t.file.ReadAt(meta, int64(offset)+boltHeader); err != nil {
		return fmt.Errorf("meta page at byte %d: %w: %w", offset, ErrDamaged, err)
	}
	sum := fnv.New64a()
	sum.Write(meta[:boltMetaSize-8])
	if binary.NativeEndian.Uint32(meta) != boltMagic || sum.Sum64() != binary.NativeEndian.Uint64(meta[boltMetaSize-8:]) {
		return fmt.Errorf("meta page at byte %d: %w", offset, ErrDamaged)
	}
	return nil
}

func (t *boltTree) walkBucket(bucket boltItem) error {
	if len(bucket.value) < 16 {
		return fmt.Errorf("bucket %q is cut short: %w", bucket.key, ErrDamaged)
	}
	root, inline := binary.NativeEndian.Uint64(bucket.value), bucket.value[16:]
	leaf := func(item boltItem) error {
		if item.flags != 0 {
			return fmt.Errorf("entry %x of bucket %q has flags %x: %w", item.key, bucket.key, item.flags, ErrDamaged)
		}
		return t.visit(string(bucket.key), item.key, item.value)
	}
	if root != 0 {
		if len(inline) != 0 {
			return fmt.Errorf("bucket %q is in two places: %w", bucket.key, ErrDamaged)
		}
		return t.walk(root, nil, nil, 0, leaf)
	}
	items, used, err := parseBoltPage(inline, nil, nil)
	if err != nil || used != len(inline) || binary.NativeEndian.Uint16(inline[8:]) != boltLeafPage {
		return fmt.Errorf("bucket %q: inline page: %w", bucket.key, errors.Join(ErrDamaged, err))
	}
	for _, item := range items {
		if err := leaf(item); err != nil {
			return err
		}
	}
	return nil
}

// walk calls leaf for every leaf item below page id, whose keys lie in [low, high); nil is no bound.
func (t *boltTree) walk(id uint64, low, high []byte, depth int, leaf func(boltItem) error) error {
	page, err := t.readPage(id)
	if err != nil {
		return err
	}
	items, used, err := parseBoltPage(page, low, high)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	// bbolt allocates just the pages that a node needs; fewer recorded would make it reuse live ones.
	if need := (uint64(used) + t.pageSize - 1) / t.pageSize * t.pageSize; need != uint64(len(page)) {
		return fmt.Errorf("page %d spans %d bytes, needs %d: %w", id, len(page), need, ErrDamaged)
	}
	branch := binary.NativeEndian.Uint16(page[8:]) == boltBranchPage
	// An emptied bucket moves into its parent, so only the root of a new file may be empty.
	if len(items) == 0 && (branch || depth > 0) || depth > boltMaxDepth {
		return fmt.Errorf("page %d has no place in the tree: %w", id, ErrDamaged)
	}
	for i, item := range items {
		if !branch {
			if err := leaf(item); err != nil {
				return err
			}
			continue
		}
		next := high
		if i+1 < len(items) {
			next = items[i+1].key
		}
		if err := t.walk(item.child, item.key, next, depth+1, leaf); err != nil {
			return err
		}
	}
	return nil
}

// readPage reads a page with its overflow and takes its ids, which no other page may use.
func (t *boltTree) readPage(id uint64) ([]byte, error) {
	damaged := func(what string) error { return fmt.Errorf("page %d: %s: %w", id, what, ErrDamaged) }
	if id < 2 || id >= t.pages {
		return nil, damaged("no such page")
	}
	var header [boltHeader]byte
	if _, err := t.file.ReadAt(header[:], int64(id*t.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w: %w", id, ErrDamaged, err)
	}
	span := uint64(binary.NativeEndian.Uint32(header[12:])) + 1
	if binary.NativeEndian.Uint64(header[:]) != id || id+span > t.pages || span*t.pageSize > boltMaxSpan {
		return nil, damaged("bad header")
	}
	for used := id; used < id+span; used++ {
		if t.seen[used] {
			return nil, damaged("used twice")
		}
		t.seen[used] = true
	}
	page := make([]byte, span*t.pageSize)
	if _, err := t.file.ReadAt(page, int64(id*t.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w: %w", id, ErrDamaged, err)
	}
	return page, nil
}

// parseBoltPage returns a page's items and how many of its bytes they use. Items are packed without gaps, so a
// wrong count, position or size cannot go unseen; keys rise inside [low, high).
func parseBoltPage(page, low, high []byte) (items []boltItem, used int, err error) {
	if len(page) < boltHeader {
		return nil, 0, fmt.Errorf("page is cut short: %w", ErrDamaged)
	}
	flags, count := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	if flags != boltLeafPage && flags != boltBranchPage {
		return nil, 0, fmt.Errorf("page has flags %#x: %w", flags, ErrDamaged)
	}
	used = boltHeader + count*boltElement
	if used > len(page) {
		return nil, 0, fmt.Errorf("page has %d elements: %w", count, ErrDamaged)
	}
	for i := range count {
		at := boltHeader + i*boltElement
		item, pos, keySize, valueSize := parseBoltElement(page[at:at+boltElement], flags)
		if at+pos != used || keySize == 0 || used+keySize+valueSize > len(page) {
			return nil, 0, fmt.Errorf("element %d is out of place: %w", i, ErrDamaged)
		}
		item.key = page[used : used+keySize]
		item.value = page[used+keySize : used+keySize+valueSize]
		if bytes.Compare(item.key, low) < 0 || i > 0 && bytes.Equal(item.key, low) || high != nil && bytes.Compare(item.key, high) >= 0 {
			return nil, 0, fmt.Errorf("key %x is out of order: %w", item.key, ErrDamaged)
		}
		low = item.key
		used += keySize + valueSize
		items = append(items, item)
	}
	return items, used, nil
}

func parseBoltElement(element []byte, pageFlags uint16) (item boltItem, pos, keySize, valueSize int) {
	word := func(at int) int { return int(binary.NativeEndian.Uint32(element[at:])) }
	if pageFlags == boltBranchPage {
		return boltItem{child: binary.NativeEndian.Uint64(element[8:])}, word(0), word(4), 0
	}
	return boltItem{flags: uint32(word(0))}, word(4), word(8), word(12)
}
