package wire

// Headers of requests. Each may stand at most once in a request; numbers are
// canonical decimal (ParseNumber).
const (
	HeaderToken          = "Fence-Token"     // fencing token of a write
	HeaderIdempotencyKey = "Idempotency-Key" // request ID, plain or as an RFC 8941 string (ParseRequestID)
	HeaderRequestID      = "Request-Id"      // the same under another name; never both
	HeaderRequestBase    = "Request-Base"    // store revision seen when the request was first sent
	HeaderSequence       = "Fence-Sequence"  // order inside one token
	HeaderIfMatch        = "If-Match"        // "<revision>" of the key, or * for a key that exists
	HeaderIfNoneMatch    = "If-None-Match"   // * for a key that does not exist; on a read "<revision>" already known
	HeaderReason         = "Change-Reason"   // kept in the history, at most 256 bytes
)

// Headers of answers. HeaderToken stands in both: there the token a write
// presents, here the token of the key's last write.
const (
	HeaderOutcome         = "Fence-Outcome"           // on the answer to every mutation; see Outcome
	HeaderETag            = "ETag"                    // the key's revision as a strong tag
	HeaderRevision        = "Fence-Revision"          // revision of the change, or of the store that was read
	HeaderVersion         = "Fence-Version"           // writes to the key, counted
	HeaderMaxToken        = "Fence-Max-Token"         // token enforced now
	HeaderReplayed        = "Idempotency-Replayed"    // true if the answer was recorded earlier
	HeaderRequestWindowMs = "Fence-Request-Window-Ms" // how long the answer stays recorded, ms of cluster clock
	HeaderAgeMs           = "Fence-Age-Ms"            // on a stale read: ms since the leader was last heard
	HeaderLeader          = "Fencekv-Leader"          // base URL of the leader: where to go next time
	HeaderNode            = "Fencekv-Node"            // name of the node that answered
)

// HeaderForwarded marks a request one node passes to another and names the
// first. A node that gets it and does not lead answers no_leader instead of
// passing it on: no request goes round in circles.
const HeaderForwarded = "Fencekv-Forwarded"

// Content types of answers.
const (
	TypeJSON    = "application/json"
	TypeProblem = "application/problem+json" // RFC 9457
	TypeBytes   = "application/octet-stream" // a value written without a content type
)

// Outcome says what became of a mutation.
type Outcome string

// The outcomes. The header tells them all apart; in a body a refusal is
// not_applied and a replay is applied with replayed set.
const (
	Applied    Outcome = "applied"     // it took effect
	Replayed   Outcome = "replayed"    // it took effect earlier, under the same request ID
	Refused    Outcome = "refused"     // decided against by the store; nothing changed
	NotApplied Outcome = "not_applied" // it never reached the store; safe to send again
	Unknown    Outcome = "unknown"     // it may or may not take effect; resend under the same request ID, ask or seal
)
