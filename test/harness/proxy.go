//go:build linux

package harness

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// Direction is one half of a connection.
type Direction int

// The directions: what a client sends, and what it is answered.
const (
	Requests Direction = iota
	Answers
)

// fault is what a Proxy does to the bytes of one direction.
type fault int

const (
	pass fault = iota
	hold       // they wait
	cut        // the first of them reset the connection towards the client
)

// Proxy stands between clients and one node and loses what a network can lose,
// each direction by itself: a request that never arrives, an answer that never
// comes although the change was made.
type Proxy struct {
	Client // speaks to the node through the proxy

	target   string
	listener net.Listener

	mu     sync.Mutex
	change *sync.Cond // any of the fields below
	faults [2]fault
	after  int // bytes a cut lets through before it
	hits   int // connections the present faults have met
	links  map[*link]bool
	closed bool
}

// link is one connection through the proxy. Fields under Proxy.mu.
type link struct {
	client, node net.Conn
	ended        bool
	held         bool // counted in hits
}

func newProxy(t *testing.T, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Client: newClient("http://" + listener.Addr().String()),
		target: target, listener: listener, links: map[*link]bool{},
	}
	p.change = sync.NewCond(&p.mu)
	go p.serve()
	return p
}

// Hold keeps back what comes in one direction from now on: the other side waits
// until Heal or Reset.
func (p *Proxy) Hold(d Direction) { p.set(d, hold, 0) }

// CutAnswers lets the node do its work and then resets the connection towards
// the client when the answer has brought more than after bytes.
func (p *Proxy) CutAnswers(after int) { p.set(Answers, cut, after) }

// Heal passes everything on again, also what was held.
func (p *Proxy) Heal() {
	p.set(Requests, pass, 0)
	p.set(Answers, pass, 0)
}

func (p *Proxy) set(d Direction, f fault, after int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[d], p.after, p.hits = f, after, 0
	for l := range p.links {
		l.held = false
	}
	p.change.Broadcast()
}

// Hits returns how many connections the faults have met since they were set: as
// many answers held, say, each to a request its node has decided on.
func (p *Proxy) Hits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

// Reset breaks every connection; what was held is lost.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		p.drop(l)
	}
}

// Close ends the proxy.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.Reset()
	p.CloseIdle()
}

// drop resets a link. Callers hold p.mu.
func (p *Proxy) drop(l *link) {
	l.ended = true
	delete(p.links, l)
	reset(l.client)
	l.node.Close()
	p.change.Broadcast()
}

// reset closes a connection so that its other side sees that something was lost.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(client)
	}
}

func (p *Proxy) connect(client net.Conn) {
	node, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{client: client, node: node}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l] = true
	if p.closed {
		p.drop(l)
		return
	}
	go p.carry(l, Requests, client, node)
	go p.carry(l, Answers, node, client)
}

// carry moves one direction of a link until either side ends. HTTP does not
// close one half of a connection, so the end of one is the end of both.
func (p *Proxy) carry(l *link, d Direction, from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			through, more := p.admit(l, d, n)
			if _, failed := to.Write(buffer[:through]); failed != nil || !more {
				break
			}
		}
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(l)
}

// admit says how many of n bytes pass, after waiting if they are held, and
// whether the link goes on.
func (p *Proxy) admit(l *link, d Direction, n int) (through int, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.faults[d] == hold && !l.ended {
		if !l.held {
			l.held = true
			p.hits++
		}
		p.change.Wait()
	}
	if l.ended {
		return 0, false
	}
	if p.faults[d] == cut && n > p.after {
		p.hits++
		return p.after, false
	}
	return n, true
}

// String names the proxy in a failed test.
func (p *Proxy) String() string { return fmt.Sprintf("proxy of %s", p.target) }
