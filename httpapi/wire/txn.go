package wire

// Operations of a transaction.
const (
	OpPut    = "put"
	OpDelete = "delete"
	OpCheck  = "check"
)

// Txn asks for up to 128 operations, all or nothing.
type Txn struct {
	Resource string   `json:"resource"` // scope of the request ID
	Tokens   []uint64 `json:"tokens,omitempty"`
	Ops      []TxnOp  `json:"ops"`
}

// TxnOp is one operation; each key may stand once in a transaction. At most one
// of the conditions is given; a check needs one.
type TxnOp struct {
	Op          string  `json:"op"`
	Key         string  `json:"key"`
	IfRevision  *uint64 `json:"ifRevision,omitempty"` // the key is at this revision; 0 if it must not exist
	IfExists    *bool   `json:"ifExists,omitempty"`   // the key exists, or does not
	ContentType string  `json:"contentType,omitempty"`
	Value
}

// Committed answers an accepted transaction. All its keys got the revision.
type Committed struct {
	Resource string   `json:"resource"`
	Versions []uint64 `json:"versions"` // of the keys, in order; 0 for a check
	Receipt
}
