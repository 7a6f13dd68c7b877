package wire

// Code names a decision or an error. Codes are stable: programs may branch on
// them. CodeInfo says what each means.
type Code string

// Codes the store decides: refusals, each final for what it was asked at the
// moment of its revision.
const (
	CodeStaleOwner       Code = "stale_owner"
	CodeTokenRequired    Code = "token_required"
	CodeTokenNotIssued   Code = "token_not_issued"
	CodeTokenRetired     Code = "token_retired"
	CodeRequestMismatch  Code = "request_mismatch"
	CodeRequestSealed    Code = "request_sealed"
	CodeRequestExpired   Code = "request_expired"
	CodeSequenceGap      Code = "sequence_gap"
	CodeSequencePassed   Code = "sequence_passed"
	CodeRevisionMismatch Code = "revision_mismatch"
	CodeKeyNotFound      Code = "key_not_found"
	CodeLimitExceeded    Code = "limit_exceeded"
	CodeLockHeld         Code = "lock_held"
	CodeLockNotFound     Code = "lock_not_found"
	CodeNotHolder        Code = "not_holder"
	CodeExternallyFenced Code = "externally_fenced"
)

// Codes a node answers without asking the store.
const (
	CodeInvalidRequest     Code = "invalid_request"
	CodeUnauthenticated    Code = "unauthenticated"
	CodeForbidden          Code = "forbidden"
	CodeRequestNotFound    Code = "request_not_found"
	CodeMemberNotFound     Code = "member_not_found"
	CodeRouteNotFound      Code = "route_not_found"
	CodeMethodNotAllowed   Code = "method_not_allowed"
	CodeClusterConflict    Code = "cluster_conflict"
	CodeCompacted          Code = "compacted"
	CodeRemovedFromCluster Code = "removed_from_cluster"
	CodeTooLarge           Code = "too_large"
	CodeUnsupportedMedia   Code = "unsupported_media"
	CodeWrongHost          Code = "wrong_host"
	CodeTooManyRequests    Code = "too_many_requests"
	CodeInternal           Code = "internal"
	CodeNoLeader           Code = "no_leader"
	CodeNotReady           Code = "not_ready"
	CodeOverloaded         Code = "overloaded"
	CodeRestoring          Code = "restoring"
	CodeOutcomeUnknown     Code = "outcome_unknown"
	CodeStorageLow         Code = "storage_low"
)

// CodeInfo is what follows from a code everywhere: in HTTP, on the command line
// and for whoever reads it.
type CodeInfo struct {
	Code   Code
	Status int    // HTTP status
	Exit   int    // exit code of the command line
	Title  string // a few words
	Text   string // what happened, what did not, and the cure
}

// Codes returns the whole table in order of status.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes...) }

// Lookup returns the row of code. An unknown code gets the row of internal.
func Lookup(code Code) (CodeInfo, bool) {
	for _, info := range codes {
		if info.Code == code {
			return info, true
		}
	}
	info, _ := Lookup(CodeInternal)
	return info, false
}
