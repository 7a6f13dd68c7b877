package snapshot_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/fencekv/fencekv/fsm"
)

// filled returns a T whose every field, at any depth, is set, and set unlike
// the others: a field the format forgets, or mistakes for another, shows. One
// that is added to the state later is filled, and so tested, by itself.
func filled[T any](from int) *T {
	var v T
	n := from
	fill(reflect.ValueOf(&v).Elem(), &n)
	return &v
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1) // the first of an enumeration, or a byte
	case reflect.Int64, reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			*n++
			v.Index(i).SetUint(uint64(*n % 256))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("a field of a kind the sample does not know: " + v.Type().String())
	}
}

// sample is a state with something in every field that a snapshot carries. What
// is set by hand is what the fields owe each other.
func sample(t testing.TB) *fsm.State {
	t.Helper()
	const high = 1_000_000
	h := filled[fsm.Header](0)
	h.Revision, h.Token, h.Horizon, h.EventSeq = high, high, high-1, high
	b := fsm.NewBuilder(*h)

	live := filled[fsm.Entry](100)
	live.Key, live.Now.Deleted = "app/a", false
	live.Now.Revision, live.Now.Version = 900, 900
	for i, v := range live.Earlier {
		v.Deleted, v.Revision, v.Version = false, uint64(800-i), uint64(800-i)
	}
	deleted := filled[fsm.Entry](200)
	deleted.Key, deleted.Earlier, deleted.Now.Data, deleted.Now.ContentType = "app/b", nil, nil, ""
	b.AddEntry(live)
	b.AddEntry(deleted)

	fence := filled[fsm.Fence](300)
	fence.Resource, fence.MaxToken, fence.Issued = "app/", 10, 30
	fence.Issues[0].Token, fence.Issues[1].Token, fence.Lock.Token = 20, 30, 30
	fence.Issues[0].Retired = false
	b.AddFence(fence)
	bare := &fsm.Fence{Resource: "bare"}
	b.AddFence(bare)

	absent := filled[fsm.Absent](400)
	absent.Prefix = "gone/"
	b.AddAbsent(absent)
	record := filled[fsm.Record](500)
	record.Key = "app/a\x00request"
	b.AddRecord(record)
	plain := &fsm.Record{Key: "app/b\x00request", Op: fsm.KindPut, Verdict: fsm.VerdictApplied, Revision: record.Revision + 100, Version: 3}
	b.AddRecord(plain)
	waiter := filled[fsm.Waiter](600)
	waiter.Resource = "app/w"
	b.AddWaiter(waiter)
	member := filled[fsm.Member](700)
	b.AddMember(member)
	event := filled[fsm.Event](800)
	event.Decision.Code = fsm.StaleOwner
	event.Decision.LeaseID = "" // never in the evidence
	b.AddEvent(event)
	state, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// parts is everything a snapshot carries.
type parts struct {
	Header  fsm.Header
	Entries []*fsm.Entry
	Fences  []*fsm.Fence
	Absents []*fsm.Absent
	Records []*fsm.Record
	Waiters []*fsm.Waiter
	Members []*fsm.Member
	Events  []*fsm.Event
	Counts  fsm.Counts
	Due     int64
}

func partsOf(s *fsm.State) parts {
	p := parts{Header: s.Header(), Counts: s.Counts()}
	for one := range s.Entries("", "") {
		p.Entries = append(p.Entries, one)
	}
	for one := range s.Fences("", "") {
		p.Fences = append(p.Fences, one)
	}
	for one := range s.Absents() {
		p.Absents = append(p.Absents, one)
	}
	for one := range s.Records() {
		p.Records = append(p.Records, one)
	}
	for one := range s.Waiters() {
		p.Waiters = append(p.Waiters, one)
	}
	for one := range s.Members() {
		p.Members = append(p.Members, one)
	}
	for one := range s.Events(0) {
		p.Events = append(p.Events, one)
	}
	p.Due, _ = s.NextDeadline()
	return p
}
