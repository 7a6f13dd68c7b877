package wire

// Decision is one line of the evidence log: a refusal, or what happened to a
// lock, with all the facts.
type Decision struct {
	Seq     uint64  `json:"seq"`   // rises by one with each line, for ever
	Index   uint64  `json:"index"` // Raft index of the command
	Op      string  `json:"op"`
	Code    Code    `json:"code"`
	Outcome Outcome `json:"outcome"` // applied or refused
	Facts
}

// Decisions answers GET of the evidence log, oldest first.
type Decisions struct {
	Decisions []Decision `json:"decisions"`
	Next      uint64     `json:"next,omitempty"` // send it as after for the next page; absent on the last
	Oldest    uint64     `json:"oldest"`         // number of the oldest line kept, 0 for none; those before are gone
	Read
}
