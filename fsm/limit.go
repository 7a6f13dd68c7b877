package fsm

// Bounds that are part of the replicated rules. They are the same on every node
// of every cluster; those an operator may set stand in Settings.
const (
	MaxKeyBytes         = 512     // bytes of a key or resource
	MaxRequestIDBytes   = 128     // bytes of a request ID
	MaxHolderBytes      = 256     // bytes of a holder's name
	MaxContentTypeBytes = 256     // bytes of a content type
	MaxReasonBytes      = 256     // bytes of a change reason or an author
	MaxValueBytes       = 1 << 20 // bytes of a value, whatever Settings.MaxValue says
	MaxTxnOps           = 128     // operations of one transaction
	MaxTxnBytes         = 4 << 20 // bytes of all values of one transaction
	MaxTokens           = 128     // tokens one transaction may carry

	MinTTLMs  = 1_000          // shortest lease, milliseconds
	MaxTTLMs  = 24 * 3_600_000 // longest lease, milliseconds
	MaxWaitMs = 24 * 3_600_000 // longest wait for a lock, milliseconds

	MaxIssues       = 8         // issued tokens that stay valid side by side on one resource
	MaxEvents       = 10_000    // length of the evidence ring
	MaxLocks        = 1_000_000 // locks held at one time
	MaxWaiters      = 10_000    // waiters of one resource
	MaxWaitersTotal = 100_000   // waiters of the whole store
	MaxMembers      = 64        // members on record
	MaxEarlierBytes = 1 << 20   // bytes of the earlier values kept for one key
	MaxPurge        = 10_000    // resources one purge command drops

	// maxDropped is how many request records one command may drop. Without it
	// the first write after an idle hour would drop a million at once and
	// stall every other write behind it. One command adds at most one record,
	// so the store always catches up; a record past its time but not yet
	// dropped only answers a resend a little longer than promised.
	maxDropped = 64
)

// Settings are the bounds an operator chooses. They decide outcomes, so they are
// part of the replicated state: the leader's flags become everybody's settings
// by a Configure command.
type Settings struct {
	RequestRetentionMs int64 // how long a request record is kept, milliseconds of cluster clock
	MaxRequests        int64 // most request records kept; the oldest go first
	History            int64 // earlier values kept per key; 0 keeps none
	MaxValue           int64 // bytes of a value, at most MaxValueBytes
	ExternalTokens     bool  // whether a key's first token may come from outside
}

// DefaultSettings returns the settings of a new store: records for 10 minutes
// and at most 1,000,000 of them, 8 earlier values, values up to 256 KiB, tokens
// from outside accepted.
func DefaultSettings() Settings {
	return Settings{
		RequestRetentionMs: 600_000,
		MaxRequests:        1_000_000,
		History:            8,
		MaxValue:           256 << 10,
		ExternalTokens:     true,
	}
}
