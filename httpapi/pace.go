package httpapi

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// Refusals cost what they are meant to save: a node that refuses as fast as it
// is asked has no time left for Raft, and loses its leadership to the flood. So
// an overloaded node answers refusals at a pace, the first at once; a connection
// of HTTP/1.1 brings no other request meanwhile.
const (
	refusalEvery   = 500 * time.Microsecond
	maxRefusalHold = time.Second // in turn; those beyond it for up to as long again, and none of a caller who hung up
)

// pacer gives each refusal its time.
type pacer struct {
	mu   sync.Mutex
	next time.Time
}

// hold returns how long a refusal that is due now is held back.
func (p *pacer) hold(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	hold := p.next.Sub(now)
	if hold > maxRefusalHold {
		// Not all at one time: what they ask next comes as they are answered.
		return maxRefusalHold + rand.N(maxRefusalHold)
	}
	p.next = p.next.Add(refusalEvery)
	return hold
}

// pace holds an answer to err back where it says that the node is overloaded.
func (h *Handler) pace(ctx context.Context, err error) {
	if asProblem(err).code != wire.CodeOverloaded {
		return
	}
	timer := time.NewTimer(h.refusals.hold(time.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
