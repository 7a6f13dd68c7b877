package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

// Read returns the state of a snapshot, verified to its last byte. Errors are
// ErrNotSnapshot, ErrNewer, a *CorruptError, or those of r.
func Read(r io.Reader) (*fsm.State, Info, error) {
	var builder *fsm.Builder
	info, err := read(r, func(h fsm.Header) { builder = fsm.NewBuilder(h) }, func(record any) {
		switch record := record.(type) {
		case *fsm.Entry:
			builder.AddEntry(record)
		case *fsm.Fence:
			builder.AddFence(record)
		case *fsm.Absent:
			builder.AddAbsent(record)
		case *fsm.Record:
			builder.AddRecord(record)
		case *fsm.Waiter:
			builder.AddWaiter(record)
		case *fsm.Member:
			builder.AddMember(record)
		case *fsm.Event:
			builder.AddEvent(record)
		}
	})
	if err != nil {
		return nil, Info{}, err
	}
	state, err := builder.State()
	if err != nil {
		return nil, Info{}, &CorruptError{Kind: kindRecord.String(), Err: err}
	}
	return state, info, nil
}

// Verify checks everything that Read checks and keeps nothing but a hash of each
// request record's key.
func Verify(r io.Reader) (Info, error) {
	keys, twice := make(map[[sha256.Size]byte]struct{}), false
	info, err := read(r, func(fsm.Header) {}, func(record any) {
		if record, ok := record.(*fsm.Record); ok {
			key := sha256.Sum256([]byte(record.Key))
			_, again := keys[key]
			twice = twice || again
			keys[key] = struct{}{}
		}
	})
	if err == nil && twice {
		return Info{}, &CorruptError{Kind: kindRecord.String(), Err: fsm.ErrRecordTwice}
	}
	return info, err
}

// read tells what r could not deliver from what is damaged: the first is no
// reason to throw a snapshot away.
func read(r io.Reader, begin func(fsm.Header), add func(any)) (Info, error) {
	file := &countingReader{r: r}
	info, err := readFile(file, begin, add)
	if file.err != nil {
		return Info{}, fmt.Errorf("read snapshot: %w", file.err)
	}
	return info, err
}

func readFile(file *countingReader, begin func(fsm.Header), add func(any)) (Info, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(file, head[:]); err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrNotSnapshot, err)
	}
	switch format := head[len(magic)]; {
	case [8]byte(head[:len(magic)]) != magic, format == 0:
		return Info{}, ErrNotSnapshot
	case format > Format:
		return Info{}, fmt.Errorf("%w (format %d)", ErrNewer, format)
	}
	frame, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return Info{}, fmt.Errorf("open snapshot frame: %w", err)
	}
	defer frame.Close()
	in := &reader{r: bufio.NewReaderSize(frame, 256<<10), sum: crc32.Update(0, castagnoli, head[:]), begin: begin, add: add}
	for !in.done {
		if err := in.next(); err != nil {
			return Info{}, &CorruptError{Kind: in.kind.String(), Record: in.number, Offset: in.start, Err: err}
		}
	}
	if _, err := in.r.ReadByte(); !errors.Is(err, io.EOF) {
		return Info{}, &CorruptError{Kind: in.kind.String(), Record: in.number, Offset: in.offset, Err: errTrailing}
	}
	return makeInfo(in.check.header, in.counted(), file.n, in.sum), nil
}

type countingReader struct {
	r   io.Reader
	n   int64
	err error // of r, unless it says where the file ends
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		c.err = err
	}
	return n, err
}

var (
	errTrailing = errors.New("bytes after the end")
	errLength   = errors.New("length out of bounds")
	errSum      = errors.New("checksum differs")
	errCounts   = errors.New("number of records differs")
)

// reader reads records one by one into a buffer it reuses.
type reader struct {
	r      *bufio.Reader
	sum    uint32
	offset int64
	buffer []byte

	kind   kind
	number uint64
	start  int64
	done   bool

	begin  func(fsm.Header)
	add    func(any)
	counts counts
	check  checker
	intern interner
}

func (r *reader) next() error {
	r.start = r.offset
	payload, err := r.frame()
	if err != nil {
		return err
	}
	if r.kind == kindEnd {
		r.done = true
		return r.end(payload)
	}
	r.sum = crc32.Update(r.sum, castagnoli, payload)
	if err := r.decode(payload); err != nil {
		return err
	}
	r.counts[r.kind]++
	r.number++
	return nil
}

// frame reads a record's kind and length into the sum, and returns its bytes.
func (r *reader) frame() ([]byte, error) {
	var head [1 + binary.MaxVarintLen64]byte
	n := 0
	for {
		b, err := r.r.ReadByte()
		if err != nil {
			return nil, noEOF(err)
		}
		head[n] = b
		n++
		if n == 1 {
			r.kind = kind(b)
			continue
		}
		if b < 0x80 {
			break
		}
		if n == len(head) {
			return nil, errLength
		}
	}
	length, used := binary.Uvarint(head[1:n])
	if used != n-1 || length > maxRecord || used > 1 && head[n-1] == 0 {
		return nil, errLength
	}
	r.sum = crc32.Update(r.sum, castagnoli, head[:n])
	r.offset += int64(n) + int64(length)
	return r.payload(int(length))
}

// payload grows the buffer as bytes arrive, so that a length that lies costs no
// memory.
func (r *reader) payload(length int) ([]byte, error) {
	const step = 1 << 20
	r.buffer = r.buffer[:0]
	for len(r.buffer) < length {
		part := min(step, length-len(r.buffer))
		have := len(r.buffer)
		if cap(r.buffer) < have+part {
			grown := make([]byte, have, max(have+part, 2*cap(r.buffer)))
			copy(grown, r.buffer)
			r.buffer = grown
		}
		r.buffer = r.buffer[:have+part]
		if _, err := io.ReadFull(r.r, r.buffer[have:]); err != nil {
			return nil, noEOF(err)
		}
	}
	return r.buffer, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *reader) decode(payload []byte) error {
	d := codec.NewDecoder(payload)
	var record any
	switch r.kind {
	case kindHeader:
		h := decodeHeader(d)
		if err := errors.Join(d.Close(), r.check.begin(h)); err != nil {
			return err
		}
		r.begin(h)
		return nil
	case kindEntry:
		record = decodeEntry(d, &r.intern)
	case kindFence:
		record = decodeFence(d)
	case kindAbsent:
		record = decodeAbsent(d)
	case kindRecord:
		record = decodeRecord(d)
	case kindWaiter:
		record = decodeWaiter(d)
	case kindMember:
		m := fsm.DecodeMember(d)
		record = &m
	case kindEvent:
		record = decodeEvent(d)
	default:
		return errors.New("unknown kind")
	}
	if err := d.Close(); err != nil {
		return err
	}
	if err := r.check.record(r.kind, record); err != nil {
		return err
	}
	r.add(record)
	return nil
}

// end compares counts and sum.
func (r *reader) end(payload []byte) error {
	if len(payload) < 4 {
		return errLength
	}
	fields, sum := payload[:len(payload)-4], binary.BigEndian.Uint32(payload[len(payload)-4:])
	r.sum = crc32.Update(r.sum, castagnoli, fields)
	if sum != r.sum {
		return errSum
	}
	d := codec.NewDecoder(fields)
	for k := kindHeader; k < kindEnd; k++ {
		if d.Uint() != r.counts[k] {
			return errCounts
		}
	}
	if err := d.Close(); err != nil {
		return err
	}
	r.sum = crc32.Update(r.sum, castagnoli, payload[len(payload)-4:])
	return r.check.end()
}

func (r *reader) counted() fsm.Counts {
	return fsm.Counts{
		Keys: r.check.live, Tombstones: int64(r.counts[kindEntry]) - r.check.live,
		Fences: int64(r.counts[kindFence]), Locks: r.check.locks, Waiters: int64(r.counts[kindWaiter]),
		Requests: int64(r.counts[kindRecord]), Events: int64(r.counts[kindEvent]),
		Members: int64(r.counts[kindMember]), Absents: int64(r.counts[kindAbsent]),
	}
}

// interner shares the few content types that many values have.
type interner struct{ known map[string]string }

const maxInterned = 1_000

func (i *interner) text(s string) string {
	if shared, ok := i.known[s]; ok {
		return shared
	}
	if i.known == nil {
		i.known = make(map[string]string)
	}
	if len(i.known) < maxInterned {
		i.known[s] = s
	}
	return s
}
