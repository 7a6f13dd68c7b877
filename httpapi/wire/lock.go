package wire

// Acquire asks for a lock.
type Acquire struct {
	Holder  string `json:"holder"`            // name shown to others, 1 to 256 bytes
	TTLMs   int64  `json:"ttlMs"`             // 1 second to 24 hours
	WaitMs  int64  `json:"waitMs,omitempty"`  // up to 24 hours; 0 does not wait
	Fence   string `json:"fence,omitempty"`   // issue (default) or write: when the previous holder is shut out
	Adopt   bool   `json:"adopt,omitempty"`   // continue above the tokens of an external issuer
	IfToken uint64 `json:"ifToken,omitempty"` // only if nobody held the resource since this token
}

// Granted answers an acquire. Whoever knows the lease ID may renew and release;
// it is told to this request only.
type Granted struct {
	Resource    string `json:"resource"`
	Holder      string `json:"holder"`
	Token       uint64 `json:"token"`
	LeaseID     string `json:"leaseId"`
	TTLMs       int64  `json:"ttlMs"`
	RemainingMs int64  `json:"remainingMs"` // counted when the answer was decided
	Fence       string `json:"fence"`
	MaxToken    uint64 `json:"maxToken"`
	Continuity  bool   `json:"continuity,omitempty"`
	Receipt
}

// Renew asks for a new deadline of a lease.
type Renew struct {
	LeaseID string `json:"leaseId"`
	TTLMs   int64  `json:"ttlMs,omitempty"` // 0 repeats the lease's own
}

// Renewed answers a renew.
type Renewed struct {
	Resource    string `json:"resource"`
	Holder      string `json:"holder,omitempty"`
	Token       uint64 `json:"token"`
	TTLMs       int64  `json:"ttlMs"`
	RemainingMs int64  `json:"remainingMs"`
	MaxToken    uint64 `json:"maxToken,omitempty"`
	Receipt
}

// Release gives a lease up and retires its token.
type Release struct {
	LeaseID string `json:"leaseId"`
}

// Changed answers release, revoke and require.
type Changed struct {
	Resource string `json:"resource"`
	Code     string `json:"code"` // released, revoked or required
	Holder   string `json:"holder,omitempty"`
	Token    uint64 `json:"token,omitempty"` // of the lease that ended
	MaxToken uint64 `json:"maxToken,omitempty"`
	Receipt
}

// Purged answers a purge.
type Purged struct {
	Prefix    string `json:"prefix"`
	Count     uint64 `json:"count"`     // resources dropped
	Remaining bool   `json:"remaining"` // the bound of one command left some: purge again
	Receipt
}

// Lock describes one resource: who holds it, and its tokens, issued and
// enforced apart. A lease ID never stands in it.
type Lock struct {
	Resource    string       `json:"resource"`
	Held        bool         `json:"held"`
	Holder      string       `json:"holder,omitempty"`
	Token       uint64       `json:"token,omitempty"` // of the lease
	Fence       string       `json:"fence,omitempty"`
	TTLMs       int64        `json:"ttlMs,omitempty"`
	RemainingMs int64        `json:"remainingMs,omitempty"`
	GrantedAt   string       `json:"grantedAt,omitempty"`
	RequestID   string       `json:"requestId,omitempty"` // of the acquire
	Issued      uint64       `json:"issued"`
	MaxToken    uint64       `json:"maxToken"` // enforced here, a covering prefix's not counted
	EnforcedBy  *Enforcement `json:"enforcedBy,omitempty"`
	Issuer      string       `json:"issuer"` // internal or external
	Required    bool         `json:"required,omitempty"`
	Waiting     int          `json:"waiting"`
}

// LockDetail answers GET of one lock.
type LockDetail struct {
	Lock
	Tokens   []IssuedToken `json:"tokens"`   // that may still be presented, or were retired
	Waiters  []Waiter      `json:"waiters"`  // the next to be served first, at most MaxPage
	Refusals []Decision    `json:"refusals"` // the newest first, at most 20
	Read
}

// IssuedToken is a token issued for a resource and not below its maxToken.
type IssuedToken struct {
	Token   uint64 `json:"token"`
	Holder  string `json:"holder,omitempty"`
	Retired bool   `json:"retired,omitempty"`
}

// Waiter stands in the queue of a resource.
type Waiter struct {
	Holder      string `json:"holder"`
	RequestID   string `json:"requestId"`
	TTLMs       int64  `json:"ttlMs"`
	RemainingMs int64  `json:"remainingMs"` // of the wait
	Fence       string `json:"fence"`
	Node        string `json:"node,omitempty"` // whose caller waits
}

// Locks answers GET of the locks held under a prefix, in order of resource.
type Locks struct {
	Locks []Lock `json:"locks"`
	Next  string `json:"next,omitempty"`
	Read
}
