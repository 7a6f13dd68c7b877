package wire

// Cluster answers GET of the cluster, and every change of its members.
type Cluster struct {
	ClusterID string   `json:"clusterId"`
	Leader    string   `json:"leader,omitempty"` // name
	Term      uint64   `json:"term"`
	Members   []Member `json:"members"`
	Node      string   `json:"node"`
}

// Member is one node of the cluster.
type Member struct {
	Name        string `json:"name"`
	ServerID    string `json:"serverId"`
	HTTPAddress string `json:"httpAddress"`
	RaftAddress string `json:"raftAddress"`
	Build       string `json:"build,omitempty"`
	Voter       bool   `json:"voter"`
	Leader      bool   `json:"leader"`
}

// Transfer asks the leader to hand over.
type Transfer struct {
	To string `json:"to,omitempty"` // name of a voter; empty for any
}

// Status answers GET of one node's status: what this node knows by itself.
type Status struct {
	Name          string   `json:"name"`
	ServerID      string   `json:"serverId"`
	ClusterID     string   `json:"clusterId"`
	Role          string   `json:"role"`
	Build         string   `json:"build"`
	LogStore      string   `json:"logStore"`
	Term          uint64   `json:"term"`
	AppliedIndex  uint64   `json:"appliedIndex"`
	CommitIndex   uint64   `json:"commitIndex"`
	LastContactMs int64    `json:"lastContactMs"`
	LeaderName    string   `json:"leaderName,omitempty"`
	LeaderAddress string   `json:"leaderAddress,omitempty"`
	Revision      uint64   `json:"revision"`
	Token         uint64   `json:"token"` // newest issued, of any resource
	Floor         uint64   `json:"floor"` // tokens below are stale everywhere
	Epoch         uint64   `json:"epoch"`
	Horizon       uint64   `json:"horizon"`
	ClockMs       int64    `json:"clockMs"`
	Counts        Counts   `json:"counts"`
	Settings      Settings `json:"settings"`
	Limits        Limits   `json:"limits"`
}

// Counts say how much the store holds.
type Counts struct {
	Keys       int64 `json:"keys"`
	Tombstones int64 `json:"tombstones"`
	Fences     int64 `json:"fences"`
	Locks      int64 `json:"locks"`
	Waiters    int64 `json:"waiters"`
	Requests   int64 `json:"requests"`
	Events     int64 `json:"events"`
}

// Settings are the bounds the operator chose for the whole cluster.
type Settings struct {
	RequestRetentionMs int64 `json:"requestRetentionMs"`
	MaxRequests        int64 `json:"maxRequests"`
	History            int64 `json:"history"`
	MaxValue           int64 `json:"maxValue"` // bytes
	ExternalTokens     bool  `json:"externalTokens"`
}

// Limits are bounds nobody can change.
type Limits struct {
	MaxKeyBytes    int `json:"maxKeyBytes"`
	MaxValueBytes  int `json:"maxValueBytes"`
	MaxTxnOps      int `json:"maxTxnOps"`
	MaxTxnBytes    int `json:"maxTxnBytes"`
	MaxReasonBytes int `json:"maxReasonBytes"`
	MaxHolderBytes int `json:"maxHolderBytes"`
	MinTTLMs       int `json:"minTtlMs"`
	MaxTTLMs       int `json:"maxTtlMs"`
	MaxWaitMs      int `json:"maxWaitMs"`
	MaxPage        int `json:"maxPage"`
}
