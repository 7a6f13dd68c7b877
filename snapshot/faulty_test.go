package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/snapshot"
)

// corrupt reads file both ways; both must refuse it with a CorruptError.
func corrupt(t testing.TB, what string, file []byte) snapshot.CorruptError {
	t.Helper()
	_, _, err := snapshot.Read(bytes.NewReader(file))
	_, verifyErr := snapshot.Verify(bytes.NewReader(file))
	var read, verified *snapshot.CorruptError
	if !errors.As(err, &read) || !errors.As(verifyErr, &verified) {
		t.Errorf("%s: Read says %v, Verify %v, want a CorruptError of both", what, err, verifyErr)
		return snapshot.CorruptError{Err: errors.New("none")}
	}
	return *read
}

// TestContradictions: a state that breaks a promise of fsm, written by a faulty
// build with right counts and sum, is refused for just that.
func TestContradictions(t *testing.T) {
	const above, shape, order = "above what the header says", "contradict", "out of order"
	for name, c := range map[string]struct {
		kind, reason string
		change       func(*parts)
	}{
		"revision beyond all":   {"header", above, func(p *parts) { p.Header.Revision = fsm.MaxNumber + 1 }},
		"token beyond all":      {"header", above, func(p *parts) { p.Header.Token = fsm.MaxNumber + 1 }},
		"clock below zero":      {"header", above, func(p *parts) { p.Header.ClockMs = -1 }},
		"horizon to come":       {"header", above, func(p *parts) { p.Header.Horizon = p.Header.Revision + 1 }},
		"key without a name":    {"entry", order, func(p *parts) { p.Entries[0].Key = "" }},
		"value to come":         {"entry", above, func(p *parts) { p.Entries[0].Now.Revision = p.Header.Revision + 1 }},
		"earlier is newer":      {"entry", shape, func(p *parts) { p.Entries[0].Earlier[0].Revision = 900 }},
		"earlier version newer": {"entry", shape, func(p *parts) { p.Entries[0].Earlier[1].Version = 800 }},
		"maxToken beyond all":   {"fence", above, func(p *parts) { p.Fences[0].MaxToken = fsm.MaxNumber + 1 }},
		"issued to come":        {"fence", above, func(p *parts) { p.Fences[0].Issued = p.Header.Token + 1 }},
		"maxToken of nobody":    {"fence", above, func(p *parts) { p.Fences[0].Enforced = nil }},
		"evidence of nothing":   {"fence", above, func(p *parts) { p.Fences[0].MaxToken = 0 }},
		"issues fall":           {"fence", shape, func(p *parts) { p.Fences[0].Issues[1].Token = 20 }},
		"issue shut out":        {"fence", shape, func(p *parts) { p.Fences[0].MaxToken = 21 }},
		"lock never issued":     {"fence", shape, func(p *parts) { p.Fences[0].Lock.Token = 41 }},
		"lock without lease":    {"fence", shape, func(p *parts) { p.Fences[0].Lock.LeaseID = "" }},
		"request without scope": {"request record", shape, func(p *parts) { p.Records[0].Key = "app" }},
		"verdict 0":             {"request record", shape, func(p *parts) { p.Records[0].Verdict = 0 }},
		"verdict 5":             {"request record", shape, func(p *parts) { p.Records[0].Verdict = 5 }},
		"request to come":       {"request record", above, func(p *parts) { p.Records[0].Revision = p.Header.Revision + 1 }},
		"waiter to come":        {"waiter", shape, func(p *parts) { p.Waiters[0].Order = p.Header.Revision + 1 }},
		"waiter without lease":  {"waiter", shape, func(p *parts) { p.Waiters[0].LeaseID = "" }},
		"event to come":         {"event", order, func(p *parts) { p.Header.EventSeq = p.Events[0].Seq }},
	} {
		p := roomy(t)
		c.change(&p)
		got := corrupt(t, name, written(t, built(t, p)))
		if got.Kind != c.kind || !strings.Contains(got.Err.Error(), c.reason) {
			t.Errorf("%s: %v, want a %s %s", name, &got, c.kind, c.reason)
		}
	}
}

// TestPlaces: with two records of every kind, any two that changed places, any
// one left out and any one twice are refused under a right sum.
func TestPlaces(t *testing.T) {
	file := written(t, built(t, roomy(t)))
	head, records := file[:headSize], split(t, content(t, file))
	if len(records) != 1+7*2+1 {
		t.Fatalf("%d records in the sample, want a header, two of each kind and an end", len(records))
	}
	at := func(i int) [][]byte { return append([][]byte(nil), records[:i]...) }
	join := func(r [][]byte) []byte { return bytes.Join(r, nil) }
	for i := range records {
		corrupt(t, fmt.Sprint("without record ", i), sealed(t, head, join(append(at(i), records[i+1:]...))))
		corrupt(t, fmt.Sprint("twice record ", i), sealed(t, head, join(append(at(i+1), records[i:]...))))
		for j := range i {
			swapped := at(len(records))
			swapped[i], swapped[j] = swapped[j], swapped[i]
			corrupt(t, fmt.Sprint("swapped records ", j, " and ", i), sealed(t, head, join(swapped)))
		}
	}
}

// TestPlaceOfDamage: the error names the record that is damaged.
func TestPlaceOfDamage(t *testing.T) {
	file := written(t, built(t, roomy(t)))
	head, records := file[:headSize], split(t, content(t, file))
	offset := int64(0)
	for i, r := range records[:len(records)-1] {
		length, n := binary.Uvarint(r[1:])
		longer := binary.AppendUvarint([]byte{r[0]}, length+1)
		longer = append(append(longer, r[1+n:]...), 0)
		all := append([][]byte(nil), records...)
		all[i] = longer
		got := corrupt(t, fmt.Sprint("a field too many in record ", i), sealed(t, head, bytes.Join(all, nil)))
		if got.Record != uint64(i) || got.Offset != offset || strings.HasPrefix(got.Kind, "kind ") {
			t.Errorf("damage in record %d at byte %d was found as: %v", i, offset, &got)
		}
		offset += int64(len(r))
	}
}

// TestRecordTwice: one request has one record, and two have not taken one
// revision.
func TestRecordTwice(t *testing.T) {
	const second = 1 + 2 + 2 + 2 + 1 // behind the header, entries, fences, absent floors and the first request
	for name, c := range map[string]struct {
		change func(p, first *fsm.Record)
		want   error
	}{
		"request":  {func(second, first *fsm.Record) { second.Key = first.Key }, fsm.ErrRecordTwice},
		"revision": {func(second, first *fsm.Record) { second.Revision = first.Revision }, nil},
	} {
		p, other := roomy(t), roomy(t)
		c.change(other.Records[1], p.Records[0])
		other.Records[0].Key, other.Records[0].Revision = "other\x00request", 1
		file, theirs := written(t, built(t, p)), written(t, built(t, other))
		records := split(t, content(t, file))
		records[second] = split(t, content(t, theirs))[second]
		got := corrupt(t, "one "+name+" twice", sealed(t, file[:headSize], bytes.Join(records, nil)))
		if c.want != nil && !errors.Is(got.Err, c.want) || got.Kind != "request record" {
			t.Errorf("%s: %v, want %v", name, &got, c.want)
		}
	}
}

// TestLengths: lengths that lie or are not the shortest are refused, and cost no
// memory for what is not there.
func TestLengths(t *testing.T) {
	file := written(t, built(t, roomy(t)))
	head, all := file[:headSize], content(t, file)
	_, n := binary.Uvarint(all[1:])
	padded := append(bytes.Clone(all[:1+n]), 0)
	padded[n] |= 0x80
	corrupt(t, "length with a zero behind it", sealed(t, head, append(padded, all[1+n:]...)))
	for _, length := range []uint64{32<<20 + 1, 1 << 40, 1<<64 - 1} {
		got := corrupt(t, fmt.Sprint("length ", length), sealed(t, head, binary.AppendUvarint([]byte{1}, length)))
		if !strings.Contains(got.Err.Error(), "out of bounds") {
			t.Errorf("length %d: %v", length, &got)
		}
	}
	lying := sealed(t, head, binary.AppendUvarint([]byte{1}, 32<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := snapshot.Verify(bytes.NewReader(lying)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a record that is not there: %v", err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("a length of 32 MiB with nothing behind it took %d bytes", used)
	}
}

// TestWindow: a frame may not ask for more memory than the reader grants.
func TestWindow(t *testing.T) {
	file := written(t, built(t, roomy(t)))
	frame := func(log byte) []byte {
		whole := sealed(t, file[:headSize], content(t, file))
		all := content(t, whole)
		sum := binary.BigEndian.AppendUint32(nil, sumOf(file[:headSize], all))
		all = append(all, sum...)
		b := append(bytes.Clone(file[:headSize]), 0x28, 0xb5, 0x2f, 0xfd, 0, (log-10)<<3)
		block := uint32(len(all))<<3 | 1 // raw, the last
		return append(append(b, byte(block), byte(block>>8), byte(block>>16)), all...)
	}
	if _, err := snapshot.Verify(bytes.NewReader(frame(22))); err != nil {
		t.Fatalf("a window of 4 MiB: %v", err)
	}
	corrupt(t, "a window of 64 MiB", frame(26))
}

// TestReaderFails: an error of the disk or the network is itself, not damage.
func TestReaderFails(t *testing.T) {
	errBroken := errors.New("connection reset")
	file := written(t, sample(t))
	for n := range len(file) + 1 {
		r := io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(errBroken))
		_, _, err := snapshot.Read(r)
		if !errors.Is(err, errBroken) || refused(err) {
			t.Fatalf("broken after %d of %d bytes: %v", n, len(file), err)
		}
	}
}
