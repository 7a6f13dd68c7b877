package fsm

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"
)

// State is everything the cluster agrees on. It is an immutable value: Apply
// returns a new one that shares what did not change, so holding a State is
// holding a snapshot, and readers need no lock. All but one goroutine may only
// read a State; one goroutine at a time may derive the next from it.
type State struct {
	index     uint64 // Raft index of the newest command
	clockMs   int64
	revision  uint64
	token     uint64 // newest token issued, of any resource
	floor     uint64 // tokens below are stale everywhere
	floorSet  *Enforcement
	epoch     uint64
	horizon   uint64 // revision of the newest request record ever dropped
	clusterID string
	eventSeq  uint64
	settings  Settings

	entries *btree.Map[string, *Entry]
	fences  *btree.Map[string, *Fence]
	absents *btree.Map[string, *Absent]
	records recordMap
	waiters *btree.Map[string, *Waiter] // by resource, NUL, request ID
	members *btree.Map[string, *Member]
	events  *btree.Map[uint64, *Event]

	// Derived from the above, so not in snapshots.
	byAge     *btree.Map[uint64, *Record] // records by revision: oldest first
	queue     *btree.BTreeG[*Waiter]      // waiters by resource and order
	deadlines *btree.BTreeG[deadline]     // of leases and waiters
	held      *btree.Map[string, *Fence]  // resources locked now
	lengths   *btree.Map[string, int64]   // waiters of each resource that has any
	live      int64                       // keys that are not tombstones
}

// New returns the state of a store nothing was written to.
func New() *State {
	return &State{
		settings:  DefaultSettings(),
		entries:   new(btree.Map[string, *Entry]),
		fences:    new(btree.Map[string, *Fence]),
		absents:   new(btree.Map[string, *Absent]),
		records:   newRecordMap(hashRecordKey),
		waiters:   new(btree.Map[string, *Waiter]),
		members:   new(btree.Map[string, *Member]),
		events:    new(btree.Map[uint64, *Event]),
		byAge:     new(btree.Map[uint64, *Record]),
		queue:     newQueue(),
		deadlines: newDeadlines(),
		held:      new(btree.Map[string, *Fence]),
		lengths:   new(btree.Map[string, int64]),
	}
}

// Head is what is small of a State: enough to know how far a store is. Taking a
// State makes the commands behind it copy what they change; taking a Head does not.
type Head struct {
	Index    uint64 // see State.Index
	ClockMs  int64
	Deadline int64 // see State.NextDeadline; 0 while there is none
	EventSeq uint64
	Settings Settings

	ClusterID string

	members *btree.Map[string, *Member]
}

// Member returns a member by name, or nil.
func (h *Head) Member(name string) *Member {
	m, _ := h.members.Get(name)
	return m
}

// derive returns a copy of s that may be changed without s seeing it.
func (s *State) derive() *State {
	next := *s
	next.entries = s.entries.Copy()
	next.fences = s.fences.Copy()
	next.absents = s.absents.Copy()
	next.records = s.records.copy()
	next.waiters = s.waiters.Copy()
	next.members = s.members.Copy()
	next.events = s.events.Copy()
	next.byAge = s.byAge.Copy()
	next.queue = s.queue.Copy()
	next.deadlines = s.deadlines.Copy()
	next.held = s.held.Copy()
	next.lengths = s.lengths.Copy()
	return &next
}

// Index returns the Raft index of the newest command in the state.
func (s *State) Index() uint64 { return s.index }

// ClockMs returns the cluster clock in milliseconds.
func (s *State) ClockMs() int64 { return s.clockMs }

// Revision returns the number of the newest change.
func (s *State) Revision() uint64 { return s.revision }

// Token returns the newest token issued, of any resource.
func (s *State) Token() uint64 { return s.token }

// Floor returns the token below which every token is stale, and what set it
// (nil while it is 0).
func (s *State) Floor() (uint64, *Enforcement) { return s.floor, s.floorSet }

// Epoch returns how often the store was restored, in the sense of the design:
// it rises with each restore.
func (s *State) Epoch() uint64 { return s.epoch }

// Horizon returns the revision of the newest request record ever dropped.
func (s *State) Horizon() uint64 { return s.horizon }

// ClusterID returns the cluster's ID, empty before it was founded.
func (s *State) ClusterID() string { return s.clusterID }

// EventSeq returns the number of the newest event.
func (s *State) EventSeq() uint64 { return s.eventSeq }

// Settings returns the settings in force.
func (s *State) Settings() Settings { return s.settings }

// Counts says how much a State holds.
type Counts struct {
	Keys, Tombstones, Fences, Locks, Waiters, Requests, Events, Members, Absents int64
}

// Counts returns how much s holds, in constant time.
func (s *State) Counts() Counts {
	return Counts{
		Keys:       s.live,
		Tombstones: int64(s.entries.Len()) - s.live,
		Fences:     int64(s.fences.Len()),
		Locks:      int64(s.held.Len()),
		Waiters:    int64(s.waiters.Len()),
		Requests:   int64(s.records.len()),
		Events:     int64(s.events.Len()),
		Members:    int64(s.members.Len()),
		Absents:    int64(s.absents.Len()),
	}
}

// Entry returns the entry of key, a tombstone included, or nil.
func (s *State) Entry(key string) *Entry {
	e, _ := s.entries.Get(key)
	return e
}

// Fence returns the fence of exactly this resource, or nil.
func (s *State) Fence(resource string) *Fence {
	f, _ := s.fences.Get(resource)
	return f
}

// Record returns the record of a request, or nil.
func (s *State) Record(scope, id string) *Record {
	return s.records.get(recordKey(scope, id))
}

// Waiter returns a waiting acquire, or nil.
func (s *State) Waiter(resource, id string) *Waiter {
	w, _ := s.waiters.Get(recordKey(resource, id))
	return w
}

// Member returns a member by name, or nil.
func (s *State) Member(name string) *Member {
	m, _ := s.members.Get(name)
	return m
}

// Entries yields the entries whose key starts with prefix and is greater than
// after, in order of key, tombstones included.
func (s *State) Entries(prefix, after string) iter.Seq[*Entry] {
	return under(s.entries, prefix, after)
}

// Fences yields the fences whose resource starts with prefix and is greater
// than after, in order of resource.
func (s *State) Fences(prefix, after string) iter.Seq[*Fence] { return under(s.fences, prefix, after) }

// Locks yields the fences of the resources locked now that start with prefix
// and are greater than after, in order of resource.
func (s *State) Locks(prefix, after string) iter.Seq[*Fence] { return under(s.held, prefix, after) }

// Absents yields the absent floors in order of prefix.
func (s *State) Absents() iter.Seq[*Absent] { return under(s.absents, "", "") }

// Records yields the request records, oldest first.
func (s *State) Records() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		s.byAge.Scan(func(_ uint64, r *Record) bool { return yield(r) })
	}
}

// Members yields the members in order of name.
func (s *State) Members() iter.Seq[*Member] { return under(s.members, "", "") }

// Waiters yields the waiters in order of resource and request ID.
func (s *State) Waiters() iter.Seq[*Waiter] { return under(s.waiters, "", "") }

// Queue yields the waiters of exactly this resource, the next to be served first.
func (s *State) Queue(resource string) iter.Seq[*Waiter] {
	return func(yield func(*Waiter) bool) {
		s.queue.Ascend(&Waiter{Resource: resource}, func(w *Waiter) bool {
			return w.Resource == resource && yield(w)
		})
	}
}

// Events yields the kept events with a number above after, oldest first.
func (s *State) Events(after uint64) iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		s.events.Ascend(after+1, func(_ uint64, e *Event) bool { return yield(e) })
	}
}

// NextDeadline returns the point of the cluster clock at which the next lease
// or wait ends, and whether there is one.
func (s *State) NextDeadline() (int64, bool) {
	d, ok := s.deadlines.Min()
	return d.atMs, ok
}

// Enforced returns the token below which a write to key (or a lock's resource)
// is stale, and the evidence for it: the highest of the floor and the maxToken
// of the key and every prefix that covers it. A resource without a fence of its
// own also counts the absent floors above it.
func (s *State) Enforced(resource string) (uint64, *Enforcement) {
	c := s.cover(resource)
	return c.enforced, c.by
}

func under[V any](m *btree.Map[string, V], prefix, after string) iter.Seq[V] {
	return func(yield func(V) bool) {
		m.Ascend(max(prefix, after), func(key string, v V) bool {
			if after != "" && key <= after {
				return true
			}
			return strings.HasPrefix(key, prefix) && yield(v)
		})
	}
}
