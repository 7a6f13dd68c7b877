package fsm

// Outcome says what a committed command did.
type Outcome uint8

// The outcomes. OutcomeWaiting is not final: the request stands in a queue and
// a later command decides it. Their numbers are part of the snapshot format.
const (
	OutcomeApplied  Outcome = 1
	OutcomeReplayed Outcome = 2
	OutcomeRefused  Outcome = 3
	OutcomeWaiting  Outcome = 4
)

var outcomeNames = [...]string{
	OutcomeApplied: "applied", OutcomeReplayed: "replayed",
	OutcomeRefused: "refused", OutcomeWaiting: "waiting",
}

// String returns the outcome as it stands in JSON.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return ""
}

// Decision is the only output of Apply. The HTTP answer, the evidence line, the
// stored request record and the metric label are all made from it. Which facts
// are set depends on Code; a zero fact is an absent one.
type Decision struct {
	Op          Kind
	Outcome     Outcome
	Code        Code
	Resource    string // scope of the request: the key, or the lock's or transaction's resource
	Key         string // the key that decided, when it is not Resource itself
	RequestID   string
	Fingerprint [32]byte
	Revision    uint64 // of the change, as recorded; for a refusal the store's revision when it was made
	ClockMs     int64  // cluster clock
	WallMs      int64  // leader's wall clock in Unix milliseconds; only ever shown

	// Writes.
	Version  uint64
	Created  bool
	Versions []uint64 // of a transaction's keys, in order; 0 for a check
	FailedOp int64    // place of the operation that refused a transaction

	// Tokens.
	Token      uint64 // presented, or granted
	MaxToken   uint64 // enforced on the resource after the decision
	Issued     uint64
	EnforcedBy *Enforcement // what refused the token
	Applied    *Applied     // a stale holder's request did apply, earlier

	// Locks.
	Holder      string
	LeaseID     string // only for the request that got it; never in the evidence
	TTLMs       int64
	DeadlineMs  int64 // point of the cluster clock
	RemainingMs int64
	Mode        Mode
	Continuity  bool
	Ahead       int64 // waiters before this one

	// Other facts of refusals.
	Current  uint64 // revision of the key whose precondition failed, 0 when it does not exist
	Expected uint64 // sequence number that would apply
	Horizon  uint64 // requests first sent below this revision may have been forgotten
	Limit    string // name of the exceeded limit
	Bound    int64  // its value

	// Purges.
	Count     uint64
	Remaining bool
}

// Applied tells a fenced-out caller the fate of its earlier write.
type Applied struct {
	Revision uint64
	Version  uint64
	Token    uint64
}

// Event is one line of the evidence log: a decision that was not a plain
// accepted write, or what the passing of time did to a lock.
type Event struct {
	Seq      uint64 // rises by one with each event, for ever
	Index    uint64 // Raft index of the command that made it
	Decision *Decision
}

// Member is a node on record.
type Member struct {
	Name        string
	ServerID    string // Raft server ID: name, "-", instance ID
	HTTPAddress string // base URL, e.g. http://127.0.0.1:8700
	RaftAddress string // host:port
	Build       string // version of its binary
	Format      uint64 // highest command format it can apply
}
