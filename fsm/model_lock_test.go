package fsm_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/fencekv/fencekv/fsm"
)

func overlaps(a, b string) bool { return covers(a, b) || covers(b, a) }

// heldBy returns the first lock in order of resource that overlaps resource.
func (m *model) heldBy(resource string) *fsm.Fence {
	for _, one := range slices.Sorted(maps.Keys(m.fences)) {
		if m.fences[one].Lock != nil && overlaps(one, resource) {
			return m.fences[one]
		}
	}
	return nil
}

func (m *model) waiting(resource, id string) *fsm.Waiter {
	for _, w := range m.waiters {
		if w.Resource == resource && w.RequestID == id {
			return w
		}
	}
	return nil
}

// outranked reports whether somebody waits since before w for what overlaps it.
func (m *model) outranked(w *fsm.Waiter) bool {
	return slices.ContainsFunc(m.waiters, func(one *fsm.Waiter) bool {
		return one.Order < w.Order && overlaps(one.Resource, w.Resource)
	})
}

// ahead counts the waiters before w in the queue of its resource.
func (m *model) ahead(w *fsm.Waiter) int64 {
	var n int64
	for _, one := range m.waiters {
		if one.Order < w.Order && one.Resource == w.Resource {
			n++
		}
	}
	return n
}

// wake grants, in order of joining, to every waiter that nothing blocks: no
// overlapping lock, and nobody before it who waits for an overlapping resource.
func (m *model) wake() {
	for i := 0; i < len(m.waiters); i++ {
		w := m.waiters[i]
		if m.heldBy(w.Resource) != nil || m.outranked(w) {
			continue
		}
		m.waiters = slices.Delete(m.waiters, i, i+1)
		i--
		d := m.grant(*w, 0)
		d.Op, d.Resource, d.RequestID = fsm.KindAcquire, w.Resource, w.RequestID
		m.event(d)
	}
}

// begin gives a resource its fence, on which a key keeps what a purge left.
func (m *model) begin(resource string) *fsm.Fence {
	f := &fsm.Fence{Resource: resource}
	if len(m.overhead(resource)) > 0 && !strings.HasSuffix(resource, "/") {
		f.MaxToken, f.Enforced = m.enforced(resource)
	}
	m.fences[resource] = f
	return f
}

// grant gives w its lock, whatever it had to wait for.
func (m *model) grant(w fsm.Waiter, ifToken uint64) fsm.Decision {
	m.header.Revision++
	f := m.fences[w.Resource]
	if f == nil {
		f = m.begin(w.Resource)
	}
	token := m.header.Token + 1
	if f.External {
		token = max(token, f.MaxToken+1)
		f.External, f.Issues = false, []fsm.Issue{{Token: f.MaxToken, Holder: f.Enforced.Holder}}
	}
	m.header.Token, f.Issued = token, token
	f.Issues = append(f.Issues, fsm.Issue{Token: token, Holder: w.Holder})
	if w.Mode == fsm.ModeIssue {
		m.settle(f, token, w.Holder, w.RequestID, fsm.CauseIssue)
	} else if len(f.Issues) > 8 {
		f.Issues = slices.Delete(f.Issues, 0, 1)
		m.enforce(f, f.Issues[0].Token, w.Holder, w.RequestID, fsm.CauseDisplace)
	}
	for _, one := range prefixesOf(w.Resource) {
		if above := m.fences[one]; above != nil {
			above.Under = token
		}
	}
	f.Lock = &fsm.Lock{
		Holder: w.Holder, LeaseID: w.LeaseID, RequestID: w.RequestID, Token: token, Mode: w.Mode, TTLMs: w.TTLMs,
		DeadlineMs: m.header.ClockMs + w.TTLMs, GrantedMs: m.header.ClockMs, WallMs: m.wallMs,
	}
	m.remember(&fsm.Acquire{Resource: w.Resource}, fsm.Request{ID: w.RequestID, Fingerprint: w.Fingerprint}, fsm.Record{
		Verdict: fsm.VerdictApplied, Token: token,
		More: &fsm.RecordMore{
			LeaseID: w.LeaseID, Holder: w.Holder, TTLMs: w.TTLMs, DeadlineMs: f.Lock.DeadlineMs,
			Mode: w.Mode, Continuity: ifToken != 0,
		},
	})
	d := m.lease(f)
	d.Outcome, d.Code, d.Revision, d.Continuity = fsm.OutcomeApplied, fsm.Granted, m.header.Revision, ifToken != 0
	return d
}

// lease says what is held.
func (m *model) lease(f *fsm.Fence) fsm.Decision {
	d := fsm.Decision{
		Token: f.Lock.Token, Issued: f.Issued, Holder: f.Lock.Holder, LeaseID: f.Lock.LeaseID, TTLMs: f.Lock.TTLMs,
		DeadlineMs: f.Lock.DeadlineMs, RemainingMs: f.Lock.DeadlineMs - m.header.ClockMs, Mode: f.Lock.Mode,
	}
	d.MaxToken = f.MaxToken
	return d
}

func (m *model) notHolder(resource string) fsm.Decision {
	d := m.refuse(fsm.NotHolder)
	if f := m.fences[resource]; f != nil && f.Lock != nil {
		d.Holder, d.RemainingMs = f.Lock.Holder, f.Lock.DeadlineMs-m.header.ClockMs
	}
	return d
}

func (m *model) lockHeld(resource string) fsm.Decision {
	d := m.refuse(fsm.LockHeld)
	if f := m.heldBy(resource); f != nil {
		d.Key, d.Holder, d.Token = f.Resource, f.Lock.Holder, f.Lock.Token
		d.RemainingMs = f.Lock.DeadlineMs - m.header.ClockMs
		return d
	}
	for _, w := range m.waiters {
		if overlaps(w.Resource, resource) {
			d.Key, d.Holder, d.RemainingMs = w.Resource, w.Holder, w.DeadlineMs-m.header.ClockMs
			return d
		}
	}
	return d
}

func (m *model) acquire(c *fsm.Command, op *fsm.Acquire) fsm.Decision {
	record, code := m.known(op, c.Request)
	f := m.fences[op.Resource]
	switch {
	case code != "":
		return m.refuse(code)
	case record != nil && f != nil && f.Lock != nil && f.Lock.LeaseID == record.More.LeaseID:
		d := m.lease(f)
		d.Outcome, d.Code, d.Revision, d.Continuity = fsm.OutcomeReplayed, fsm.Granted, record.Revision, record.More.Continuity
		return d
	case record != nil:
		d := m.notHolder(op.Resource)
		d.Token = record.Token
		return d
	}
	if w := m.waiting(op.Resource, c.Request.ID); w != nil {
		return m.waitOn(op, w)
	}
	switch {
	case m.forgotten(c.Request):
		return m.expired()
	case f != nil && f.External && !op.Adopt:
		d := m.refuse(fsm.ExternallyFenced)
		d.MaxToken, d.EnforcedBy = f.MaxToken, f.Enforced
		return d
	case f != nil && f.External && f.MaxToken > fsm.MaxAdopted:
		d := m.refuse(fsm.LimitExceeded)
		d.Bound = fsm.MaxAdopted
		return d
	}
	w := &fsm.Waiter{
		Resource: op.Resource, RequestID: c.Request.ID, Fingerprint: c.Request.Fingerprint, Holder: op.Holder,
		LeaseID: op.LeaseID, TTLMs: op.TTLMs, DeadlineMs: m.header.ClockMs + op.WaitMs, Mode: op.Mode, Adopt: op.Adopt, Node: op.Node,
	}
	inLine := slices.ContainsFunc(m.waiters, func(one *fsm.Waiter) bool { return overlaps(one.Resource, op.Resource) })
	switch blocked := inLine || m.heldBy(op.Resource) != nil; {
	case blocked && op.WaitMs == 0:
		return m.lockHeld(op.Resource)
	case blocked:
		m.header.Revision++
		w.Order = m.header.Revision
		m.waiters = append(m.waiters, w)
		return m.place(w)
	}
	if newest, ok := m.continuous(op.Resource, op.IfToken); !ok {
		d := m.refuse(fsm.StaleOwner)
		d.Token, d.Issued = op.IfToken, newest
		d.MaxToken, d.EnforcedBy = m.enforced(op.Resource)
		return d
	}
	return m.grant(*w, op.IfToken)
}

func (m *model) place(w *fsm.Waiter) fsm.Decision {
	return fsm.Decision{
		Outcome: fsm.OutcomeWaiting, Code: fsm.Waiting, Revision: w.Order, Ahead: m.ahead(w),
		Holder: w.Holder, TTLMs: w.TTLMs, Mode: w.Mode, DeadlineMs: w.DeadlineMs, RemainingMs: w.DeadlineMs - m.header.ClockMs,
	}
}

// waitOn is an acquire whose request waits already.
func (m *model) waitOn(op *fsm.Acquire, w *fsm.Waiter) fsm.Decision {
	if op.WaitMs == 0 {
		m.header.Revision++
		m.leave(w, fsm.Withdrawn)
		m.wake()
		return m.lockHeld(op.Resource)
	}
	w.DeadlineMs = m.header.ClockMs + op.WaitMs
	return m.place(w)
}

// continuous reports whether nobody held any part of resource since token, and
// the newest token issued there.
func (m *model) continuous(resource string, token uint64) (uint64, bool) {
	if token == 0 {
		return 0, true
	}
	var newest, here uint64
	for _, f := range m.covering(resource) {
		newest = max(newest, f.Issued)
	}
	if f := m.fences[resource]; f != nil {
		here = f.Issued
		newest = max(newest, f.Under)
	}
	return newest, here == token && newest == token
}

func (m *model) renew(c *fsm.Command, op *fsm.Renew) fsm.Decision {
	f := m.fences[op.Resource]
	if f == nil || f.Lock == nil || f.Lock.LeaseID != op.LeaseID {
		return m.notHolder(op.Resource)
	}
	d := fsm.Decision{Outcome: fsm.OutcomeReplayed, Code: fsm.Renewed}
	if f.Lock.RenewID != c.Request.ID {
		d.Outcome = fsm.OutcomeApplied
		m.header.Revision++
		ttl := op.TTLMs
		if ttl == 0 {
			ttl = f.Lock.TTLMs
		}
		f.Lock.TTLMs = ttl
		f.Lock.DeadlineMs = max(f.Lock.DeadlineMs, m.header.ClockMs+ttl)
		f.Lock.RenewID, f.Lock.RenewTTLMs, f.Lock.RenewDeadlineMs = c.Request.ID, ttl, f.Lock.DeadlineMs
	}
	d.Revision = m.header.Revision
	d.Token, d.Holder, d.LeaseID, d.Mode, d.Issued = f.Lock.Token, f.Lock.Holder, f.Lock.LeaseID, f.Lock.Mode, f.Issued
	d.TTLMs, d.DeadlineMs = f.Lock.RenewTTLMs, f.Lock.RenewDeadlineMs
	d.RemainingMs = d.DeadlineMs - m.header.ClockMs
	d.MaxToken = m.fences[op.Resource].MaxToken
	return d
}

// administer is what release, revoke, require and purge share: the request rule
// before them and the record after them.
func (m *model) administer(c *fsm.Command, act func() fsm.Decision) fsm.Decision {
	record, code := m.known(c.Op, c.Request)
	switch {
	case code != "":
		return m.refuse(code)
	case record != nil:
		d := m.answer(record)
		if f := m.fences[scopeOf(c.Op)]; f != nil && c.Op.Kind() != fsm.KindPurge {
			d.MaxToken, d.Issued = f.MaxToken, f.Issued
		}
		if a := m.absents[scopeOf(c.Op)]; a != nil && c.Op.Kind() == fsm.KindPurge {
			d.MaxToken = a.Floor
		}
		return d
	case m.forgotten(c.Request):
		return m.expired()
	}
	d := act()
	if d.Outcome == fsm.OutcomeRefused {
		return d
	}
	d.Outcome, d.Code, d.Revision = fsm.OutcomeApplied, codes[c.Op.Kind()], m.header.Revision
	more := &fsm.RecordMore{Holder: d.Holder, Mode: d.Mode, Count: d.Count}
	m.remember(c.Op, c.Request, fsm.Record{Verdict: fsm.VerdictApplied, Token: d.Token, More: more})
	return d
}

func (m *model) release(c *fsm.Command, op *fsm.Release) fsm.Decision {
	return m.administer(c, func() fsm.Decision {
		f := m.fences[op.Resource]
		if f == nil || f.Lock == nil || f.Lock.LeaseID != op.LeaseID {
			return m.notHolder(op.Resource)
		}
		m.header.Revision++
		d := fsm.Decision{Token: f.Lock.Token, Holder: f.Lock.Holder, Mode: f.Lock.Mode, Issued: f.Issued}
		for i := range f.Issues {
			if f.Issues[i].Token == f.Lock.Token {
				f.Issues[i].Retired = true
			}
		}
		f.Lock = nil
		d.MaxToken = m.fences[op.Resource].MaxToken
		return d
	})
}

func (m *model) withdraw(c *fsm.Command, op *fsm.Withdraw) fsm.Decision {
	if w := m.waiting(op.Resource, c.Request.ID); w != nil {
		m.header.Revision++
		m.leave(w, fsm.Withdrawn)
	}
	return fsm.Decision{Outcome: fsm.OutcomeApplied, Code: fsm.Withdrawn, Revision: m.header.Revision}
}

func (m *model) revoke(c *fsm.Command, op *fsm.Revoke) fsm.Decision {
	return m.administer(c, func() fsm.Decision {
		f := m.fences[op.Resource]
		if f == nil || !f.External && f.Issued == 0 {
			return m.refuse(fsm.LockNotFound)
		}
		m.header.Revision++
		var d fsm.Decision
		if f.Lock != nil {
			d.Token, d.Holder, d.Mode = f.Lock.Token, f.Lock.Holder, f.Lock.Mode
			f.Lock = nil
		}
		past := f.Issued + 1
		if f.External {
			past = f.MaxToken + 1
		}
		m.enforce(f, past, d.Holder, c.Request.ID, fsm.CauseRevoke)
		d.Issued = f.Issued
		d.MaxToken = m.fences[op.Resource].MaxToken
		return d
	})
}

func (m *model) require(c *fsm.Command, op *fsm.Require) fsm.Decision {
	return m.administer(c, func() fsm.Decision {
		m.header.Revision++
		if m.fences[op.Resource] == nil {
			m.begin(op.Resource)
		}
		m.fences[op.Resource].Required = true
		d := fsm.Decision{Issued: m.fences[op.Resource].Issued}
		d.MaxToken = m.fences[op.Resource].MaxToken
		return d
	})
}

func (m *model) seal(c *fsm.Command, op *fsm.Seal) fsm.Decision {
	if record := m.record(op.Scope, c.Request.ID); record != nil {
		return m.answer(record)
	}
	if w := m.waiting(op.Scope, c.Request.ID); w != nil {
		m.header.Revision++
		m.leave(w, fsm.Withdrawn)
		m.wake()
	}
	if m.forgotten(c.Request) {
		return m.expired()
	}
	m.header.Revision++
	m.remember(op, c.Request, fsm.Record{Verdict: fsm.VerdictSealed})
	return fsm.Decision{Outcome: fsm.OutcomeApplied, Code: fsm.Sealed, Revision: m.header.Revision}
}

// purge drops what no live holder needs.
func (m *model) purge(c *fsm.Command, op *fsm.Purge) fsm.Decision {
	return m.administer(c, func() fsm.Decision {
		m.header.Revision++
		lowest := uint64(fsm.MaxNumber)
		for resource, f := range m.fences {
			if f.Lock != nil && strings.HasPrefix(resource, op.Prefix) {
				lowest = min(lowest, f.Lock.Token)
			}
		}
		keys := slices.Collect(maps.Keys(m.entries))
		keys = slices.AppendSeq(keys, maps.Keys(m.fences))
		slices.Sort(keys)
		var d fsm.Decision
		var floor uint64
		for _, key := range slices.Compact(keys) {
			if strings.HasSuffix(key, "/") || !strings.HasPrefix(key, op.Prefix) {
				continue
			}
			e, f := m.entries[key], m.fences[key]
			if e != nil && !e.Now.Deleted || slices.ContainsFunc(m.waiters, func(w *fsm.Waiter) bool { return w.Resource == key }) {
				continue
			}
			if f != nil {
				left := f.MaxToken
				if f.Issued > 0 {
					left = max(left, f.Issued+1)
				}
				if f.External || f.Lock != nil || left > lowest {
					continue
				}
				floor = max(floor, left)
			}
			delete(m.entries, key)
			delete(m.fences, key)
			d.Count++
		}
		if floor > 0 {
			m.leaveFloor(op.Prefix, floor, c.Request.ID)
		}
		if a := m.absents[op.Prefix]; a != nil {
			d.MaxToken = a.Floor
		}
		return d
	})
}

func (m *model) leaveFloor(prefix string, floor uint64, id string) {
	a := m.absents[prefix]
	if a == nil {
		a = &fsm.Absent{Prefix: prefix}
		m.absents[prefix] = a
	}
	if floor <= a.Floor {
		return
	}
	a.Floor = floor
	a.Set = &fsm.Enforcement{
		Resource: prefix, Token: floor, RequestID: id,
		Revision: m.header.Revision, ClockMs: m.header.ClockMs, WallMs: m.wallMs, Cause: fsm.CausePurge,
	}
}
