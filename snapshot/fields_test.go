package snapshot_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/snapshot"
)

// roomy is the sample with two records of every kind, and room between the
// numbers that bound each other, so that each can be changed alone.
func roomy(t testing.TB) parts {
	t.Helper()
	p := partsOf(sample(t))
	p.Fences[0].Issued = 40
	p.Entries[0].Earlier[1].Revision, p.Entries[0].Earlier[1].Version = 700, 700
	p.Absents = append(p.Absents, &fsm.Absent{Prefix: "later/"})
	p.Waiters = append(p.Waiters, &fsm.Waiter{Resource: "app/x", RequestID: "r", LeaseID: "l", Order: 1})
	p.Members = append(p.Members, &fsm.Member{Name: "z"})
	p.Events = append(p.Events, &fsm.Event{Seq: p.Events[0].Seq + 10, Decision: &fsm.Decision{Op: fsm.KindTick}})
	return p
}

// built makes a state of parts, whether or not they agree with each other.
func built(t testing.TB, p parts) *fsm.State {
	t.Helper()
	b := fsm.NewBuilder(p.Header)
	for _, one := range p.Entries {
		b.AddEntry(one)
	}
	for _, one := range p.Fences {
		b.AddFence(one)
	}
	for _, one := range p.Absents {
		b.AddAbsent(one)
	}
	for _, one := range p.Records {
		b.AddRecord(one)
	}
	for _, one := range p.Waiters {
		b.AddWaiter(one)
	}
	for _, one := range p.Members {
		b.AddMember(one)
	}
	for _, one := range p.Events {
		b.AddEvent(one)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// owed are the pointers that are never nil in a state.
var owed = map[string]bool{"Entry.Now": true, "Entry.Earlier[]": true, "Fence.Enforced": true, "Event.Decision": true}

// change is one field and what sets it to another value.
type change struct {
	field string
	apply func()
}

// changes returns a change of every field of the struct v, at any depth.
func changes(v reflect.Value) (all []change) {
	for i := range v.NumField() {
		all = append(all, changesOf(v.Type().Name()+"."+v.Type().Field(i).Name, v.Field(i))...)
	}
	return all
}

func changesOf(name string, v reflect.Value) (all []change) {
	one := func(apply func()) { all = append(all, change{name, apply}) }
	switch v.Kind() {
	case reflect.Bool:
		one(func() { v.SetBool(!v.Bool()) })
	case reflect.Uint8:
		// Away from 1, which all have: a mistake of one for another shows.
		one(func() { v.SetUint(v.Uint() + 1) })
	case reflect.Uint64:
		one(func() { v.SetUint(v.Uint() + 1) })
	case reflect.Int64:
		one(func() { v.SetInt(-v.Int() - 1) })
	case reflect.String:
		one(func() { v.SetString(v.String() + "x") })
	case reflect.Pointer:
		if !owed[name] {
			one(func() { v.SetZero() })
		}
		all = append(all, changes(v.Elem())...)
	case reflect.Slice:
		one(func() { v.SetZero() })
		for i := range v.Len() {
			all = append(all, changesOf(name+"[]", v.Index(i))...)
		}
	case reflect.Array: // a sum is written as a whole
		one(func() {
			for i := range v.Len() {
				v.Index(i).SetUint(v.Index(i).Uint() ^ 0xff)
			}
		})
	case reflect.Struct:
		all = append(all, changes(v)...)
	default:
		panic("a field of a kind the test does not know: " + v.Type().String())
	}
	return all
}

func everyChange(p *parts) (all []change) {
	for _, record := range []any{
		&p.Header, p.Entries[0], p.Fences[0], p.Absents[0], p.Records[0], p.Waiters[0], p.Members[0], p.Events[0],
	} {
		all = append(all, changes(reflect.ValueOf(record).Elem())...)
	}
	return all
}

// TestEveryField changes one field at a time. The file is another one, and reads
// as the changed state: no field is left out or taken for its neighbour.
func TestEveryField(t *testing.T) {
	first := roomy(t)
	base := written(t, built(t, first))
	for i := range everyChange(&first) {
		p := roomy(t)
		c := everyChange(&p)[i]
		if c.field == "Header.ClockMs" { // the clock never turns below zero
			p.Header.ClockMs++
		} else {
			c.apply()
		}
		state := built(t, p)
		file := written(t, state)
		if bytes.Equal(file, base) {
			t.Errorf("%s (change %d): makes no difference to the file", c.field, i)
		}
		read, _, err := snapshot.Read(bytes.NewReader(file))
		if err != nil {
			t.Errorf("%s (change %d): %v", c.field, i, err)
		} else if diff := difference(state, read); diff != "" {
			t.Errorf("%s (change %d): (-written +read)\n%s", c.field, i, diff)
		}
	}
}

// TestInfo: writer, reader and verifier say the same of a file, and what they
// say stands in the state.
func TestInfo(t *testing.T) {
	state := built(t, roomy(t))
	var file bytes.Buffer
	wrote, err := snapshot.Write(&file, state)
	if err != nil {
		t.Fatal(err)
	}
	h := state.Header()
	want := snapshot.Info{
		Format: 1, ClusterID: h.ClusterID, Epoch: h.Epoch, Index: h.Index, Revision: h.Revision, Token: h.Token,
		ClockMs: h.ClockMs, Counts: state.Counts(), Bytes: int64(file.Len()), Checksum: wrote.Checksum,
	}
	_, read, readErr := snapshot.Read(bytes.NewReader(file.Bytes()))
	verified, verifyErr := snapshot.Verify(bytes.NewReader(file.Bytes()))
	for who, got := range map[string]snapshot.Info{"Write": wrote, "Read": read, "Verify": verified} {
		if got != want {
			t.Errorf("%s says\n%+v, want\n%+v (read: %v, verify: %v)", who, got, want, readErr, verifyErr)
		}
	}
	sums := map[uint32]string{wrote.Checksum: "the sample"}
	for n := range 100 {
		p := roomy(t)
		p.Header.Index = uint64(1_000 + n)
		info, err := snapshot.Write(&bytes.Buffer{}, built(t, p))
		if other := sums[info.Checksum]; err != nil || other != "" {
			t.Fatalf("index %d has the checksum of %s: %v", p.Header.Index, other, err)
		}
		sums[info.Checksum] = fmt.Sprint("index ", p.Header.Index)
	}
}
