package cluster

import (
	"net"
	"sync"
	"time"
)

// outbox writes the frames of many callers to one connection: those that come
// while one write is under way go out together with the next, so a busy
// connection costs a system call for many frames.
type outbox struct {
	conn net.Conn

	mu      sync.Mutex
	waiting []byte
	ended   bool
	wake    chan struct{} // holds one
}

// newOutbox serves conn until end is called or a write fails, which closes conn.
func newOutbox(conn net.Conn) *outbox {
	o := &outbox{conn: conn, wake: make(chan struct{}, 1)}
	go o.run()
	return o
}

// maxWaiting bounds the bytes that wait behind a peer that takes none.
const maxWaiting = 64 << 20

// add takes a frame to be written and returns false if it will not be: the
// connection is gone, or too much waits for it already.
func (o *outbox) add(id uint64, tag byte, payload []byte) bool {
	o.mu.Lock()
	if o.ended || len(o.waiting)+len(payload) > maxWaiting {
		o.mu.Unlock()
		return false
	}
	first := len(o.waiting) == 0
	o.waiting = appendCall(o.waiting, id, tag, payload)
	o.mu.Unlock()
	if first {
		o.signal()
	}
	return true
}

func (o *outbox) end() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// maxSpare is the largest buffer that is kept for the next frames.
const maxSpare = 256 << 10

func (o *outbox) run() {
	var spare []byte
	for range o.wake {
		o.mu.Lock()
		frames, ended := o.waiting, o.ended
		o.waiting = spare[:0]
		o.mu.Unlock()
		if len(frames) > 0 {
			_ = o.conn.SetWriteDeadline(time.Now().Add(writeLimit))
			if _, err := o.conn.Write(frames); err != nil {
				o.end()
				_ = o.conn.Close()
				return
			}
		}
		if ended {
			return
		}
		if spare = frames[:0]; cap(spare) > maxSpare {
			spare = nil
		}
	}
}
