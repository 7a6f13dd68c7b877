package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/fencekv/fencekv/snapshot"
)

const headSize = 9 // magic and format

// refused reports whether err is one of those that Read promises for damage.
func refused(err error) bool {
	var corrupt *snapshot.CorruptError
	return errors.As(err, &corrupt) || errors.Is(err, snapshot.ErrNotSnapshot) || errors.Is(err, snapshot.ErrNewer)
}

// TestDamage: whichever bit is flipped, wherever the file is cut, whatever is
// put behind it: it is refused, or makes no difference to the state.
func TestDamage(t *testing.T) {
	state := sample(t)
	file := written(t, state)
	check := func(what string, at int, damaged []byte) {
		t.Helper()
		read, _, err := snapshot.Read(bytes.NewReader(damaged))
		if err == nil {
			if diff := difference(state, read); diff != "" {
				t.Errorf("%s at %d was taken for another state:\n%s", what, at, diff)
			}
		} else if !refused(err) {
			t.Errorf("%s at %d: %v is no promised error", what, at, err)
		}
	}
	for bit := range 8 * len(file) {
		damaged := bytes.Clone(file)
		damaged[bit/8] ^= 1 << (bit % 8)
		check("flipped bit", bit, damaged)
	}
	for length := range file {
		if _, _, err := snapshot.Read(bytes.NewReader(file[:length])); !refused(err) {
			t.Errorf("cut to %d of %d bytes: %v", length, len(file), err)
		}
	}
	for _, more := range []string{"\x00", "x", string(file)} {
		if _, _, err := snapshot.Read(bytes.NewReader(append(bytes.Clone(file), more...))); !refused(err) {
			t.Errorf("with %d bytes behind it: %v", len(more), err)
		}
	}
}

// TestHead: a file of a later build is told from one that is no snapshot.
func TestHead(t *testing.T) {
	file := written(t, sample(t))
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error
	}{
		"empty":        {func([]byte) []byte { return nil }, snapshot.ErrNotSnapshot},
		"other magic":  {func(b []byte) []byte { b[0] = 'F'; return b }, snapshot.ErrNotSnapshot},
		"line endings": {func(b []byte) []byte { return bytes.Replace(b, []byte("\r\n"), []byte("\n"), 1) }, snapshot.ErrNotSnapshot},
		"format 0":     {func(b []byte) []byte { b[8] = 0; return b }, snapshot.ErrNotSnapshot},
		"format 2":     {func(b []byte) []byte { b[8] = 2; return b }, snapshot.ErrNewer},
		"format 2 cut": {func(b []byte) []byte { b[8] = 2; return b[:9] }, snapshot.ErrNewer},
	} {
		if _, err := snapshot.Verify(bytes.NewReader(c.change(bytes.Clone(file)))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// content returns the records of a file without the sum that ends them.
func content(t testing.TB, file []byte) []byte {
	t.Helper()
	frame, err := zstd.NewReader(bytes.NewReader(file[headSize:]))
	if err != nil {
		t.Fatal(err)
	}
	defer frame.Close()
	b, err := io.ReadAll(frame)
	if err != nil {
		t.Fatal(err)
	}
	return b[:len(b)-4]
}

// sealed makes a file of records, with the sum they ought to have.
func sealed(t testing.TB, head, records []byte) []byte {
	t.Helper()
	return framed(t, head, records, sumOf(head, records))
}

func sumOf(head, records []byte) uint32 {
	return crc32.Checksum(append(bytes.Clone(head), records...), crc32.MakeTable(crc32.Castagnoli))
}

func framed(t testing.TB, head, records []byte, sum uint32) []byte {
	t.Helper()
	var b bytes.Buffer
	b.Write(head)
	// A small window, for there are thousands of these files.
	frame, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = frame.Write(binary.BigEndian.AppendUint32(bytes.Clone(records), sum))
	if err := frame.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFaultyWriter: records that a faulty build wrote under a right sum are
// refused where they contradict each other or the counts.
func TestFaultyWriter(t *testing.T) {
	file := written(t, sample(t))
	head, all := file[:headSize], content(t, file)
	if _, _, err := snapshot.Read(bytes.NewReader(sealed(t, head, all))); err != nil {
		t.Fatalf("the file as it was, sealed anew: %v", err)
	}
	records := split(t, all)
	last := len(records) - 1
	for name, change := range map[string]func([][]byte) [][]byte{
		"no header":          func(r [][]byte) [][]byte { return r[1:] },
		"two headers":        func(r [][]byte) [][]byte { return append([][]byte{r[0]}, r...) },
		"record missing":     func(r [][]byte) [][]byte { return append(r[:1:1], r[2:]...) },
		"record twice":       func(r [][]byte) [][]byte { return append(append(r[:2:2], r[1]), r[2:]...) },
		"out of order":       func(r [][]byte) [][]byte { r[1], r[2] = r[2], r[1]; return r },
		"kinds out of order": func(r [][]byte) [][]byte { r[2], r[3] = r[3], r[2]; return r },
		"behind the end":     func(r [][]byte) [][]byte { r[last-1], r[last] = r[last], r[last-1]; return r },
		"no end":             func(r [][]byte) [][]byte { return r[:last] },
	} {
		var joined []byte
		for _, r := range change(append([][]byte(nil), records...)) {
			joined = append(joined, r...)
		}
		var corrupt *snapshot.CorruptError
		_, _, err := snapshot.Read(bytes.NewReader(sealed(t, head, joined)))
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: %v, want a CorruptError", name, err)
		}
	}
}

// TestSum: zstd checks its own frame; the sum inside holds what was written
// against what is read, whatever the library did in between.
func TestSum(t *testing.T) {
	file := written(t, sample(t))
	head, all := file[:headSize], content(t, file)
	sum := sumOf(head, all)
	for at := range all {
		changed := bytes.Clone(all)
		changed[at] ^= 1
		if _, _, err := snapshot.Read(bytes.NewReader(framed(t, head, changed, sum))); !refused(err) {
			t.Errorf("byte %d changed under the old sum: %v", at, err)
		}
	}
}

// split cuts the records apart. The end's length counts the sum as well.
func split(t testing.TB, all []byte) (records [][]byte) {
	t.Helper()
	for len(all) > 0 {
		length, n := binary.Uvarint(all[1:])
		size := min(1+n+int(length), len(all))
		records, all = append(records, all[:size]), all[size:]
	}
	return records
}

// FuzzRead: no bytes make a reader panic, and what is accepted can be written
// and read again.
func FuzzRead(f *testing.F) {
	file := written(f, sample(f))
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		state, _, err := snapshot.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, _, err := snapshot.Read(bytes.NewReader(written(t, state)))
		if err != nil || difference(state, again) != "" {
			t.Fatalf("accepted, written and then refused or changed: %v", err)
		}
	})
}
