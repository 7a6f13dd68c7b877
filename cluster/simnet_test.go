package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
)

// simNet is three real nodes in one process, on a network and a clock that the
// test owns. Stores live on over a crash, like disks on which every write was
// synced.
type simNet struct {
	t     *testing.T
	names []string

	mu    sync.Mutex
	cut   map[[2]string]bool                               // from, to
	rule  func(simMessage) (hold time.Duration, lost bool) // of a story, beside cut; nil for none
	slow  time.Duration                                    // upper bound of a message's delay
	rng   *rand.Rand
	nodes map[string]*simNode
}

type simNode struct {
	name      string
	identity  *cluster.Identity
	stores    *cluster.Stores
	transport *simTransport
	node      *cluster.Node // nil while crashed
}

// simMessage is a request or its answer; raft tells Raft's own from the calls
// between nodes beside it.
type simMessage struct {
	from, to     string
	raft, answer bool
}

var errCut = errors.New("network cut")

func newSimNet(t *testing.T, seed uint64, names ...string) *simNet {
	net := &simNet{
		t: t, names: names, cut: map[[2]string]bool{}, nodes: map[string]*simNode{},
		rng: rand.New(rand.NewPCG(seed, 1)), slow: 2 * time.Millisecond,
	}
	for i, name := range names {
		log := raft.NewInmemStore()
		net.nodes[name] = &simNode{
			name:     name,
			identity: &cluster.Identity{Name: name, InstanceID: fmt.Sprintf("%032d", i)},
			stores:   &cluster.Stores{Log: log, Stable: simStable{log}, Snapshots: raft.NewInmemSnapshotStore()},
		}
	}
	for _, name := range names {
		net.start(name)
	}
	return net
}

// simStable answers a missing key as the stores of a real node do.
type simStable struct{ *raft.InmemStore }

func (net *simNet) start(name string) {
	sim := net.nodes[name]
	expect := map[string]string{}
	for _, n := range net.names {
		expect[n] = n
	}
	_, inner := raft.NewInmemTransportWithTimeout(raft.ServerAddress(name), 500*time.Millisecond)
	transport := &simTransport{InmemTransport: inner, net: net, self: name}
	net.mu.Lock()
	sim.transport = transport
	for _, other := range net.nodes {
		if other.transport != nil {
			transport.Connect(raft.ServerAddress(other.name), other.transport.InmemTransport)
			other.transport.Connect(raft.ServerAddress(name), inner)
		}
	}
	net.mu.Unlock()
	settings := fsm.DefaultSettings()
	settings.History = 64
	settings.RequestRetentionMs = 3_600_000
	node, err := cluster.Start(cluster.Config{
		Identity: sim.identity, Stores: sim.stores, Raft: transport, Peers: simCaller{net, name},
		SaveClusterID: func(id string) error { sim.identity.ClusterID = id; return nil },
		HTTPAddress:   "http://" + name, RaftAddress: name, Build: "sim", Expect: expect,
		Greet: net.greet(name), Settings: &settings,
		SnapshotEntries: 64, SnapshotInterval: 5 * time.Second, TrailingEntries: 16,
	})
	if err != nil {
		net.t.Fatalf("start %s: %v", name, err)
	}
	net.mu.Lock()
	sim.node = node
	net.mu.Unlock()
}

// crash stops a node without any courtesy to the others.
func (net *simNet) crash(name string) {
	node := net.node(name)
	if node == nil {
		return
	}
	net.mu.Lock()
	net.nodes[name].node = nil
	net.mu.Unlock()
	node.Fail(errors.New("crashed"))
	_ = node.Close(context.Background())
}

func (net *simNet) close() {
	for _, name := range net.names {
		net.crash(name)
	}
	time.Sleep(5 * time.Second) // lets raft's last timers run out inside the bubble
}

func (net *simNet) node(name string) *cluster.Node {
	net.mu.Lock()
	defer net.mu.Unlock()
	return net.nodes[name].node
}

// isolate cuts a node off in both directions, or heals all.
func (net *simNet) isolate(name string) {
	net.mu.Lock()
	defer net.mu.Unlock()
	for _, other := range net.names {
		if other != name {
			net.cut[[2]string{name, other}] = true
			net.cut[[2]string{other, name}] = true
		}
	}
}

// cutOneWay loses what from sends to to, answers included.
func (net *simNet) cutOneWay(from, to string) {
	net.mu.Lock()
	defer net.mu.Unlock()
	net.cut[[2]string{from, to}] = true
}

func (net *simNet) heal() {
	net.mu.Lock()
	defer net.mu.Unlock()
	clear(net.cut)
}

// govern makes a story's rule the network's.
func (net *simNet) govern(rule func(simMessage) (time.Duration, bool)) {
	net.mu.Lock()
	defer net.mu.Unlock()
	net.rule = rule
}

// carry delivers one message, or loses it.
func (net *simNet) carry(m simMessage) error {
	net.mu.Lock()
	lost := net.cut[[2]string{m.from, m.to}]
	delay := time.Duration(net.rng.Int64N(int64(net.slow) + 1))
	if net.rule != nil {
		hold, loses := net.rule(m)
		delay, lost = delay+hold, lost || loses
	}
	net.mu.Unlock()
	if lost {
		return errCut
	}
	time.Sleep(delay)
	return nil
}

func (net *simNet) greet(from string) func(context.Context, string) (cluster.Hello, error) {
	return func(_ context.Context, to string) (cluster.Hello, error) {
		node := net.node(to)
		if err := errors.Join(net.carry(simMessage{from: from, to: to}), net.carry(simMessage{from: to, to: from, answer: true})); err != nil || node == nil {
			return cluster.Hello{}, errCut
		}
		return node.Hello(), nil
	}
}

// simCaller carries the calls between nodes beside Raft.
type simCaller struct {
	net  *simNet
	from string
}

func (c simCaller) Call(ctx context.Context, id raft.ServerID, addr raft.ServerAddress, method byte, payload []byte) ([]byte, error) {
	to := string(addr)
	if err := c.net.carry(simMessage{from: c.from, to: to}); err != nil {
		return nil, &cluster.NotSentError{Err: err}
	}
	node := c.net.node(to)
	if node == nil || node.Hello().ServerID != string(id) {
		return nil, &cluster.NotSentError{Err: errCut}
	}
	from := c.net.nodes[c.from].identity.ServerID()
	reply, err := node.ServePeer(ctx, from, method, payload)
	if lost := c.net.carry(simMessage{from: to, to: c.from, answer: true}); lost != nil {
		return nil, &cluster.LostError{Err: lost}
	}
	if err != nil {
		return nil, &cluster.RemoteError{Text: err.Error()}
	}
	return reply, nil
}

// simTransport is Raft's in-memory transport with the network's faults.
type simTransport struct {
	*raft.InmemTransport
	net  *simNet
	self string
}

func (s *simTransport) call(to raft.ServerAddress, send func() error) error {
	if err := s.net.carry(simMessage{from: s.self, to: string(to), raft: true}); err != nil {
		return err
	}
	if err := send(); err != nil {
		return err
	}
	return s.net.carry(simMessage{from: string(to), to: s.self, raft: true, answer: true})
}

func (s *simTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func (s *simTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
	return s.call(to, func() error { return s.InmemTransport.AppendEntries(id, to, q, a) })
}

func (s *simTransport) RequestVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestVoteRequest, a *raft.RequestVoteResponse) error {
	return s.call(to, func() error { return s.InmemTransport.RequestVote(id, to, q, a) })
}

func (s *simTransport) RequestPreVote(id raft.ServerID, to raft.ServerAddress, q *raft.RequestPreVoteRequest, a *raft.RequestPreVoteResponse) error {
	return s.call(to, func() error { return s.InmemTransport.RequestPreVote(id, to, q, a) })
}

func (s *simTransport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, q *raft.InstallSnapshotRequest, a *raft.InstallSnapshotResponse, data io.Reader) error {
	return s.call(to, func() error { return s.InmemTransport.InstallSnapshot(id, to, q, a, data) })
}

func (s *simTransport) TimeoutNow(id raft.ServerID, to raft.ServerAddress, q *raft.TimeoutNowRequest, a *raft.TimeoutNowResponse) error {
	return s.call(to, func() error { return s.InmemTransport.TimeoutNow(id, to, q, a) })
}
