package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
)

// Options are what an operator decides about a node of its own process.
type Options struct {
	Name          string // lower-case letters, digits and dashes
	Dir           string // data directory
	HTTPAddress   string // base URL on which clients and nodes reach this node
	RaftBind      string // host:port to listen on for nodes
	RaftAdvertise string // host:port others dial; default RaftBind
	LogStore      string // LogStoreWAL (default) or LogStoreBolt

	Expect map[string]string // see Config
	Join   string            // see Config

	Settings         *fsm.Settings // see Config
	RTT              time.Duration // see Config
	SnapshotEntries  uint64        // see Config
	SnapshotInterval time.Duration // see Config

	Greet   func(ctx context.Context, url string) (Hello, error)                 // see Config
	AskJoin func(ctx context.Context, url string, joiner Joiner) (Joined, error) // see Config

	Build  string
	Logger hclog.Logger
}

// Process is a node with its stores and its port.
type Process struct {
	*Node
	stores *Stores
	port   *Port
	peers  *Peers
}

// Open runs a node on a data directory and a TCP port. A directory that is not
// fit to vote (damaged, half wiped, another node's) is an error that says what
// to do.
func Open(o Options) (*Process, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.LogStore == "" {
		o.LogStore = LogStoreWAL
	}
	identity, err := LoadOrCreateIdentity(o.Dir, o.Name)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	// A store may fail before the node exists, and the port may be dialed.
	var node atomic.Pointer[Node]
	early := make(chan error, 1)
	p := &Process{}
	p.stores, err = OpenStores(StoreConfig{
		Dir: o.Dir, LogStore: o.LogStore, Logger: o.Logger.Named("stores"),
		Fatal: func(err error) {
			early <- err
			if n := node.Load(); n != nil {
				n.Fail(err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	p.port, err = ListenPort(PortConfig{
		Bind: o.RaftBind, Advertise: o.RaftAdvertise, Self: identity.ServerID(), Logger: o.Logger.Named("port"),
		ClusterID: func() string {
			if n := node.Load(); n != nil {
				return n.ClusterID()
			}
			return ""
		},
		Allow:   func(id raft.ServerID) bool { n := node.Load(); return n != nil && n.Expects(id) },
		Handler: lateHandler{&node},
	})
	if err != nil {
		return nil, errors.Join(err, p.stores.Close())
	}
	p.peers = NewPeers(p.port, 2*time.Second)
	p.Node, err = Start(Config{
		Identity: identity, Stores: p.stores, Raft: p.port.RaftTransport(10 * time.Second), Peers: p.peers,
		SaveClusterID: func(id string) error { return identity.SetClusterID(o.Dir, id) },
		HTTPAddress:   o.HTTPAddress, RaftAddress: p.port.Addr().String(), Build: o.Build, LogStore: o.LogStore,
		Expect: o.Expect, Join: o.Join, Greet: o.Greet, AskJoin: o.AskJoin, Settings: o.Settings, RTT: o.RTT,
		SnapshotEntries: o.SnapshotEntries, SnapshotInterval: o.SnapshotInterval, Logger: o.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, p.peers.Close(), p.port.Close(), p.stores.Close())
	}
	node.Store(p.Node)
	select {
	case err := <-early:
		p.Fail(err)
	default:
	}
	return p, nil
}

// lateHandler answers calls once the node exists.
type lateHandler struct{ node *atomic.Pointer[Node] }

// ServePeer passes the call on.
func (h lateHandler) ServePeer(ctx context.Context, from raft.ServerID, method byte, payload []byte) ([]byte, error) {
	n := h.node.Load()
	if n == nil {
		return nil, &Error{Reason: NotReady}
	}
	return n.ServePeer(ctx, from, method, payload)
}

// Close leaves in good order, see Node.Close, and then closes port and stores. It
// leaves the stores alone if Raft did not stop in time: they may be in use, on a
// disk that hangs.
func (p *Process) Close(ctx context.Context) error {
	stopped := p.Node.Close(ctx)
	err := errors.Join(stopped, p.peers.Close(), p.port.Close())
	if stopped != nil {
		return err
	}
	return errors.Join(err, within(ctx, p.stores.Close))
}
