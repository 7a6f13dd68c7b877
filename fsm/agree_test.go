package fsm_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fencekv/fencekv/fsm"
)

// failer is what a rapid run, a fuzz run and a test have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// whole is everything a state holds, for comparison.
type whole struct {
	Header   fsm.Header
	Entries  []*fsm.Entry
	Fences   []*fsm.Fence
	Absents  []*fsm.Absent
	Records  []*fsm.Record
	Waiters  []*fsm.Waiter
	Members  []*fsm.Member
	Locked   []string
	Queues   map[string][]string
	Due      int64
	Counts   fsm.Counts
	Enforced map[string]uint64
	Evidence map[string]fsm.Enforcement
}

func wholeState(s *fsm.State) whole {
	w := whole{
		Header: s.Header(), Counts: s.Counts(), Queues: map[string][]string{},
		Entries: slices.Collect(s.Entries("", "")), Fences: slices.Collect(s.Fences("", "")),
		Absents: slices.Collect(s.Absents()), Records: slices.Collect(s.Records()),
		Waiters: slices.Collect(s.Waiters()), Members: slices.Collect(s.Members()),
		Enforced: map[string]uint64{}, Evidence: map[string]fsm.Enforcement{},
	}
	for f := range s.Locks("", "") {
		w.Locked = append(w.Locked, f.Resource)
	}
	for _, resource := range resources {
		for one := range s.Queue(resource) {
			w.Queues[resource] = append(w.Queues[resource], one.RequestID)
		}
	}
	w.Due, _ = s.NextDeadline()
	for _, key := range keys {
		e, by := s.Enforced(key)
		w.Enforced[key] = e
		if by != nil {
			w.Evidence[key] = *by
		}
	}
	return w
}

func (m *model) whole() whole {
	w := whole{
		Header: m.header, Queues: map[string][]string{},
		Entries: sorted(m.entries), Fences: sorted(m.fences), Absents: sorted(m.absents), Members: sorted(m.members),
		Enforced: map[string]uint64{}, Evidence: map[string]fsm.Enforcement{},
	}
	w.Records = slices.Clone(m.records)
	w.Waiters = slices.SortedFunc(slices.Values(m.waiters), func(a, b *fsm.Waiter) int {
		return strings.Compare(a.Resource+"\x00"+a.RequestID, b.Resource+"\x00"+b.RequestID)
	})
	for _, f := range w.Fences {
		if f.Lock != nil {
			w.Locked = append(w.Locked, f.Resource)
			w.due(f.Lock.DeadlineMs)
		}
	}
	for _, one := range m.waiters {
		w.Queues[one.Resource] = append(w.Queues[one.Resource], one.RequestID)
		w.due(one.DeadlineMs)
	}
	for _, key := range keys {
		e, by := m.enforced(key)
		w.Enforced[key] = e
		if by != nil {
			w.Evidence[key] = *by
		}
	}
	w.Counts = fsm.Counts{
		Fences: int64(len(m.fences)), Locks: int64(len(w.Locked)), Waiters: int64(len(m.waiters)), Requests: int64(len(m.records)),
		Events: int64(len(m.events)), Members: int64(len(m.members)), Absents: int64(len(m.absents)),
	}
	for _, e := range m.entries {
		if e.Now.Deleted {
			w.Counts.Tombstones++
		} else {
			w.Counts.Keys++
		}
	}
	return w
}

func (w *whole) due(atMs int64) {
	if w.Due == 0 || atMs < w.Due {
		w.Due = atMs
	}
}

func sorted[V any](all map[string]V) []V {
	var out []V
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[key])
	}
	return out
}

// facts keeps of a decision what the rules define. Which time a replay shows,
// the name of a limit and the fingerprint are the package's own affair.
func facts(d fsm.Decision) fsm.Decision {
	d.ClockMs, d.WallMs, d.Limit, d.Fingerprint = 0, 0, "", [32]byte{}
	if d.Key == d.Resource {
		d.Key = ""
	}
	if d.Op == fsm.KindSeal {
		d.MaxToken, d.TTLMs, d.DeadlineMs, d.Mode, d.Continuity = 0, 0, 0, 0, false
	}
	switch d.Code {
	case fsm.RevisionMismatch, fsm.KeyNotFound, fsm.RequestMismatch, fsm.RequestSealed, fsm.RequestExpired,
		fsm.SequenceGap, fsm.SequencePassed, fsm.LimitExceeded, fsm.Committed:
		d.Token, d.MaxToken = 0, 0
	case fsm.StaleOwner, fsm.TokenRequired, fsm.TokenNotIssued, fsm.TokenRetired:
		if d.Op != fsm.KindAcquire {
			d.Issued = 0
		}
	case fsm.Released, fsm.Revoked:
		d.Mode, d.TTLMs, d.DeadlineMs, d.RemainingMs = 0, 0, 0, 0
	case fsm.NotHolder:
		d.MaxToken, d.Issued = 0, 0
	}
	return d
}

// evidence keeps of events what the rules define: what happened, to whom, when.
func evidence(events []*fsm.Event) []fsm.Event {
	var all []fsm.Event
	for _, e := range events {
		d := facts(*e.Decision)
		all = append(all, fsm.Event{Seq: e.Seq, Index: e.Index, Decision: &fsm.Decision{
			Outcome: d.Outcome, Code: d.Code, Resource: d.Resource, Key: d.Key, RequestID: d.RequestID, LeaseID: d.LeaseID,
			Revision: d.Revision, Token: d.Token, Holder: d.Holder, EnforcedBy: d.EnforcedBy, Current: d.Current,
		}})
	}
	return all
}

// history is a run that can tell its story when it fails.
type history struct {
	t     failer
	lines []string
}

func (h *history) add(e entry, d fsm.Decision) {
	c := e.c
	line := fmt.Sprintf("%d/%d clock %d", e.at.Index, e.at.Term, c.Stamp.ClockMs)
	if c.Stamp.Term != e.at.Term {
		line += fmt.Sprintf(" (of term %d)", c.Stamp.Term)
	}
	line += fmt.Sprintf(" %s %s", c.Op.Kind(), show(c.Op))
	if c.Request.ID != "" {
		line += " id=" + c.Request.ID
	}
	if c.Request.HasBase {
		line += fmt.Sprint(" base=", c.Request.Base)
	}
	h.lines = append(h.lines, fmt.Sprintf("%s\n      -> %s %s %s", line, d.Outcome, d.Code, show(&d)))
}

// show prints the fields of a struct that are not zero.
func show(v any) string {
	s := reflect.ValueOf(v).Elem()
	if s.Kind() != reflect.Struct {
		return fmt.Sprint(s)
	}
	var parts []string
	for i := range s.NumField() {
		f, name := s.Field(i), s.Type().Field(i).Name
		if f.IsZero() || slices.Contains([]string{"Fingerprint", "Op", "Outcome", "Code", "ClockMs", "WallMs", "RequestID"}, name) {
			continue
		}
		text := fmt.Sprint(f)
		switch value := f.Interface().(type) {
		case []byte:
			text = string(value)
		case []fsm.Op:
			text = ""
			for _, one := range value {
				text += one.Kind().String() + show(one)
			}
		case *fsm.Enforcement, *fsm.Applied:
			text = show(value)
		}
		parts = append(parts, name+":"+text)
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func (h *history) fatalf(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\n\nhistory:\n  %s", fmt.Sprintf(format, args...), strings.Join(h.lines, "\n  "))
}

// same stops the run when got and want differ.
func (h *history) same(what string, got, want any) {
	h.t.Helper()
	if !reflect.DeepEqual(got, want) {
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			h.fatalf("%s differs (-model +state):\n%s", what, diff)
		}
	}
}

// run makes up a history from s and calls check after each command.
func run(t failer, s script, check func(h *history, e entry, before, after *fsm.State, d fsm.Decision)) {
	t.Helper()
	steps := s.steps()
	if len(steps) == 0 {
		return
	}
	c := choices(steps[0])
	state := start(t, &c)
	h := &history{t: t}
	a := &author{at: fsm.Position{Term: 1}, clock: state.ClockMs()}
	a.at.Index++
	first := entry{a.at, fsm.NewCommand(fsm.Request{}, &fsm.Configure{Settings: settings(&c)})}
	do := func(e entry) {
		if err := fsm.Validate(e.c); err != nil {
			h.fatalf("the author made an invalid command %+v: %v", e.c, err)
		}
		before := state
		next, d := before.Apply(e.at, e.c)
		state = next
		h.add(e, d)
		a.saw(before, next)
		check(h, e, before, next, d)
	}
	do(first)
	for _, step := range steps[1:] {
		if e, ok := a.next(state, step); ok {
			do(e)
		}
	}
}

// agree holds a history against the model.
func agree(t failer, s script) {
	t.Helper()
	var m *model
	run(t, s, func(h *history, e entry, before, after *fsm.State, d fsm.Decision) {
		if m == nil {
			m = newModel(before.Header())
		}
		want := m.apply(e.at, e.c)
		h.same("decision", facts(d), facts(want))
		h.same("state", wholeState(after), m.whole())
		h.same("evidence", evidence(slices.Collect(after.Events(before.EventSeq()))), evidence(m.events[before.EventSeq()-m.firstEvent():]))
	})
}

// firstEvent is the number of the newest event before the history began.
func (m *model) firstEvent() uint64 { return m.header.EventSeq - uint64(len(m.events)) }

// TestAgreesWithModel holds random histories against the reference model, the
// whole state after every command.
func TestAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { agree(t, scripts().Draw(t, "history")) })
}
