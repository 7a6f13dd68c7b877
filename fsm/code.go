package fsm

// Code names a decision. Codes are the stable vocabulary of the API: they stand
// in problem bodies, metrics and the evidence log, and httpapi/wire has the one
// table from code to HTTP status, exit code and text.
type Code string

// Codes of refusals.
const (
	StaleOwner       Code = "stale_owner"
	TokenRequired    Code = "token_required"
	TokenNotIssued   Code = "token_not_issued"
	TokenRetired     Code = "token_retired"
	RequestMismatch  Code = "request_mismatch"
	RequestSealed    Code = "request_sealed"
	RequestExpired   Code = "request_expired"
	SequenceGap      Code = "sequence_gap"
	SequencePassed   Code = "sequence_passed"
	RevisionMismatch Code = "revision_mismatch"
	KeyNotFound      Code = "key_not_found"
	LimitExceeded    Code = "limit_exceeded"
	LockHeld         Code = "lock_held"
	LockNotFound     Code = "lock_not_found"
	NotHolder        Code = "not_holder"
	ExternallyFenced Code = "externally_fenced"
)

// Codes of what happened otherwise. Written is the plain accepted write; the
// others also stand in the evidence log.
const (
	Written   Code = "written"
	Deleted   Code = "deleted"
	Committed Code = "committed" // a transaction
	Granted   Code = "granted"
	Waiting   Code = "waiting"
	WaitOver  Code = "wait_over"
	Withdrawn Code = "withdrawn"
	Renewed   Code = "renewed"
	Released  Code = "released"
	Expired   Code = "expired"
	Revoked   Code = "revoked"
	Required  Code = "required"
	Purged    Code = "purged"
	Sealed    Code = "sealed"
	Ticked    Code = "ticked"
	Recorded  Code = "recorded" // settings, members, the cluster's ID
)

// RefusalCodes lists every code a refusal can carry.
func RefusalCodes() []Code {
	return []Code{
		StaleOwner, TokenRequired, TokenNotIssued, TokenRetired,
		RequestMismatch, RequestSealed, RequestExpired,
		SequenceGap, SequencePassed, RevisionMismatch, KeyNotFound,
		LimitExceeded, LockHeld, LockNotFound, NotHolder, ExternallyFenced,
	}
}
