package fsm

import "strings"

// Verdict is the final outcome a request record keeps.
type Verdict uint8

// The verdicts. Their numbers are part of the snapshot format.
const (
	VerdictApplied          Verdict = 1
	VerdictRevisionMismatch Verdict = 2
	VerdictKeyNotFound      Verdict = 3
	VerdictSealed           Verdict = 4
)

// Record is the memory of one request ID: enough to answer every resend as the
// first was answered. Records are kept for Settings.RequestRetentionMs and at
// most Settings.MaxRequests of them; a million are held in memory, so the
// struct is small and what only locks and transactions need is apart.
type Record struct {
	Key         string // scope, NUL, request ID; neither part can hold a NUL
	Op          Kind
	Verdict     Verdict
	Created     bool
	Fingerprint [32]byte
	Revision    uint64 // unique: every recorded verdict takes a revision of its own
	Version     uint64
	Token       uint64
	AtMs        int64 // cluster clock when recorded
	More        *RecordMore
}

// RecordMore is what the record of a lock command, a transaction or a refusal
// keeps beyond that of a write.
type RecordMore struct {
	LeaseID    string
	Holder     string
	TTLMs      int64
	DeadlineMs int64
	Mode       Mode
	Continuity bool
	Key        string   // key whose precondition failed
	Current    uint64   // that key's revision then
	FailedOp   int64    // its place in the transaction
	Versions   []uint64 // of a transaction's keys, in order; 0 for a check
	Count      uint64   // resources a purge dropped
	Remaining  bool     // whether a purge left some for another command
}

func recordKey(scope, id string) string { return scope + "\x00" + id }

// Scope returns what the request ID is unique within: the key, or the resource
// of the lock or transaction.
func (r *Record) Scope() string {
	scope, _, _ := strings.Cut(r.Key, "\x00")
	return scope
}

// RequestID returns the request's ID.
func (r *Record) RequestID() string {
	_, id, _ := strings.Cut(r.Key, "\x00")
	return id
}
