package fsm

// Fence is what the store knows of the tokens of one resource: a key, or a
// prefix ending in "/". It outlives every lock on the resource. A Fence is never
// changed after it entered a State.
type Fence struct {
	Resource string
	MaxToken uint64 // highest token enforced here; a write with a lower one is refused
	Issued   uint64 // newest token issued for this resource; above MaxToken until its first write in mode write
	External bool   // tokens come from outside the store; any token not below MaxToken is good
	Required bool   // an administrator asked for tokens before the first lock

	// Under is the newest token issued for a resource under this prefix since
	// the fence exists. It lets an acquire with IfToken tell in constant time
	// that somebody held a part of the tree meanwhile.
	Under uint64

	Enforced *Enforcement // who raised MaxToken last; nil while MaxToken is 0
	Issues   []Issue      // tokens that may still be presented, or were retired at or above MaxToken; rising, at most MaxIssues
	Sequence *Sequence    // nil until a write carries a sequence number
	Lock     *Lock        // nil while nobody holds the resource
}

// Issue is a token this store issued for a resource.
type Issue struct {
	Token   uint64
	Holder  string
	Retired bool // given up by release: refused although not below MaxToken
}

// Cause says which event raised a maxToken.
type Cause uint8

// The causes. Their numbers are part of the snapshot format.
const (
	CauseIssue    Cause = 1 // a grant in mode issue
	CauseWrite    Cause = 2 // the first write with a newer token
	CauseRevoke   Cause = 3 // an administrator's revoke
	CauseDisplace Cause = 4 // a ninth token issued in mode write
	CauseRestore  Cause = 5 // the first token of a new epoch
	CausePurge    Cause = 6 // the absent floor a purge left
)

var causeNames = [...]string{
	CauseIssue: "issue", CauseWrite: "write", CauseRevoke: "revoke",
	CauseDisplace: "displace", CauseRestore: "restore", CausePurge: "purge",
}

// String returns the cause as it stands in JSON.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return ""
}

// Enforcement is the evidence for a maxToken: who raised it, by which request,
// when and at which revision.
type Enforcement struct {
	Resource  string // where it is enforced; a refused key may be covered by it
	Token     uint64
	Holder    string
	RequestID string
	Revision  uint64
	ClockMs   int64 // cluster clock
	WallMs    int64 // leader's wall clock in Unix milliseconds; only ever shown
	Cause     Cause
}

// Sequence is the newest numbered write of one token: exactly-once and in order
// at constant memory.
type Sequence struct {
	Token       uint64
	Number      uint64
	Fingerprint [32]byte
	Key         string
	Revision    uint64
	Version     uint64
	Created     bool
}

// Mode says when a grant shuts the previous holder out.
type Mode uint8

// The modes of a grant.
const (
	ModeIssue Mode = 0 // maxToken rises with the grant itself
	ModeWrite Mode = 1 // maxToken rises with the new holder's first write
)

// String returns the mode as it stands in JSON.
func (m Mode) String() string {
	if m == ModeWrite {
		return "write"
	}
	return "issue"
}

// Lock is a held resource. DeadlineMs is a point of the cluster clock.
type Lock struct {
	Holder     string
	LeaseID    string // unguessable; whoever knows it may renew and release
	RequestID  string // the acquire that got it
	Token      uint64
	Mode       Mode
	TTLMs      int64
	DeadlineMs int64
	GrantedMs  int64
	WallMs     int64 // of the grant; only ever shown

	// The newest renewal, so that a resend of it gets the same answer. One per
	// lease and not a request record: heartbeats would crowd out the records
	// of writes.
	RenewID         string
	RenewTTLMs      int64
	RenewDeadlineMs int64
}

// Waiter is an acquire in the queue of a resource. Order is the revision at
// which it joined; lower is served first.
type Waiter struct {
	Resource    string
	Order       uint64
	RequestID   string
	Fingerprint [32]byte
	Holder      string
	LeaseID     string // the lease's ID once granted
	TTLMs       int64
	DeadlineMs  int64 // point of the cluster clock at which the wait is over
	Mode        Mode
	Adopt       bool
	Node        string // node whose caller waits
}

// Absent is the floor a purge left on a prefix. It counts only for resources
// under it that have no Fence of their own.
type Absent struct {
	Prefix string
	Floor  uint64 // tokens below are refused
	Set    *Enforcement
}
