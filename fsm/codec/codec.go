// Package codec writes and reads the fields of log entries and snapshot
// records: unsigned and zigzag varints, booleans, fixed words and
// length-prefixed bytes. Every value has exactly one encoding, which the
// decoder insists on, so equal values have equal bytes.
//
// Both sides hold the first error and turn into no-ops after it, so that a
// codec reads as a list of fields with one check at the end.
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors of a Decoder.
var (
	ErrShort     = errors.New("input ends too early")
	ErrTrailing  = errors.New("bytes after the last field")
	ErrCanonical = errors.New("not the canonical encoding")
	ErrBound     = errors.New("length above its bound")
)

// Encoder appends fields to Bytes.
type Encoder struct{ Bytes []byte }

// Uint appends a varint.
func (e *Encoder) Uint(v uint64) { e.Bytes = binary.AppendUvarint(e.Bytes, v) }

// Int appends a zigzag varint.
func (e *Encoder) Int(v int64) { e.Bytes = binary.AppendVarint(e.Bytes, v) }

// Fixed appends eight bytes, big endian.
func (e *Encoder) Fixed(v uint64) { e.Bytes = binary.BigEndian.AppendUint64(e.Bytes, v) }

// Byte appends one byte.
func (e *Encoder) Byte(v byte) { e.Bytes = append(e.Bytes, v) }

// Bool appends one byte, 0 or 1.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Byte(1)
		return
	}
	e.Byte(0)
}

// Blob appends a length and the bytes.
func (e *Encoder) Blob(v []byte) {
	e.Uint(uint64(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

// String appends a length and the bytes of v.
func (e *Encoder) String(v string) {
	e.Uint(uint64(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

// Sum appends 32 bytes.
func (e *Encoder) Sum(v [32]byte) { e.Bytes = append(e.Bytes, v[:]...) }

// Decoder reads fields from a byte slice. What it returns never refers to that
// slice, so the slice may be reused.
type Decoder struct {
	rest []byte
	err  error
}

// NewDecoder returns a decoder of b.
func NewDecoder(b []byte) *Decoder { return &Decoder{rest: b} }

// Fail makes err the decoder's error, unless it has one.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err = err
		d.rest = nil
	}
}

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Close returns the first error, ErrTrailing if bytes are left.
func (d *Decoder) Close() error {
	if len(d.rest) > 0 {
		d.Fail(ErrTrailing)
	}
	return d.err
}

// More reports whether bytes are left.
func (d *Decoder) More() bool { return len(d.rest) > 0 }

func (d *Decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.Fail(ErrShort)
	}
	if d.err != nil {
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// Uint reads a varint.
func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.Fail(ErrShort)
		return 0
	}
	if n > 1 && d.rest[n-1] == 0 {
		d.Fail(ErrCanonical)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// Int reads a zigzag varint.
func (d *Decoder) Int() int64 {
	u := d.Uint()
	return int64(u>>1) ^ -int64(u&1)
}

// Fixed reads eight bytes, big endian.
func (d *Decoder) Fixed() uint64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	b := d.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Bool reads one byte that must be 0 or 1.
func (d *Decoder) Bool() bool {
	b := d.Byte()
	if b > 1 {
		d.Fail(ErrCanonical)
	}
	return b == 1
}

// Blob reads a length of at most bound and a copy of as many bytes; nil for none.
func (d *Decoder) Blob(bound int) []byte {
	b := d.span(bound)
	if len(b) == 0 {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// String reads a length of at most bound and as many bytes.
func (d *Decoder) String(bound int) string { return string(d.span(bound)) }

func (d *Decoder) span(bound int) []byte {
	n := d.Uint()
	if n > uint64(bound) {
		d.Fail(fmt.Errorf("%w: %d > %d", ErrBound, n, bound))
		return nil
	}
	return d.take(int(n))
}

// Count reads a number of elements, at most bound. Each element takes at least
// one byte, so a count above what is left is refused before anything is
// allocated for it.
func (d *Decoder) Count(bound int) int {
	n := d.Uint()
	if n > uint64(bound) {
		d.Fail(fmt.Errorf("%w: %d > %d", ErrBound, n, bound))
		return 0
	}
	if n > uint64(len(d.rest)) {
		d.Fail(ErrShort)
		return 0
	}
	return int(n)
}

// Sum reads 32 bytes.
func (d *Decoder) Sum() (v [32]byte) {
	copy(v[:], d.take(32))
	return v
}
