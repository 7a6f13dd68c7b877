package cluster

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	handshakeLimit = 5 * time.Second // to finish a handshake
	maxHandshakes  = 64              // under way at one time; more are closed at once
)

// PortConfig says what a Port listens on and whom it lets in.
type PortConfig struct {
	Bind      string        // host:port to listen on; port 0 takes a free one
	Advertise string        // host:port others dial; default: what Bind came to
	Self      raft.ServerID // who answers here

	ClusterID func() string            // empty until the node has one; then nobody is let in
	Allow     func(raft.ServerID) bool // whether this node may speak to us
	Handler   PeerHandler              // answers calls

	Logger hclog.Logger // default: none
}

// Port is the one TCP port on which nodes reach a node: Raft's streams and the
// calls between nodes, told apart by the handshake.
type Port struct {
	cfg      PortConfig
	listener net.Listener
	address  net.Addr
	streams  chan net.Conn
	pending  chan struct{} // a place per handshake under way

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // everything accepted that Raft does not own
	closed chan struct{}
	once   sync.Once
	tasks  sync.WaitGroup
}

// ListenPort opens the port and begins to accept.
func ListenPort(cfg PortConfig) (*Port, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	listener, err := net.Listen("tcp", cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("listen for nodes: %w", err)
	}
	p := &Port{
		cfg: cfg, listener: listener, address: listener.Addr(),
		streams: make(chan net.Conn), pending: make(chan struct{}, maxHandshakes),
		conns: make(map[net.Conn]struct{}), closed: make(chan struct{}),
	}
	if cfg.Advertise != "" {
		if p.address, err = net.ResolveTCPAddr("tcp", cfg.Advertise); err != nil {
			return nil, errors.Join(fmt.Errorf("advertised address: %w", err), listener.Close())
		}
	}
	p.tasks.Add(1)
	go p.accept()
	return p, nil
}

// Addr returns the address others dial.
func (p *Port) Addr() net.Addr { return p.address }

// Close stops accepting and closes every connection that is not Raft's own.
func (p *Port) Close() error {
	var err error
	p.once.Do(func() {
		close(p.closed)
		err = p.listener.Close()
		p.mu.Lock()
		for conn := range p.conns {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.tasks.Wait()
	})
	return err
}

func (p *Port) accept() {
	defer p.tasks.Done()
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			select {
			case <-p.closed:
				return
			case <-time.After(50 * time.Millisecond): // out of descriptors, say
				continue
			}
		}
		select {
		case p.pending <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		if !p.own(conn) {
			_ = conn.Close()
			return
		}
		p.tasks.Add(1)
		go func() {
			defer p.tasks.Done()
			p.receive(conn)
		}()
	}
}

// own notes a connection to be closed with the port.
func (p *Port) own(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return false
	default:
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *Port) disown(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// receive holds the handshake and hands the connection to whom it is for.
func (p *Port) receive(conn net.Conn) {
	hello, err := p.admit(conn)
	<-p.pending
	if err != nil {
		p.disown(conn)
		_ = conn.Close()
		p.cfg.Logger.Debug("connection refused", "remote", conn.RemoteAddr(), "reason", err)
		return
	}
	if hello.kind == kindPeer {
		servePeer(conn, hello.from, p.cfg.Handler)
		p.disown(conn)
		_ = conn.Close()
		return
	}
	select {
	case p.streams <- conn:
		p.disown(conn)
	case <-p.closed:
		p.disown(conn)
		_ = conn.Close()
	}
}

func (p *Port) admit(conn net.Conn) (greeting, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return greeting{}, err
	}
	hello, err := readGreeting(conn)
	if err != nil {
		return hello, err
	}
	cluster := p.cfg.ClusterID()
	switch {
	case cluster == "":
		err = errors.New("this node has no cluster yet")
	case hello.cluster != cluster:
		err = errors.New("node of another cluster")
	case hello.want != "" && hello.want != p.cfg.Self:
		err = errWrongNode
	case !p.cfg.Allow(hello.from):
		err = errors.New("not a member")
	}
	if err != nil {
		_, _ = conn.Write(encodeRefusal())
		return hello, err
	}
	frame, err := welcome{cluster: cluster, self: p.cfg.Self}.encode()
	if err != nil {
		return hello, err
	}
	if _, err := conn.Write(frame); err != nil {
		return hello, err
	}
	return hello, conn.SetDeadline(time.Time{})
}

// dial opens a connection of the given kind. want may be empty.
func (p *Port) dial(kind byte, address string, want raft.ServerID, limit time.Duration) (net.Conn, error) {
	cluster := p.cfg.ClusterID()
	frame, err := greeting{kind: kind, cluster: cluster, from: p.cfg.Self, want: want}.encode()
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		return nil, err
	}
	if err := shake(conn, frame, cluster, want, limit); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func shake(conn net.Conn, frame []byte, cluster string, want raft.ServerID, limit time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	w, err := readWelcome(conn)
	switch {
	case err != nil:
		return err
	case w.cluster != cluster, want != "" && w.self != want:
		return errWrongNode
	}
	return conn.SetDeadline(time.Time{})
}

// RaftTransport returns Raft's transport over the port. MaxRPCsInFlight is 1
// because pipelining can leave a follower behind until the leader restarts
// (hashicorp/raft #612).
func (p *Port) RaftTransport(limit time.Duration) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: raftStreams{p}, MaxPool: 3, MaxRPCsInFlight: 1, Timeout: limit,
		Logger: p.cfg.Logger.Named("transport"),
	})
}

// raftStreams is the port as Raft sees it.
type raftStreams struct{ *Port }

// Accept returns the next stream whose handshake was for Raft.
func (s raftStreams) Accept() (net.Conn, error) {
	select {
	case conn := <-s.streams:
		return conn, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Dial opens a stream to the Raft server at address.
func (s raftStreams) Dial(address raft.ServerAddress, limit time.Duration) (net.Conn, error) {
	return s.dial(kindRaft, string(address), "", limit)
}
