package fsm

// cover is what the token rule knows of a key: every fence that covers it and
// the token enforced by all of them together.
type cover struct {
	enforced uint64
	by       *Enforcement
	issued   uint64
	fences   []*Fence // of the prefixes, shortest first, and of the key itself last
	absent   bool     // an absent floor counts: the key was fenced before a purge
}

func (s *State) cover(resource string) cover {
	c := cover{enforced: s.floor, by: s.floorSet}
	var room [8]*Fence
	c.fences = room[:0]
	covering(resource, func(r string) bool {
		if f, ok := s.fences.Get(r); ok {
			c.fences = append(c.fences, f)
		}
		return true
	})
	if s.absents.Len() > 0 && (len(c.fences) == 0 || c.fences[len(c.fences)-1].Resource != resource) {
		covering(resource, func(r string) bool {
			if a, ok := s.absents.Get(r); ok && r != resource {
				c.absent = true
				c.raise(a.Floor, a.Set)
			}
			return true
		})
	}
	for _, f := range c.fences {
		c.issued = max(c.issued, f.Issued)
		if f.MaxToken > 0 {
			c.raise(f.MaxToken, f.Enforced)
		}
	}
	return c
}

// raise takes the more specific evidence of two equal tokens.
func (c *cover) raise(token uint64, by *Enforcement) {
	if token >= c.enforced {
		c.enforced, c.by = token, by
	}
}

func (c *cover) fenced() bool { return len(c.fences) > 0 || c.absent }

// judge is rule 1. It returns the resource the token was issued for (the key
// itself for a token from outside, empty for no token) or the refusal.
func (c *cover) judge(key string, token uint64, external bool) (home string, refusal Code) {
	if token == 0 {
		if c.fenced() {
			return "", TokenRequired
		}
		return "", ""
	}
	if token < c.enforced {
		return "", StaleOwner
	}
	internal, retired := false, false
	for _, f := range c.fences {
		if f.External {
			continue
		}
		internal = true
		if issue, ok := f.issue(token); ok && !issue.Retired {
			return f.Resource, ""
		} else if ok {
			retired = true
		}
	}
	switch {
	case retired:
		return "", TokenRetired
	case internal:
		return "", TokenNotIssued
	case len(c.fences) == 0 && (c.absent || !external):
		return "", TokenNotIssued
	}
	return key, ""
}

func (f *Fence) issue(token uint64) (Issue, bool) {
	if f != nil {
		for _, issue := range f.Issues {
			if issue.Token == token {
				return issue, true
			}
		}
	}
	return Issue{}, false
}

func (b *Batch) refuseToken(code Code, c *cover, token uint64, scope string) Decision {
	d := b.refuse(code)
	d.Token, d.MaxToken, d.Issued, d.EnforcedBy = token, c.enforced, c.issued, c.by
	if code != StaleOwner || b.id == "" {
		return d
	}
	r := b.s.Record(scope, b.id)
	if r != nil && r.Verdict == VerdictApplied && r.Fingerprint == b.cmd.Request.Fingerprint {
		d.Applied = &Applied{Revision: r.Revision, Version: r.Version, Token: r.Token}
	}
	return d
}

// raising is one raise of a token's write, on the key and on the token's home.
type raising struct {
	token    uint64
	home     string
	key      string
	holder   string // of the token
	revision uint64
}

func (s *State) raising(token uint64, home, key string) raising {
	issue, _ := s.Fence(home).issue(token)
	return raising{token: token, home: home, key: key, holder: issue.Holder}
}

// rises reports whether anything would change.
func (s *State) rises(r raising) bool {
	if r.token == 0 {
		return false
	}
	key, home := s.Fence(r.key), s.Fence(r.home)
	return key == nil || key.MaxToken < r.token || home == nil || home.MaxToken < r.token
}

// raise makes the token of an applied write the maxToken of the key and of the
// resource it was issued for.
func (b *Batch) raise(r raising) {
	if !b.s.rises(r) {
		return
	}
	e := b.enforcement(r.token, r.holder, CauseWrite, r.revision)
	external := b.s.Fence(r.home) == nil
	b.raiseFence(r.home, e, external)
	b.raiseFence(r.key, e, external)
}

func (b *Batch) raiseFence(resource string, e Enforcement, external bool) {
	next := Fence{Resource: resource, External: external}
	if f := b.s.Fence(resource); f != nil {
		if f.MaxToken >= e.Token {
			return
		}
		next = *f
	}
	e.Resource = resource
	next.enforce(&e)
	b.setFence(&next)
}

// enforce raises the maxToken of a fence under construction and drops the
// issues it makes stale.
func (f *Fence) enforce(e *Enforcement) {
	f.MaxToken, f.Enforced = e.Token, e
	keep := 0
	for keep < len(f.Issues) && f.Issues[keep].Token < e.Token {
		keep++
	}
	f.Issues = f.Issues[keep:len(f.Issues):len(f.Issues)]
}

func (b *Batch) enforcement(token uint64, holder string, cause Cause, revision uint64) Enforcement {
	return Enforcement{
		Token: token, Holder: holder, RequestID: b.id, Revision: revision,
		ClockMs: b.s.clockMs, WallMs: b.cmd.Stamp.WallMs, Cause: cause,
	}
}

// fence returns a copy of the resource's fence to change, or the beginning of
// one. What a purge left enforced on a key goes on in the fence that takes the
// place of the floor: else a token that was refused would be good again.
func (b *Batch) fence(resource string) Fence {
	if f := b.s.Fence(resource); f != nil {
		return *f
	}
	f := Fence{Resource: resource}
	if c := b.s.cover(resource); c.absent && !isPrefix(resource) {
		f.MaxToken, f.Enforced = c.enforced, c.by
	}
	return f
}

func (b *Batch) setFence(f *Fence) {
	b.s.fences.Set(f.Resource, f)
	if f.Lock != nil {
		b.s.held.Set(f.Resource, f)
	}
}
