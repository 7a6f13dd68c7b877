package wire

// States of a request.
const (
	RequestApplied = "applied"
	RequestRefused = "refused" // for good; Code says why
	RequestSealed  = "sealed"  // it shall never apply
	RequestWaiting = "waiting" // in the queue of a lock
)

// Fate answers what became of a request, and a seal of it.
type Fate struct {
	Scope       string   `json:"scope"`
	RequestID   string   `json:"requestId"`
	State       string   `json:"state"`
	Op          string   `json:"op,omitempty"`
	Code        Code     `json:"code,omitempty"` // of a refusal
	Fingerprint string   `json:"fingerprint,omitempty"`
	Revision    uint64   `json:"revision,omitempty"`
	Version     uint64   `json:"version,omitempty"`
	Created     bool     `json:"created,omitempty"`
	Versions    []uint64 `json:"versions,omitempty"`
	Token       uint64   `json:"token,omitempty"`
	Holder      string   `json:"holder,omitempty"`
	Key         string   `json:"key,omitempty"`
	Current     *uint64  `json:"currentRevision,omitempty"` // then, of the key whose precondition failed
	RemainingMs int64    `json:"remainingMs,omitempty"`     // until the record may be dropped, or the wait is over
	Read
}
