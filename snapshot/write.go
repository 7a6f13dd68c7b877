package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

// Write writes s to w. It keeps one record in memory at a time; s itself is
// shared, not copied, so the store goes on meanwhile.
func Write(w io.Writer, s *fsm.State) (Info, error) {
	file := &countingWriter{w: w}
	head := append(magic[:len(magic):len(magic)], Format)
	if _, err := file.Write(head); err != nil {
		return Info{}, fmt.Errorf("write snapshot head: %w", err)
	}
	// One goroutine compresses, so that equal states give equal bytes.
	frame, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return Info{}, fmt.Errorf("begin snapshot frame: %w", err)
	}
	out := &writer{w: bufio.NewWriterSize(frame, 256<<10), sum: crc32.Update(0, castagnoli, head)}
	out.state(s)
	out.end()
	err = errors.Join(out.err, out.flush(), frame.Close())
	if err != nil {
		return Info{}, fmt.Errorf("write snapshot: %w", err)
	}
	return makeInfo(s.Header(), s.Counts(), file.n, out.sum), nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// writer writes records; after the first error it does nothing.
type writer struct {
	w      *bufio.Writer
	sum    uint32
	counts counts
	record codec.Encoder // reused
	head   []byte        // reused
	err    error
}

func (w *writer) flush() error { return w.w.Flush() }

// state writes every collection in the order of the kinds. The iterators yield
// in that order, so the file is sorted.
func (w *writer) state(s *fsm.State) {
	w.begin()
	encodeHeader(&w.record, s.Header())
	w.put(kindHeader)
	for e := range s.Entries("", "") {
		w.begin()
		encodeEntry(&w.record, e)
		w.put(kindEntry)
	}
	for f := range s.Fences("", "") {
		w.begin()
		encodeFence(&w.record, f)
		w.put(kindFence)
	}
	for a := range s.Absents() {
		w.begin()
		encodeAbsent(&w.record, a)
		w.put(kindAbsent)
	}
	for r := range s.Records() {
		w.begin()
		encodeRecord(&w.record, r)
		w.put(kindRecord)
	}
	for one := range s.Waiters() {
		w.begin()
		encodeWaiter(&w.record, one)
		w.put(kindWaiter)
	}
	for m := range s.Members() {
		w.begin()
		fsm.EncodeMember(&w.record, m)
		w.put(kindMember)
	}
	for e := range s.Events(0) {
		w.begin()
		encodeEvent(&w.record, e)
		w.put(kindEvent)
	}
}

// end writes the counts and the sum over everything before it.
func (w *writer) end() {
	w.begin()
	for k := kindHeader; k < kindEnd; k++ {
		w.record.Uint(w.counts[k])
	}
	w.head = append(w.head[:0], byte(kindEnd))
	w.head = binary.AppendUvarint(w.head, uint64(len(w.record.Bytes)+4))
	w.write(w.head)
	w.write(w.record.Bytes)
	w.write(binary.BigEndian.AppendUint32(nil, w.sum))
}

func (w *writer) begin() { w.record.Bytes = w.record.Bytes[:0] }

func (w *writer) put(k kind) {
	w.head = append(w.head[:0], byte(k))
	w.head = binary.AppendUvarint(w.head, uint64(len(w.record.Bytes)))
	w.write(w.head)
	w.write(w.record.Bytes)
	w.counts[k]++
}

func (w *writer) write(b []byte) {
	if w.err != nil {
		return
	}
	w.sum = crc32.Update(w.sum, castagnoli, b)
	_, w.err = w.w.Write(b)
}
