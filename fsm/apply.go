package fsm

import "fmt"

// Position is where a command stands in the Raft log.
type Position struct{ Index, Term uint64 }

// Apply returns the state after command c, committed at position at, and what
// was decided. s is unchanged. The command must be valid in the sense of
// Validate; it panics on an operation type that is none of this package.
func (s *State) Apply(at Position, c *Command) (*State, Decision) {
	b := s.Begin()
	d := b.Apply(at, c)
	return b.State(), d
}

// Batch applies commands one after the other to trees of its own. The result is
// the same as applying each to a State; it only copies less. It belongs to one
// goroutine at a time.
type Batch struct {
	s   *State
	at  Position
	cmd *Command

	// Of the command's request, empty without an ID. What is kept of the ID is
	// part of the key, so that the store keeps its bytes once.
	key string // Record.Key
	id  string
}

// Begin starts a batch on s, which stays unchanged.
func (s *State) Begin() *Batch { return &Batch{s: s.derive()} }

// State returns the state after what was applied so far, in constant time. The
// batch may go on; what it then changes it copies first.
func (b *Batch) State() *State {
	done := b.s
	b.s = done.derive()
	return done
}

// Head returns what is small of the state after what was applied so far.
func (b *Batch) Head() Head {
	deadline, _ := b.s.NextDeadline()
	return Head{
		Index: b.s.index, ClockMs: b.s.clockMs, Deadline: deadline, EventSeq: b.s.eventSeq,
		Settings: b.s.settings, ClusterID: b.s.clusterID, members: b.s.members.Copy(),
	}
}

// Apply applies one more command.
func (b *Batch) Apply(at Position, c *Command) Decision {
	b.at, b.cmd = at, c
	b.key, b.id = "", ""
	if id := c.Request.ID; id != "" {
		b.key = recordKey(Scope(c.Op), id)
		b.id = b.key[len(b.key)-len(id):]
	}
	b.s.index = at.Index
	if c.Stamp.Term == at.Term {
		b.s.clockMs = max(b.s.clockMs, c.Stamp.ClockMs)
	}
	b.expire()
	b.forget()
	d := b.decide(c.Op)
	d.Op = c.Op.Kind()
	d.Resource = Scope(c.Op)
	d.RequestID = c.Request.ID
	d.Fingerprint = c.Request.Fingerprint
	d.ClockMs = b.s.clockMs
	d.WallMs = c.Stamp.WallMs
	if d.Outcome == OutcomeRefused {
		b.evidence(d)
	}
	return d
}

func (b *Batch) decide(op Op) Decision {
	switch op := op.(type) {
	case *Put, *Delete:
		return b.write(op)
	case *Txn:
		return b.txn(op)
	case *Acquire:
		return b.acquire(op)
	case *Renew:
		return b.renew(op)
	case *Release:
		return b.release(op)
	case *Withdraw:
		return b.withdraw(op)
	case *Revoke:
		return b.revoke(op)
	case *Require:
		return b.require(op)
	case *Purge:
		return b.purge(op)
	case *Seal:
		return b.seal(op)
	case *Tick:
		return Decision{Outcome: OutcomeApplied, Code: Ticked, Revision: b.s.revision}
	case *Configure:
		b.s.settings = op.Settings
	case *SetMember:
		return b.setMember(op)
	case *RemoveMember:
		b.s.members.Delete(op.Name)
	case *Found:
		if b.s.clusterID == "" {
			b.s.clusterID = op.ClusterID
		}
	default:
		panic(fmt.Sprintf("fsm: cannot apply operation %T", op))
	}
	return Decision{Outcome: OutcomeApplied, Code: Recorded, Revision: b.s.revision}
}

func (b *Batch) setMember(op *SetMember) Decision {
	if b.s.members.Len() >= MaxMembers && b.s.Member(op.Member.Name) == nil {
		return b.limit("members", MaxMembers)
	}
	m := op.Member
	b.s.members.Set(m.Name, &m)
	return Decision{Outcome: OutcomeApplied, Code: Recorded, Revision: b.s.revision}
}

// expire ends what the clock has passed, in the order of the deadlines.
func (b *Batch) expire() {
	for {
		d, ok := b.s.deadlines.Min()
		if !ok || d.atMs > b.s.clockMs {
			return
		}
		if d.request == "" {
			b.expireLease(d.resource)
		} else {
			b.endWait(b.s.Waiter(d.resource, d.request), WaitOver)
		}
	}
}

// forget drops request records that are past their time or above the cap.
func (b *Batch) forget() {
	for range maxDropped {
		revision, oldest, ok := b.s.byAge.Min()
		if !ok {
			return
		}
		due := oldest.AtMs+b.s.settings.RequestRetentionMs <= b.s.clockMs
		if !due && int64(b.s.records.len()) <= b.s.settings.MaxRequests {
			return
		}
		b.s.byAge.Delete(revision)
		b.s.records.remove(oldest.Key)
		b.s.horizon = revision
	}
}

func (b *Batch) nextRevision() uint64 {
	b.s.revision++
	return b.s.revision
}

func (b *Batch) refuse(code Code) Decision {
	return Decision{Outcome: OutcomeRefused, Code: code, Revision: b.s.revision}
}

func (b *Batch) limit(name string, bound int64) Decision {
	d := b.refuse(LimitExceeded)
	d.Limit, d.Bound = name, bound
	return d
}

// full refuses when the numbers are used up. One command takes at most a few
// revisions for itself; the margin covers what expires ahead of it.
func (b *Batch) full() (Decision, bool) {
	const margin = 1_000_000
	if b.s.revision > MaxNumber-margin || b.s.token > MaxNumber-margin {
		return b.limit("number", MaxNumber), true
	}
	return Decision{}, false
}

// evidence adds d to the ring. The copy has no lease ID: whoever reads the
// evidence must not be able to renew or release.
func (b *Batch) evidence(d Decision) {
	d.LeaseID = ""
	b.s.eventSeq++
	b.s.events.Set(b.s.eventSeq, &Event{Seq: b.s.eventSeq, Index: b.at.Index, Decision: &d})
	if b.s.events.Len() > MaxEvents {
		b.s.events.PopMin()
	}
}

// lockEvent adds what happened to a lock, which is not always what the command
// asked for: a release may grant to the next, time may end a lease.
func (b *Batch) lockEvent(d Decision) {
	d.Outcome = OutcomeApplied
	d.ClockMs = b.s.clockMs
	d.WallMs = b.cmd.Stamp.WallMs
	b.evidence(d)
}
