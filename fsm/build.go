package fsm

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Header is the part of a State that is not a collection.
type Header struct {
	Index     uint64
	ClockMs   int64
	Revision  uint64
	Token     uint64
	Floor     uint64
	FloorSet  *Enforcement
	Epoch     uint64
	Horizon   uint64
	ClusterID string
	EventSeq  uint64
	Settings  Settings
}

// Header returns the part of s that is not a collection.
func (s *State) Header() Header {
	return Header{
		Index: s.index, ClockMs: s.clockMs, Revision: s.revision, Token: s.token,
		Floor: s.floor, FloorSet: s.floorSet, Epoch: s.epoch, Horizon: s.horizon,
		ClusterID: s.clusterID, EventSeq: s.eventSeq, Settings: s.settings,
	}
}

// Builder makes a State from the records of a snapshot. Records may come in any
// order; sorted order is fastest. What is derived (deadlines, the queue, the age
// of request records, the held locks) it makes itself.
type Builder struct {
	s       *State
	records []hashed
}

// hashed is a record with its hash, for the order of recordMap.
type hashed struct {
	hash   uint64
	record *Record
}

// NewBuilder returns a builder of a State with header h.
func NewBuilder(h Header) *Builder {
	s := New()
	s.index, s.clockMs, s.revision, s.token = h.Index, h.ClockMs, h.Revision, h.Token
	s.floor, s.floorSet, s.epoch, s.horizon = h.Floor, h.FloorSet, h.Epoch, h.Horizon
	s.clusterID, s.eventSeq, s.settings = h.ClusterID, h.EventSeq, h.Settings
	return &Builder{s: s}
}

// AddEntry adds e, which must not be changed afterwards.
func (b *Builder) AddEntry(e *Entry) {
	b.s.entries.Set(e.Key, e)
	if !e.Now.Deleted {
		b.s.live++
	}
}

// AddFence adds f, which must not be changed afterwards.
func (b *Builder) AddFence(f *Fence) {
	b.s.fences.Set(f.Resource, f)
	if f.Lock != nil {
		b.s.held.Set(f.Resource, f)
		b.s.deadlines.Set(deadline{atMs: f.Lock.DeadlineMs, resource: f.Resource})
	}
}

// AddAbsent adds a, which must not be changed afterwards.
func (b *Builder) AddAbsent(a *Absent) { b.s.absents.Set(a.Prefix, a) }

// AddRecord adds r, which must not be changed afterwards.
func (b *Builder) AddRecord(r *Record) {
	b.records = append(b.records, hashed{b.s.records.hash(r.Key), r})
	b.s.byAge.Set(r.Revision, r)
}

// AddWaiter adds w, which must not be changed afterwards.
func (b *Builder) AddWaiter(w *Waiter) { b.s.enqueue(w) }

// AddMember adds m, which must not be changed afterwards.
func (b *Builder) AddMember(m *Member) { b.s.members.Set(m.Name, m) }

// AddEvent adds e, which must not be changed afterwards.
func (b *Builder) AddEvent(e *Event) { b.s.events.Set(e.Seq, e) }

// ErrRecordTwice means that a request has two records, or that two records
// claim one revision.
var ErrRecordTwice = errors.New("one request has two records, or two took one revision")

// State returns the state built. The builder must not be used afterwards.
func (b *Builder) State() (*State, error) {
	slices.SortFunc(b.records, func(x, y hashed) int { return cmp.Compare(x.hash, y.hash) })
	for _, one := range b.records {
		b.s.records.setAt(one.hash, one.record)
	}
	if b.s.records.len() != len(b.records) || b.s.byAge.Len() != len(b.records) {
		return nil, ErrRecordTwice
	}
	return b.s, nil
}

// CheckRecordKey reports whether key has the form of Record.Key.
func CheckRecordKey(key string) bool {
	scope, id, found := strings.Cut(key, "\x00")
	return found && CheckResource(scope) == "" && CheckRequestID(id) == ""
}
