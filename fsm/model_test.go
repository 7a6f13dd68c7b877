package fsm_test

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fencekv/fencekv/fsm"
)

// model is the rules of DESIGN.md once more, written from the text alone as the
// plainest program that follows it: maps and slices changed in place, every
// question answered by looking at everything. It borrows the types of the
// records from the package and none of its functions, so a mistake would have
// to be made twice to go unseen.
type model struct {
	header  fsm.Header
	wallMs  int64 // of the command at hand
	entries map[string]*fsm.Entry
	fences  map[string]*fsm.Fence
	absents map[string]*fsm.Absent
	members map[string]*fsm.Member
	records []*fsm.Record // oldest first
	waiters []*fsm.Waiter // in order of joining
	events  []*fsm.Event
}

func newModel(h fsm.Header) *model {
	return &model{
		header:  h,
		entries: map[string]*fsm.Entry{},
		fences:  map[string]*fsm.Fence{},
		absents: map[string]*fsm.Absent{},
		members: map[string]*fsm.Member{},
	}
}

// apply runs one command: time first, then the forgetting, then the operation.
func (m *model) apply(at fsm.Position, c *fsm.Command) fsm.Decision {
	m.header.Index, m.wallMs = at.Index, c.Stamp.WallMs
	if c.Stamp.Term == at.Term {
		m.header.ClockMs = max(m.header.ClockMs, c.Stamp.ClockMs)
	}
	m.passTime()
	m.forget()
	d := m.run(c)
	d.Op, d.Resource, d.RequestID = c.Op.Kind(), scopeOf(c.Op), c.Request.ID
	if d.Outcome == fsm.OutcomeRefused || d.Outcome == fsm.OutcomeApplied && lasting(d.Code) {
		m.event(d)
	}
	m.wake()
	return d
}

// lasting says which accepted commands stand in the evidence.
func lasting(code fsm.Code) bool {
	return slices.Contains([]fsm.Code{fsm.Granted, fsm.Released, fsm.Revoked, fsm.Required, fsm.Purged, fsm.Sealed}, code)
}

func (m *model) run(c *fsm.Command) fsm.Decision {
	switch op := c.Op.(type) {
	case *fsm.Put:
		return m.write(c, change{put: op, key: op.Key, want: op.If, token: op.Token, sequence: op.Sequence})
	case *fsm.Delete:
		return m.write(c, change{key: op.Key, want: op.If, token: op.Token, sequence: op.Sequence})
	case *fsm.Txn:
		return m.txn(c, op)
	case *fsm.Acquire:
		return m.acquire(c, op)
	case *fsm.Renew:
		return m.renew(c, op)
	case *fsm.Release:
		return m.release(c, op)
	case *fsm.Withdraw:
		return m.withdraw(c, op)
	case *fsm.Revoke:
		return m.revoke(c, op)
	case *fsm.Require:
		return m.require(c, op)
	case *fsm.Purge:
		return m.purge(c, op)
	case *fsm.Seal:
		return m.seal(c, op)
	case *fsm.Configure:
		m.header.Settings = op.Settings
	case *fsm.SetMember:
		member := op.Member
		m.members[member.Name] = &member
	case *fsm.RemoveMember:
		delete(m.members, op.Name)
	case *fsm.Found:
		if m.header.ClusterID == "" {
			m.header.ClusterID = op.ClusterID
		}
	case *fsm.Tick:
		return fsm.Decision{Outcome: fsm.OutcomeApplied, Code: fsm.Ticked, Revision: m.header.Revision}
	}
	return fsm.Decision{Outcome: fsm.OutcomeApplied, Code: fsm.Recorded, Revision: m.header.Revision}
}

func scopeOf(op fsm.Op) string {
	switch op := op.(type) {
	case *fsm.Put:
		return op.Key
	case *fsm.Delete:
		return op.Key
	case *fsm.Txn:
		return op.Resource
	case *fsm.Acquire:
		return op.Resource
	case *fsm.Renew:
		return op.Resource
	case *fsm.Release:
		return op.Resource
	case *fsm.Withdraw:
		return op.Resource
	case *fsm.Revoke:
		return op.Resource
	case *fsm.Require:
		return op.Resource
	case *fsm.Purge:
		return op.Prefix
	case *fsm.Seal:
		return op.Scope
	}
	return ""
}

// due is a lease (no waiter) or a wait whose time has come.
type due struct {
	atMs     int64
	resource string
	waiter   *fsm.Waiter
}

func (d due) request() string {
	if d.waiter == nil {
		return ""
	}
	return d.waiter.RequestID
}

// passTime ends what is due, one at a time: ending a lease may grant the next
// one, and a waiter that was granted no longer waits.
func (m *model) passTime() {
	for {
		var all []due
		for resource, f := range m.fences {
			if f.Lock != nil && f.Lock.DeadlineMs <= m.header.ClockMs {
				all = append(all, due{f.Lock.DeadlineMs, resource, nil})
			}
		}
		for _, w := range m.waiters {
			if w.DeadlineMs <= m.header.ClockMs {
				all = append(all, due{w.DeadlineMs, w.Resource, w})
			}
		}
		if len(all) == 0 {
			return
		}
		first := slices.MinFunc(all, func(a, b due) int {
			return cmp.Or(cmp.Compare(a.atMs, b.atMs), strings.Compare(a.resource, b.resource), strings.Compare(a.request(), b.request()))
		})
		m.header.Revision++
		if first.waiter == nil {
			m.expire(first.resource)
		} else {
			m.leave(first.waiter, fsm.WaitOver)
		}
		m.wake()
	}
}

func (m *model) expire(resource string) {
	f := m.fences[resource]
	lock := f.Lock
	f.Lock = nil
	m.event(fsm.Decision{
		Outcome: fsm.OutcomeApplied, Code: fsm.Expired, Resource: resource, RequestID: lock.RequestID,
		Revision: m.header.Revision, Holder: lock.Holder, Token: lock.Token,
	})
}

// leave takes w out of the queue; the caller has taken the revision.
func (m *model) leave(w *fsm.Waiter, code fsm.Code) {
	m.waiters = slices.DeleteFunc(m.waiters, func(one *fsm.Waiter) bool { return one == w })
	m.event(fsm.Decision{
		Outcome: fsm.OutcomeApplied, Code: code, Resource: w.Resource, RequestID: w.RequestID,
		Revision: m.header.Revision, Holder: w.Holder,
	})
}

// forget drops at most 64 records that are past their time or above the cap.
func (m *model) forget() {
	for range 64 {
		if len(m.records) == 0 {
			return
		}
		oldest := m.records[0]
		past := oldest.AtMs+m.header.Settings.RequestRetentionMs <= m.header.ClockMs
		if !past && int64(len(m.records)) <= m.header.Settings.MaxRequests {
			return
		}
		m.records = m.records[1:]
		m.header.Horizon = max(m.header.Horizon, oldest.Revision)
	}
}

func (m *model) event(d fsm.Decision) {
	d.LeaseID = ""
	m.header.EventSeq++
	m.events = append(m.events, &fsm.Event{Seq: m.header.EventSeq, Index: m.header.Index, Decision: &d})
}

// refuse is a refusal that records nothing.
func (m *model) refuse(code fsm.Code) fsm.Decision {
	return fsm.Decision{Outcome: fsm.OutcomeRefused, Code: code, Revision: m.header.Revision}
}

func (m *model) record(scope, id string) *fsm.Record {
	for _, r := range m.records {
		if r.Key == scope+"\x00"+id {
			return r
		}
	}
	return nil
}

// remember puts a verdict on record at the newest revision.
func (m *model) remember(op fsm.Op, r fsm.Request, record fsm.Record) {
	if r.ID == "" {
		return
	}
	record.Key = scopeOf(op) + "\x00" + r.ID
	record.Op = op.Kind()
	record.Fingerprint = r.Fingerprint
	record.Revision = m.header.Revision
	record.AtMs = m.header.ClockMs
	m.records = append(m.records, &record)
}

// known is the request rule for what the first command under an ID decided.
func (m *model) known(op fsm.Op, r fsm.Request) (*fsm.Record, fsm.Code) {
	record := m.record(scopeOf(op), r.ID)
	w := m.waiting(scopeOf(op), r.ID)
	switch {
	case w != nil && w.Fingerprint != r.Fingerprint:
		return nil, fsm.RequestMismatch
	case record == nil || r.ID == "":
		return nil, ""
	case record.Verdict == fsm.VerdictSealed:
		return record, fsm.RequestSealed
	case record.Fingerprint != r.Fingerprint:
		return record, fsm.RequestMismatch
	}
	return record, ""
}

// forgotten reports whether a request that is not on record may have been.
func (m *model) forgotten(r fsm.Request) bool {
	return r.ID != "" && r.HasBase && r.Base < m.header.Horizon
}

func (m *model) expired() fsm.Decision {
	d := m.refuse(fsm.RequestExpired)
	d.Horizon = m.header.Horizon
	return d
}

// answer is what a recorded verdict says to a resend.
func (m *model) answer(r *fsm.Record) fsm.Decision {
	d := fsm.Decision{
		Outcome: fsm.OutcomeReplayed, Code: codes[r.Op], Revision: r.Revision,
		Version: r.Version, Created: r.Created, Token: r.Token,
	}
	if more := r.More; more != nil {
		d.Holder, d.Versions, d.Count, d.Remaining = more.Holder, more.Versions, more.Count, more.Remaining
		d.Key, d.Current, d.FailedOp = more.Key, more.Current, more.FailedOp
	}
	switch r.Verdict {
	case fsm.VerdictRevisionMismatch:
		d.Code = fsm.RevisionMismatch
	case fsm.VerdictKeyNotFound:
		d.Code = fsm.KeyNotFound
	case fsm.VerdictSealed:
		d.Code = fsm.Sealed
	}
	return d
}

var codes = map[fsm.Kind]fsm.Code{
	fsm.KindPut: fsm.Written, fsm.KindDelete: fsm.Deleted, fsm.KindTxn: fsm.Committed, fsm.KindAcquire: fsm.Granted,
	fsm.KindRelease: fsm.Released, fsm.KindRevoke: fsm.Revoked, fsm.KindRequire: fsm.Required, fsm.KindPurge: fsm.Purged,
	fsm.KindSeal: fsm.Sealed,
}
