package fsm

// Kind tells the operations apart. The numbers stand in the log and in
// snapshots: a number, once given, keeps its meaning for ever.
type Kind uint8

// The kinds of operation.
const (
	KindPut          Kind = 1
	KindDelete       Kind = 2
	KindTxn          Kind = 3
	KindAcquire      Kind = 4
	KindRenew        Kind = 5
	KindRelease      Kind = 6
	KindWithdraw     Kind = 7
	KindRevoke       Kind = 8
	KindRequire      Kind = 9
	KindPurge        Kind = 10
	KindSeal         Kind = 11
	KindTick         Kind = 12
	KindConfigure    Kind = 13
	KindSetMember    Kind = 14
	KindRemoveMember Kind = 15
	KindFound        Kind = 16
	KindCheck        Kind = 17 // only inside a transaction
)

var kindNames = [...]string{
	KindPut: "put", KindDelete: "delete", KindTxn: "txn", KindAcquire: "acquire",
	KindRenew: "renew", KindRelease: "release", KindWithdraw: "withdraw",
	KindRevoke: "revoke", KindRequire: "require", KindPurge: "purge",
	KindSeal: "seal", KindTick: "tick", KindConfigure: "configure",
	KindSetMember: "set_member", KindRemoveMember: "remove_member",
	KindFound: "found", KindCheck: "check",
}

// String returns the kind as it stands in JSON and metrics.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Stamp is what the leader puts on a command in the moment it proposes it.
// Term is the leader's; a command that was appended in another term moves no
// clock, because the leader's reckoning of time starts anew with each term.
type Stamp struct {
	Term    uint64
	ClockMs int64 // cluster clock
	WallMs  int64 // wall clock in Unix milliseconds; only ever shown
}

// Request identifies one logical operation of a client.
type Request struct {
	ID          string
	Base        uint64 // store revision the caller had seen when it first sent this request
	HasBase     bool
	Fingerprint [32]byte // of the operation; see Fingerprint
	Author      string
	Reason      string
}

// Command is one Raft log entry of the store.
type Command struct {
	Stamp   Stamp
	Request Request
	Op      Op
}

// NewCommand returns op as a command of request r, with its fingerprint.
func NewCommand(r Request, op Op) *Command {
	r.Fingerprint = Fingerprint(op)
	return &Command{Request: r, Op: op}
}

// Op is one of the operation types of this package; the set is closed.
type Op interface{ Kind() Kind }

// Condition is the expected state of a key.
type Condition struct {
	Revision uint64 // the key must be at this revision, when not 0
	Absent   bool   // the key must not exist
	Exists   bool   // the key must exist, at whatever revision
}

// Put writes a value.
type Put struct {
	Key         string
	Value       []byte
	ContentType string
	If          Condition
	Token       uint64 // 0 for none
	Sequence    uint64 // 0 for none; needs a token
}

// Delete leaves a tombstone.
type Delete struct {
	Key      string
	If       Condition
	Token    uint64
	Sequence uint64
}

// Check is a transaction's precondition on a key it does not write.
type Check struct {
	Key string
	If  Condition
}

// Txn applies all its operations or none. Resource is the scope of its request
// ID. Each key it writes must pass the token rule with one of Tokens.
type Txn struct {
	Resource string
	Tokens   []uint64
	Ops      []Op // *Put, *Delete and *Check, each key at most once
}

// Acquire asks for a lock. LeaseID is made by the proposer.
type Acquire struct {
	Resource string
	Holder   string
	LeaseID  string
	Node     string // node whose caller waits
	TTLMs    int64
	WaitMs   int64 // 0 does not wait
	Mode     Mode
	Adopt    bool   // continue above the tokens of an external issuer
	IfToken  uint64 // grant only if nobody held the resource since this token; 0 for no condition
}

// Renew moves the deadline of a lease. TTLMs 0 repeats the lease's own.
type Renew struct {
	Resource string
	LeaseID  string
	TTLMs    int64
}

// Release gives a lease up and retires its token.
type Release struct {
	Resource string
	LeaseID  string
}

// Withdraw takes the request's waiting acquire out of the queue. A grant it
// already got stays.
type Withdraw struct{ Resource string }

// Revoke frees a resource and raises its maxToken past every token issued.
type Revoke struct{ Resource string }

// Require makes a resource refuse writes without a token before its first lock.
type Require struct{ Resource string }

// Purge drops fences and tombstones of deleted, unlocked keys under a prefix.
type Purge struct{ Prefix string }

// Seal records that the request's ID shall never apply in Scope, unless it has.
type Seal struct{ Scope string }

// Tick lets the cluster clock move when nothing else does.
type Tick struct{}

// Configure replaces the settings.
type Configure struct{ Settings Settings }

// SetMember puts a node on record.
type SetMember struct{ Member Member }

// RemoveMember takes a node off the record.
type RemoveMember struct{ Name string }

// Found gives a new store its cluster ID; a store that has one keeps it.
type Found struct{ ClusterID string }

// Kind returns KindPut.
func (*Put) Kind() Kind { return KindPut }

// Kind returns KindDelete.
func (*Delete) Kind() Kind { return KindDelete }

// Kind returns KindCheck.
func (*Check) Kind() Kind { return KindCheck }

// Kind returns KindTxn.
func (*Txn) Kind() Kind { return KindTxn }

// Kind returns KindAcquire.
func (*Acquire) Kind() Kind { return KindAcquire }

// Kind returns KindRenew.
func (*Renew) Kind() Kind { return KindRenew }

// Kind returns KindRelease.
func (*Release) Kind() Kind { return KindRelease }

// Kind returns KindWithdraw.
func (*Withdraw) Kind() Kind { return KindWithdraw }

// Kind returns KindRevoke.
func (*Revoke) Kind() Kind { return KindRevoke }

// Kind returns KindRequire.
func (*Require) Kind() Kind { return KindRequire }

// Kind returns KindPurge.
func (*Purge) Kind() Kind { return KindPurge }

// Kind returns KindSeal.
func (*Seal) Kind() Kind { return KindSeal }

// Kind returns KindTick.
func (*Tick) Kind() Kind { return KindTick }

// Kind returns KindConfigure.
func (*Configure) Kind() Kind { return KindConfigure }

// Kind returns KindSetMember.
func (*SetMember) Kind() Kind { return KindSetMember }

// Kind returns KindRemoveMember.
func (*RemoveMember) Kind() Kind { return KindRemoveMember }

// Kind returns KindFound.
func (*Found) Kind() Kind { return KindFound }

// Scope returns what the request ID of op is unique within: the key, or the
// resource of the lock or transaction; empty for operations without requests.
func Scope(op Op) string {
	switch op := op.(type) {
	case *Put:
		return op.Key
	case *Delete:
		return op.Key
	case *Txn:
		return op.Resource
	case *Acquire:
		return op.Resource
	case *Renew:
		return op.Resource
	case *Release:
		return op.Resource
	case *Withdraw:
		return op.Resource
	case *Revoke:
		return op.Resource
	case *Require:
		return op.Resource
	case *Purge:
		return op.Prefix
	case *Seal:
		return op.Scope
	}
	return ""
}
