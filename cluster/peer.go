package cluster

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Calls between nodes share one kept connection per pair of nodes and are told
// apart by an ID, so a slow one holds up no other.
//
//	request:   | length | call ID | method | payload ... |
//	response:  | length | call ID | status | payload ... |
//
// length is four bytes and counts what follows it, the call ID eight, both big
// endian; method and status are one byte. Status 0 carries the answer, 1 the
// text of an error.
const (
	callHead      = 4 + 8 + 1
	maxPayload    = 8 << 20 // bytes; a transaction fits
	maxCallError  = 1 << 10 // bytes of an error's text
	maxCallsAtOne = 4096    // calls of one connection that are served at one time

	// writeLimit is how long the other end may take no bytes before the
	// connection is given up: a stopped process keeps its sockets open.
	writeLimit = 10 * time.Second

	statusAnswer byte = 0
	statusError  byte = 1
)

// PeerCaller calls another node.
type PeerCaller interface {
	// Call returns the answer of the node with server ID id, reached at addr.
	// An error is a *NotSentError, a *LostError or a *RemoteError.
	Call(ctx context.Context, id raft.ServerID, addr raft.ServerAddress, method byte, payload []byte) ([]byte, error)
}

// PeerHandler answers calls. The payload is the handler's to keep.
type PeerHandler interface {
	ServePeer(ctx context.Context, from raft.ServerID, method byte, payload []byte) ([]byte, error)
}

// NotSentError means that the call certainly never reached the other node.
type NotSentError struct{ Err error }

// Error returns the cause.
func (e *NotSentError) Error() string { return "call not sent: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *NotSentError) Unwrap() error { return e.Err }

// LostError means that the call may have been served but no answer came.
type LostError struct{ Err error }

// Error returns the cause.
func (e *LostError) Error() string { return "answer to the call lost: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// RemoteError is what the other node's handler returned.
type RemoteError struct{ Text string }

// Error returns the other node's text.
func (e *RemoteError) Error() string { return e.Text }

// Peers calls other nodes through a Port.
type Peers struct {
	port  *Port
	limit time.Duration // to connect

	mu     sync.Mutex
	lines  map[raft.ServerID]*line
	closed bool
}

// NewPeers returns a caller that connects within limit.
func NewPeers(port *Port, limit time.Duration) *Peers {
	return &Peers{port: port, limit: limit, lines: make(map[raft.ServerID]*line)}
}

// Close ends every call under way.
func (p *Peers) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, l := range p.lines {
		l.end(net.ErrClosed)
	}
	return nil
}

// Call implements PeerCaller. The answer can only come from the connection whose
// handshake named id.
func (p *Peers) Call(ctx context.Context, id raft.ServerID, addr raft.ServerAddress, method byte, payload []byte) ([]byte, error) {
	if len(payload) > maxPayload {
		return nil, &NotSentError{fmt.Errorf("payload of %d bytes is larger than %d", len(payload), maxPayload)}
	}
	l, err := p.line(id)
	if err != nil {
		return nil, &NotSentError{err}
	}
	if err := l.connect(p, id, addr); err != nil {
		return nil, &NotSentError{err}
	}
	reply, err := l.send(method, payload)
	if err != nil {
		return nil, err
	}
	select {
	case r := <-reply.done:
		return r.payload, r.err
	case <-ctx.Done():
		l.abandon(reply.id)
		return nil, &LostError{ctx.Err()}
	}
}

func (p *Peers) line(id raft.ServerID) (*line, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	if p.lines[id] == nil {
		p.lines[id] = &line{calls: make(map[uint64]*pendingCall)}
	}
	return p.lines[id], nil
}

// line is the connection to one node, dialed anew by the next call after it
// broke.
type line struct {
	dialing sync.Mutex

	mu    sync.Mutex
	conn  net.Conn // nil while there is none
	out   *outbox  // of conn
	last  uint64
	calls map[uint64]*pendingCall
}

type pendingCall struct {
	id   uint64
	done chan callResult // holds one
}

type callResult struct {
	payload []byte
	err     error
}

func (l *line) connect(p *Peers, id raft.ServerID, addr raft.ServerAddress) error {
	l.dialing.Lock()
	defer l.dialing.Unlock()
	if l.current() != nil {
		return nil
	}
	conn, err := p.port.dial(kindPeer, string(addr), id, p.limit)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.Join(net.ErrClosed, conn.Close())
	}
	l.mu.Lock()
	l.conn, l.out = conn, newOutbox(conn)
	l.mu.Unlock()
	go l.receive(conn)
	return nil
}

func (l *line) current() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// send hands over one request to be written. From then on what the kernel took
// is not known: a connection that breaks fails the call in drop, as lost.
func (l *line) send(method byte, payload []byte) (*pendingCall, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil, &NotSentError{errLineBroke}
	}
	l.last++
	call := &pendingCall{id: l.last, done: make(chan callResult, 1)}
	if !l.out.add(call.id, method, payload) {
		return nil, &NotSentError{errLineBroke}
	}
	l.calls[call.id] = call
	return call, nil
}

func (l *line) abandon(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, id)
}

func (l *line) receive(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		id, status, payload, err := readCall(r)
		if err != nil {
			l.drop(conn, err)
			return
		}
		l.mu.Lock()
		call := l.calls[id]
		delete(l.calls, id)
		l.mu.Unlock()
		switch {
		case call == nil: // abandoned
		case status == statusAnswer:
			call.done <- callResult{payload: payload}
		default:
			call.done <- callResult{err: &RemoteError{string(payload)}}
		}
	}
}

var errLineBroke = errors.New("connection broke")

// drop fails every call of a broken connection at once.
func (l *line) drop(conn net.Conn, err error) {
	_ = conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != conn {
		return
	}
	l.out.end()
	l.conn = nil
	for id, call := range l.calls {
		call.done <- callResult{err: &LostError{err}}
		delete(l.calls, id)
	}
}

func (l *line) end(err error) {
	if conn := l.current(); conn != nil {
		l.drop(conn, err)
	}
}

// servePeer answers the calls of one connection until it breaks.
func servePeer(conn net.Conn, from raft.ServerID, handler PeerHandler) {
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	out := newOutbox(conn)
	defer out.end()
	places := make(chan struct{}, maxCallsAtOne)
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		id, method, payload, err := readCall(r)
		if err != nil {
			return
		}
		places <- struct{}{}
		tasks.Go(func() {
			defer func() { <-places }()
			status := statusAnswer
			answer, err := handler.ServePeer(ctx, from, method, payload)
			if err != nil {
				status, answer = statusError, []byte(err.Error())
				answer = answer[:min(len(answer), maxCallError)]
			}
			if !out.add(id, status, answer) {
				_ = conn.Close() // the caller must not wait for this answer
			}
		})
	}
}

func appendCall(b []byte, id uint64, tag byte, payload []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(callHead-4+len(payload)))
	b = binary.BigEndian.AppendUint64(b, id)
	return append(append(b, tag), payload...)
}

func readCall(r io.Reader) (id uint64, tag byte, payload []byte, err error) {
	var head [callHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:])) - (callHead - 4)
	if size < 0 || size > maxPayload {
		return 0, 0, nil, fmt.Errorf("frame of %d bytes", size)
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, 0, nil, err
	}
	return binary.BigEndian.Uint64(head[4:]), head[12], payload, nil
}
