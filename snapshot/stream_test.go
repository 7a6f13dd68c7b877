package snapshot_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/snapshot"
)

const valueBytes = 256

// large returns a state of n keys, each with a request record.
func large(tb testing.TB, n int) *fsm.State {
	tb.Helper()
	h := fsm.New().Header()
	h.Revision = uint64(n)
	b := fsm.NewBuilder(h)
	for i := range n {
		key := fmt.Sprintf("app/config/%09d", i)
		data := make([]byte, valueBytes)
		copy(data, fmt.Sprintf("value %d of %d", i, n))
		v := &fsm.Value{Data: data, ContentType: "text/plain", Version: 1, Revision: uint64(i + 1), RequestID: "r"}
		b.AddEntry(&fsm.Entry{Key: key, CreateRevision: v.Revision, Now: v})
		b.AddRecord(&fsm.Record{Key: key + "\x00r", Op: fsm.KindPut, Verdict: fsm.VerdictApplied, Revision: v.Revision, Version: 1})
	}
	s, err := b.State()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// gauge is a file that looks at the heap now and again while it is written.
type gauge struct {
	io.Writer
	next, every int
	peak        uint64
}

func (g *gauge) Write(b []byte) (int, error) {
	if g.next -= len(b); g.next < 0 {
		g.next = g.every
		g.peak = max(g.peak, heap())
	}
	return g.Writer.Write(b)
}

// TestWritingCopiesNothing: what writing keeps alive does not grow with the
// state: 200,000 keys of 51 MB take no more than buffers and zstd's window.
func TestWritingCopiesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("200,000 keys")
	}
	state := large(t, 200_000)
	before := heap()
	g := &gauge{Writer: io.Discard, every: 256 << 10}
	if _, err := snapshot.Write(g, state); err != nil {
		t.Fatal(err)
	}
	const most = 24 << 20
	if g.peak == 0 || g.peak > before+most {
		t.Errorf("%d bytes live before, %d while writing: more than %d on top", before, g.peak, most)
	}
	runtime.KeepAlive(state)
}

func BenchmarkWrite1M(b *testing.B) {
	state := large(b, 1_000_000)
	for b.Loop() {
		info, err := snapshot.Write(io.Discard, state)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Bytes)/1e6, "bytes/key")
	}
}

func BenchmarkRead1M(b *testing.B) {
	var file bytes.Buffer
	if _, err := snapshot.Write(&file, large(b, 1_000_000)); err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	for b.Loop() {
		if _, _, err := snapshot.Read(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(time.Since(begin).Seconds()/float64(b.N), "s/read")
}
