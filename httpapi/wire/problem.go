package wire

// Problem is the body of every answer that is not a success: RFC 9457 with the
// code, the outcome and the facts that decided it.
type Problem struct {
	Type    string  `json:"type"` // path of a page about the code, on every node
	Title   string  `json:"title"`
	Status  int     `json:"status"`
	Detail  string  `json:"detail"`
	Code    Code    `json:"code"`
	Outcome Outcome `json:"outcome"` // not_applied or unknown; on a read not_applied says nothing
	Field   string  `json:"field,omitempty"`
	Facts
	Node string `json:"node"`
}

// Error returns the code and the detail, so that a *Problem is an error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// Facts are what decided: those of a refusal, or of a line of the evidence log.
// A zero fact is an absent one, except Current, where 0 means that the key does
// not exist. Names are those of the JSON; numbers are revisions, tokens or
// milliseconds as the name says.
type Facts struct {
	Resource    string       `json:"resource,omitempty"` // scope of the request: a key, or the resource of a lock or transaction
	Key         string       `json:"key,omitempty"`      // the key that decided, when it is not Resource itself
	Token       uint64       `json:"token,omitempty"`    // presented, granted, or of the lock in the way
	MaxToken    uint64       `json:"maxToken,omitempty"`
	EnforcedBy  *Enforcement `json:"enforcedBy,omitempty"`
	Issued      uint64       `json:"issued,omitempty"` // newest token issued for the resource
	RequestID   string       `json:"requestId,omitempty"`
	Fingerprint string       `json:"fingerprint,omitempty"` // SHA-256 of what was asked, hexadecimal
	Applied     *AppliedAt   `json:"applied,omitempty"`     // the fenced-out caller's request did apply, earlier
	FailedOp    *int64       `json:"failedOp,omitempty"`    // place of the operation that refused a transaction, from 0

	Holder      string `json:"holder,omitempty"` // who holds the lock now, or held it
	Fence       string `json:"fence,omitempty"`  // mode of the grant: issue or write
	TTLMs       int64  `json:"ttlMs,omitempty"`
	RemainingMs int64  `json:"remainingMs,omitempty"` // of the holder's lease
	Ahead       int64  `json:"ahead,omitempty"`       // waiters before this one
	Continuity  bool   `json:"continuity,omitempty"`

	Current  *uint64 `json:"currentRevision,omitempty"`  // of the key whose precondition failed
	Expected uint64  `json:"expectedSequence,omitempty"` // the number that would apply
	Horizon  uint64  `json:"horizon,omitempty"`          // requests first sent below this revision may have been forgotten
	Limit    string  `json:"limit,omitempty"`            // name of the exceeded limit
	Bound    int64   `json:"bound,omitempty"`            // its value

	Count     uint64 `json:"count,omitempty"`     // resources a purge dropped
	Remaining bool   `json:"remaining,omitempty"` // a purge's bound left some

	Version  uint64 `json:"version,omitempty"`
	Revision uint64 `json:"revision,omitempty"` // of the change; for a refusal the store's when it was decided
	ClockMs  int64  `json:"clockMs,omitempty"`  // cluster clock
	At       string `json:"at,omitempty"`
}

// Enforcement is the evidence for a maxToken: who raised it, by which request,
// when and at which revision.
type Enforcement struct {
	Resource  string `json:"resource"` // where it is enforced; a refused key may be covered by it
	Holder    string `json:"holder,omitempty"`
	Token     uint64 `json:"token"`
	At        string `json:"at,omitempty"`
	Revision  uint64 `json:"revision"`
	RequestID string `json:"requestId,omitempty"`
	Cause     string `json:"cause"` // issue, write, revoke, displace, restore or purge
}

// AppliedAt tells a fenced-out caller the fate of its earlier write.
type AppliedAt struct {
	Revision uint64 `json:"revision"`
	Version  uint64 `json:"version,omitempty"`
	Token    uint64 `json:"token,omitempty"`
}
