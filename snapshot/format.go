package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/fencekv/fencekv/fsm"
)

// Format is the format this build writes, and the highest it can read.
const Format = 1

// A snapshot file:
//
//	0          8        9
//	+----------+--------+---------------------------------------
//	| magic    | format | one zstd frame: records, then the end
//	+----------+--------+---------------------------------------
//
// Inside the frame stands one record after the other, in order of kind and,
// within a kind, of key; request records, as in a State, in order of revision:
//
//	+------+-----------------+-------------+
//	| kind | length (varint) | fields ...  |
//	+------+-----------------+-------------+
//
// The first is the header and the last the end: the number of records of every
// kind, and CRC32C over magic, format and all bytes of the frame before the sum
// itself. Nothing follows. The fields of each kind stand in its encoder.
//
// magic and format lie outside the frame, and apart, so that a file of a later
// format is told from one that is no snapshot at all.
var magic = [8]byte{'f', 'k', 's', 'n', 'a', 'p', '\r', '\n'}

const headSize = len(magic) + 1

// kind of a record. The numbers are part of the format.
type kind byte

const (
	kindHeader kind = 1 + iota
	kindEntry
	kindFence
	kindAbsent
	kindRecord
	kindWaiter
	kindMember
	kindEvent
	kindEnd
)

var kindNames = [...]string{
	kindHeader: "header", kindEntry: "entry", kindFence: "fence", kindAbsent: "absent floor",
	kindRecord: "request record", kindWaiter: "waiter", kindMember: "member", kindEvent: "event", kindEnd: "end",
}

func (k kind) String() string {
	if k >= kindHeader && k <= kindEnd {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Bounds while reading, far above what a State can hold, so that damage cannot
// make a reader allocate without end.
const (
	maxRecord = 32 << 20 // bytes of one record
	maxText   = 64 << 10 // bytes of a name, ID, key or the like
	maxWindow = 32 << 20 // bytes of zstd's window
)

// counts is the number of records of each kind between header and end.
type counts [kindEnd]uint64

// Info is what a snapshot says of itself.
type Info struct {
	Format    int
	ClusterID string
	Epoch     uint64
	Index     uint64 // Raft index of the newest command in it
	Revision  uint64
	Token     uint64
	ClockMs   int64
	Counts    fsm.Counts
	Bytes     int64  // of the file
	Checksum  uint32 // CRC32C over what the file holds, uncompressed
}

func makeInfo(h fsm.Header, c fsm.Counts, bytes int64, sum uint32) Info {
	return Info{
		Format: Format, ClusterID: h.ClusterID, Epoch: h.Epoch, Index: h.Index, Revision: h.Revision,
		Token: h.Token, ClockMs: h.ClockMs, Counts: c, Bytes: bytes, Checksum: sum,
	}
}

// ErrNewer means that a later build wrote the snapshot: upgrade this node.
var ErrNewer = errors.New("snapshot of a newer format: upgrade this node")

// ErrNotSnapshot means that the bytes do not begin like a snapshot.
var ErrNotSnapshot = errors.New("not a fencekv snapshot")

// CorruptError says where a snapshot is not what was written.
type CorruptError struct {
	Kind   string // of the record
	Record uint64 // its number in the file, from 0
	Offset int64  // of its first byte, uncompressed, from the frame's beginning
	Err    error
}

// Error returns the place and the reason.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("damaged snapshot: record %d (%s) at byte %d: %v", e.Record, e.Kind, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *CorruptError) Unwrap() error { return e.Err }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
