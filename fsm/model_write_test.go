package fsm_test

import (
	"slices"
	"strings"

	"github.com/fencekv/fencekv/fsm"
)

// change is a put, or a delete when put is nil.
type change struct {
	put      *fsm.Put
	key      string
	want     fsm.Condition
	token    uint64
	sequence uint64
}

// pass is a token that passed the token rule of a key: the resource it was
// issued for, or the key when it comes from outside. The zero pass is that of a
// key nothing fences.
type pass struct {
	token    uint64
	resource string
	holder   string
}

// prefixesOf returns the prefixes of a resource that end in a slash, shortest
// first, without the resource itself.
func prefixesOf(resource string) []string {
	var all []string
	for i := range resource {
		if resource[i] == '/' && i < len(resource)-1 {
			all = append(all, resource[:i+1])
		}
	}
	return all
}

// covering returns the fences of the prefixes of key and of key itself.
func (m *model) covering(key string) []*fsm.Fence {
	var all []*fsm.Fence
	for _, one := range append(prefixesOf(key), key) {
		if f := m.fences[one]; f != nil {
			all = append(all, f)
		}
	}
	return all
}

// overhead returns the absent floors that count for key.
func (m *model) overhead(key string) []*fsm.Absent {
	var all []*fsm.Absent
	if m.fences[key] != nil {
		return nil
	}
	for _, one := range prefixesOf(key) {
		if a := m.absents[one]; a != nil {
			all = append(all, a)
		}
	}
	return all
}

// enforced returns E of a key and its evidence.
func (m *model) enforced(key string) (uint64, *fsm.Enforcement) {
	e, by := m.header.Floor, m.header.FloorSet
	for _, a := range m.overhead(key) {
		if a.Floor > 0 && a.Floor >= e {
			e, by = a.Floor, a.Set
		}
	}
	for _, f := range m.covering(key) {
		if f.MaxToken > 0 && f.MaxToken >= e {
			e, by = f.MaxToken, f.Enforced
		}
	}
	return e, by
}

// fenced reports whether a write to key needs a token.
func (m *model) fenced(key string) bool {
	return len(m.covering(key)) > 0 || len(m.overhead(key)) > 0
}

// tokenRule is rule 1.
func (m *model) tokenRule(key string, token uint64) (pass, fsm.Code) {
	e, _ := m.enforced(key)
	fences := m.covering(key)
	switch {
	case token == 0 && m.fenced(key):
		return pass{}, fsm.TokenRequired
	case token == 0:
		return pass{}, ""
	case token < e:
		return pass{}, fsm.StaleOwner
	case len(fences) == 0 && (m.fenced(key) || !m.header.Settings.ExternalTokens):
		return pass{}, fsm.TokenNotIssued
	case !slices.ContainsFunc(fences, func(f *fsm.Fence) bool { return !f.External }):
		return pass{token, key, ""}, ""
	}
	code := fsm.TokenNotIssued
	for _, f := range fences {
		for _, issue := range f.Issues {
			if f.External || issue.Token != token {
				continue
			}
			if !issue.Retired {
				return pass{token, f.Resource, issue.Holder}, ""
			}
			code = fsm.TokenRetired
		}
	}
	return pass{}, code
}

// refuseToken says why a token did not pass.
func (m *model) refuseToken(c *fsm.Command, key string, token uint64, code fsm.Code) fsm.Decision {
	d := m.refuse(code)
	d.Token = token
	d.MaxToken, d.EnforcedBy = m.enforced(key)
	record, problem := m.known(c.Op, c.Request)
	if code == fsm.StaleOwner && record != nil && problem == "" && record.Verdict == fsm.VerdictApplied {
		d.Applied = &fsm.Applied{Revision: record.Revision, Version: record.Version, Token: record.Token}
	}
	return d
}

// write is a put or delete of its own.
func (m *model) write(c *fsm.Command, w change) fsm.Decision {
	p, code := m.tokenRule(w.key, w.token)
	if code != "" {
		return m.refuseToken(c, w.key, w.token, code)
	}
	record, code := m.known(c.Op, c.Request)
	switch {
	case code != "":
		return m.presented(w, m.refuse(code))
	case record != nil:
		return m.replay(record, c.Request.ID, map[string]pass{w.key: p})
	case m.forgotten(c.Request):
		return m.presented(w, m.expired())
	}
	if d, decided := m.numbered(c, w, p); decided {
		return d
	}
	if code, current := m.condition(w.key, w.want, w.put == nil); code != "" {
		return m.presented(w, m.fail(c, code, current, w.key, 0))
	}
	if w.put != nil && int64(len(w.put.Value)) > m.header.Settings.MaxValue {
		d := m.refuse(fsm.LimitExceeded)
		d.Bound = m.header.Settings.MaxValue
		return m.presented(w, d)
	}
	m.header.Revision++
	v, created := m.store(c, w, p)
	m.raise(w.key, p, c.Request.ID)
	m.remember(c.Op, c.Request, fsm.Record{Verdict: fsm.VerdictApplied, Created: created, Version: v.Version, Token: w.token})
	if w.sequence > 0 {
		m.fences[p.resource].Sequence = &fsm.Sequence{
			Token: p.token, Number: w.sequence, Fingerprint: c.Request.Fingerprint,
			Key: w.key, Revision: v.Revision, Version: v.Version, Created: created,
		}
	}
	d := fsm.Decision{Outcome: fsm.OutcomeApplied, Code: codes[c.Op.Kind()], Revision: v.Revision, Version: v.Version, Created: created}
	return m.presented(w, d)
}

func (m *model) presented(w change, d fsm.Decision) fsm.Decision {
	if d.Token = w.token; w.token > 0 {
		d.MaxToken, _ = m.enforced(w.key)
	}
	return d
}

// replay answers from the record, after the newer tokens of a verdict that did
// apply were enforced.
func (m *model) replay(r *fsm.Record, id string, passes map[string]pass) fsm.Decision {
	d := m.answer(r)
	if r.Verdict != fsm.VerdictApplied {
		d.Outcome = fsm.OutcomeRefused
		return d
	}
	m.header.Revision++
	rose := false
	for key, p := range passes {
		rose = m.raise(key, p, id) || rose
	}
	if !rose {
		m.header.Revision--
	}
	if passes[scopeOfRecord(r)].token > 0 {
		d.MaxToken, _ = m.enforced(scopeOfRecord(r))
	}
	return d
}

func scopeOfRecord(r *fsm.Record) string {
	scope, _, _ := strings.Cut(r.Key, "\x00")
	return scope
}

// numbered is rule 3.
func (m *model) numbered(c *fsm.Command, w change, p pass) (fsm.Decision, bool) {
	if w.sequence == 0 {
		return fsm.Decision{}, false
	}
	expected := uint64(1)
	if f := m.fences[p.resource]; f != nil && f.Sequence != nil && f.Sequence.Token == w.token {
		s := f.Sequence
		expected = s.Number + 1
		if w.sequence == s.Number && s.Fingerprint == c.Request.Fingerprint {
			d := fsm.Decision{Outcome: fsm.OutcomeReplayed, Code: codes[c.Op.Kind()], Revision: s.Revision, Version: s.Version, Created: s.Created}
			return m.presented(w, d), true
		}
		if w.sequence == s.Number {
			d := m.refuse(fsm.RequestMismatch)
			d.Expected = expected
			return m.presented(w, d), true
		}
	}
	if w.sequence == expected {
		return fsm.Decision{}, false
	}
	d := m.refuse(fsm.SequencePassed)
	if w.sequence > expected {
		d.Code = fsm.SequenceGap
	}
	d.Expected = expected
	return m.presented(w, d), true
}

// condition is rule 4: the code of what is wrong, and the key's revision.
func (m *model) condition(key string, want fsm.Condition, deletes bool) (fsm.Code, uint64) {
	var current uint64
	if e := m.entries[key]; e != nil && !e.Now.Deleted {
		current = e.Now.Revision
	}
	switch {
	case want.Absent && current != 0, want.Exists && current == 0, want.Revision != 0 && want.Revision != current:
		return fsm.RevisionMismatch, current
	case deletes && current == 0:
		return fsm.KeyNotFound, 0
	}
	return "", current
}

// fail is the refusal of a precondition, which is final for the request's ID.
func (m *model) fail(c *fsm.Command, code fsm.Code, current uint64, key string, place int64) fsm.Decision {
	verdict := fsm.VerdictRevisionMismatch
	if code == fsm.KeyNotFound {
		verdict = fsm.VerdictKeyNotFound
	}
	if c.Request.ID != "" {
		m.header.Revision++
	}
	m.remember(c.Op, c.Request, fsm.Record{
		Verdict: verdict, More: &fsm.RecordMore{Key: key, Current: current, FailedOp: place},
	})
	d := m.refuse(code)
	d.Key, d.Current, d.FailedOp = key, current, place
	return d
}

// store puts the value in place at the newest revision.
func (m *model) store(c *fsm.Command, w change, p pass) (*fsm.Value, bool) {
	v := &fsm.Value{
		Deleted: w.put == nil, Version: 1, Revision: m.header.Revision, Token: p.token, RequestID: c.Request.ID,
		Holder: p.holder, Author: c.Request.Author, Reason: c.Request.Reason, WallMs: m.wallMs,
	}
	if w.put != nil {
		v.Data, v.ContentType = slices.Clone(w.put.Value), w.put.ContentType
	}
	e := m.entries[w.key]
	if e == nil {
		m.entries[w.key] = &fsm.Entry{Key: w.key, CreateRevision: v.Revision, Now: v}
		return v, w.put != nil
	}
	created := e.Now.Deleted && w.put != nil
	v.Version = e.Now.Version + 1
	e.Earlier = append([]*fsm.Value{e.Now}, e.Earlier...)
	e.Earlier = e.Earlier[:min(int64(len(e.Earlier)), m.header.Settings.History)]
	e.Now = v
	if created {
		e.CreateRevision = v.Revision
	}
	return v, created
}

// raise enforces a token on the key and on the resource it was issued for, and
// reports whether anything rose.
func (m *model) raise(key string, p pass, id string) bool {
	if p.token == 0 {
		return false
	}
	if m.fences[key] == nil {
		m.fences[key] = &fsm.Fence{Resource: key, External: len(m.covering(key)) == 0}
	}
	rose := m.enforce(m.fences[key], p.token, p.holder, id, fsm.CauseWrite)
	return m.enforce(m.fences[p.resource], p.token, p.holder, id, fsm.CauseWrite) || rose
}

// enforce raises one fence, if it rises.
func (m *model) enforce(f *fsm.Fence, token uint64, holder, id string, cause fsm.Cause) bool {
	if token <= f.MaxToken {
		return false
	}
	m.settle(f, token, holder, id, cause)
	return true
}

// settle sets what is enforced, with fresh evidence, and drops the issues that
// fell below.
func (m *model) settle(f *fsm.Fence, token uint64, holder, id string, cause fsm.Cause) {
	f.MaxToken = token
	f.Enforced = &fsm.Enforcement{
		Resource: f.Resource, Token: token, Holder: holder, RequestID: id,
		Revision: m.header.Revision, ClockMs: m.header.ClockMs, WallMs: m.wallMs, Cause: cause,
	}
	f.Issues = slices.DeleteFunc(f.Issues, func(i fsm.Issue) bool { return i.Token < token })
}

// txn applies all of op's operations at one revision, or none.
func (m *model) txn(c *fsm.Command, op *fsm.Txn) fsm.Decision {
	passes := map[string]pass{}
	for i, one := range op.Ops {
		if _, check := one.(*fsm.Check); check {
			continue
		}
		key := scopeOf(one)
		p, token, code := m.choose(key, op.Tokens)
		if code != "" {
			d := m.refuseToken(c, key, token, code)
			d.Key, d.FailedOp = key, int64(i)
			return d
		}
		passes[key] = p
	}
	record, code := m.known(op, c.Request)
	switch {
	case code != "":
		return m.refuse(code)
	case record != nil:
		return m.replay(record, c.Request.ID, passes)
	case m.forgotten(c.Request):
		return m.expired()
	}
	for i, one := range op.Ops {
		key, want, deletes := conditionOf(one)
		if code, current := m.condition(key, want, deletes); code != "" {
			return m.fail(c, code, current, key, int64(i))
		}
	}
	for i, one := range op.Ops {
		if put, ok := one.(*fsm.Put); ok && int64(len(put.Value)) > m.header.Settings.MaxValue {
			d := m.refuse(fsm.LimitExceeded)
			d.Key, d.FailedOp, d.Bound = put.Key, int64(i), m.header.Settings.MaxValue
			return d
		}
	}
	m.header.Revision++
	versions := make([]uint64, len(op.Ops))
	for i, one := range op.Ops {
		key, _, _ := conditionOf(one)
		switch one := one.(type) {
		case *fsm.Put:
			v, _ := m.store(c, change{put: one, key: key}, passes[key])
			versions[i] = v.Version
		case *fsm.Delete:
			v, _ := m.store(c, change{key: key}, passes[key])
			versions[i] = v.Version
		}
	}
	for _, one := range op.Ops {
		if key, _, _ := conditionOf(one); passes[key].token != 0 {
			m.raise(key, passes[key], c.Request.ID)
		}
	}
	var highest uint64
	for _, p := range passes {
		highest = max(highest, p.token)
	}
	m.remember(op, c.Request, fsm.Record{Verdict: fsm.VerdictApplied, Token: highest, More: &fsm.RecordMore{Versions: versions}})
	return fsm.Decision{Outcome: fsm.OutcomeApplied, Code: fsm.Committed, Revision: m.header.Revision, Versions: versions}
}

func conditionOf(op fsm.Op) (key string, want fsm.Condition, deletes bool) {
	switch op := op.(type) {
	case *fsm.Put:
		return op.Key, op.If, false
	case *fsm.Delete:
		return op.Key, op.If, true
	case *fsm.Check:
		return op.Key, op.If, false
	}
	return "", fsm.Condition{}, false
}

// choose returns the first token of the list that passes on key, or the refusal
// of the highest.
func (m *model) choose(key string, tokens []uint64) (pass, uint64, fsm.Code) {
	if !m.fenced(key) {
		return pass{}, 0, ""
	}
	var highest uint64
	for _, token := range tokens {
		if p, code := m.tokenRule(key, token); code == "" {
			return p, token, ""
		}
		highest = max(highest, token)
	}
	_, code := m.tokenRule(key, highest)
	return pass{}, highest, code
}

// covers reports whether resource a is b or a prefix of it.
func covers(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/") && strings.HasPrefix(b, a)
}
