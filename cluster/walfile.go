package cluster

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// openWAL opens or creates the segments under dir. The caller holds the lock of the stable store.
func openWAL(dir string, stable *checkedStable, cfg StoreConfig) (log *wal.WAL, err error) {
	defer containDamage(dir, &err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	meta := walMeta{stable: stable}
	state, err := meta.Load(dir)
	if err != nil {
		return nil, err
	}
	if err := verifyWALTail(dir, state); err != nil {
		return nil, err
	}
	log, err = wal.Open(dir,
		wal.WithMetaStore(meta),
		wal.WithLogger(cfg.Logger.Named("wal")),
		wal.WithSegmentSize(cfg.segmentSize))
	if errors.Is(err, wal.ErrCorrupt) || errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is %w: %w; %s", dir, ErrDamaged, err, rejoinAdvice)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return log, nil
}

// walMeta keeps raft-wal's list of segments in the stable store, under its checksum. In raft-wal's own bbolt file
// a flipped bit can rename the last segment, which raft-wal then makes anew and deletes the real one.
type walMeta struct {
	stable *checkedStable
}

// Load implements types.MetaStore.
func (m walMeta) Load(dir string) (types.PersistentState, error) {
	var state types.PersistentState
	encoded, err := m.stable.Get([]byte(keyWALMeta))
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("read list of segments: %w", err)
	}
	if err := json.Unmarshal(encoded, &state); err != nil {
		return state, fmt.Errorf("decode list of segments of %s: %w", dir, err)
	}
	return state, nil
}

// CommitState implements types.MetaStore.
func (m walMeta) CommitState(state types.PersistentState) error {
	encoded, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode list of segments: %w", err)
	}
	return m.stable.Set([]byte(keyWALMeta), encoded)
}

// GetStable implements types.MetaStore; raft has the stable store itself.
func (m walMeta) GetStable([]byte) ([]byte, error) { return nil, errors.ErrUnsupported }

// SetStable implements types.MetaStore; raft has the stable store itself.
func (m walMeta) SetStable([]byte, []byte) error { return errors.ErrUnsupported }

// Close implements types.MetaStore; Stores closes the stable store.
func (m walMeta) Close() error { return nil }

// Sizes of raft-wal's segment format: a file header, then frames of an 8-byte header (type, three zero bytes,
// length or CRC32C) and content padded to 8. A commit frame carries the CRC32C of all bytes since the last one.
const (
	walFileHeader  = 32
	walFrameHeader = 8
)

// verifyWALTail refuses a last segment in which committed batches lie behind damage. raft-wal ends such a segment
// at the damage, as it must after a torn write, and so forgets acknowledged entries. A torn write can only be the
// last batch: a whole batch behind it proves damage. Whether the last batch itself is torn or damaged cannot be
// told from the file; the record of the last clean stop tells it unless the node crashed.
func verifyWALTail(dir string, state types.PersistentState) error {
	if len(state.Segments) == 0 {
		return nil
	}
	last := state.Segments[len(state.Segments)-1]
	if !last.SealTime.IsZero() {
		return nil
	}
	path := filepath.Join(dir, segment.FileName(last))
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a crash between the list of segments and the file; raft-wal makes it
	}
	if err != nil {
		return fmt.Errorf("read last segment: %w", err)
	}
	if at, damaged := findWALDamage(data); damaged {
		return fmt.Errorf("%s is %w behind byte %d, and committed entries follow; %s", path, ErrDamaged, at, rejoinAdvice)
	}
	return nil
}

// findWALDamage returns where the first batch that cannot be read begins, when a whole one lies behind it.
func findWALDamage(data []byte) (at int, damaged bool) {
	good, frames, whole := 0, []int(nil), true
	for whole {
		at = good
		good, frames, whole = readWALBatch(data, at)
	}
	// Either the commit frame that ends this batch is the damaged one, and the next batch begins behind it …
	for _, frame := range frames {
		if _, _, whole := readWALBatch(data, frame+walFrameHeader); whole {
			return at, true
		}
	}
	// … or it still shows where the next batch begins.
	return at, findWALBatch(data, at)
}

// readWALBatch reads the batch that begins at byte start: its end, the frames passed, and whether it is whole.
func readWALBatch(data []byte, start int) (end int, frames []int, whole bool) {
	at := start
	if start == 0 {
		at = walFileHeader // which is under the checksum of the first batch
	}
	for at+walFrameHeader <= len(data) {
		frames = append(frames, at)
		kind, word := data[at], binary.LittleEndian.Uint32(data[at+4:])
		switch kind {
		case segment.FrameCommit:
			whole = at > start && crc32.Checksum(data[start:at], crc32.MakeTable(crc32.Castagnoli)) == word
			return at + walFrameHeader, frames, whole
		case segment.FrameEntry, segment.FrameIndex:
			at += walFrameHeader + (int(word)+7)&^7
		default:
			return 0, frames, false
		}
	}
	return 0, frames, false
}

// findWALBatch looks behind byte from for two commit frames of which the second has the checksum of the bytes
// between. Frames lie on multiples of 8.
func findWALBatch(data []byte, from int) bool {
	table := crc32.MakeTable(crc32.Castagnoli)
	start, sum := from, uint32(0)
	for at := from; at+walFrameHeader <= len(data); at += walFrameHeader {
		frame := data[at : at+walFrameHeader]
		if frame[0] != segment.FrameCommit || frame[1] != 0 || frame[2] != 0 || frame[3] != 0 {
			sum = crc32.Update(sum, table, frame)
			continue
		}
		if at > start && sum == binary.LittleEndian.Uint32(frame[4:]) {
			return true
		}
		start, sum = at+walFrameHeader, 0
	}
	return false
}
