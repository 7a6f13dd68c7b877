package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// Kinds of work.
const (
	benchPut  = "put"
	benchGet  = "get"
	benchLock = "lock"
)

// bench is one run of `fencekv bench`: what is done to which keys.
type bench struct {
	kind       string
	prefix     string // of the keys, without the slash at the end; the lock that covers them
	keys       int64
	sequential bool
	size       int // bytes of a value
	plain      bool
	stale      bool
	run        string // makes request IDs of this run its own

	token uint64 // of the lock on prefix; 0 for plain writes
	since uint64 // revision of the store when the lock was granted
	value []byte
}

// worker is one client: a connection and what it remembers between operations.
type worker struct {
	*bench
	conn    *benchConn
	request requestBuilder
	id      int
	sent    int64
	seen    uint64 // newest revision of the store an answer told
}

func (w *worker) close() { w.conn.close() }

func (w *worker) operate(ctx context.Context, r *rand.Rand, sequence int64) string {
	number := sequence % w.keys
	if !w.sequential {
		number = r.Int64N(w.keys)
	}
	var err error
	switch w.kind {
	case benchGet:
		err = w.get(ctx, number)
	case benchLock:
		return w.acquireRelease(ctx)
	default:
		err = w.put(ctx, number)
	}
	return w.code(err)
}

// code names what became of an operation; empty for a success.
func (w *worker) code(err error) string {
	if err != nil {
		return "no_answer"
	}
	if r := w.conn.answer.revision; r > w.seen {
		w.seen = r
	}
	return w.conn.answer.code()
}

func (w *worker) keyPath(number int64) string {
	return wire.RouteKV + "/" + wire.KeyPath(w.prefix) + "/" + strconv.FormatInt(number, 10)
}

// put writes a key: with token, request ID and Request-Base as a careful worker
// sends them, or plain.
func (w *worker) put(ctx context.Context, number int64) error {
	w.request.begin(http.MethodPut, w.keyPath(number))
	if !w.plain {
		w.request.header(wire.HeaderToken, wire.FormatNumber(w.token))
		w.identify()
		w.request.header(wire.HeaderRequestBase, wire.FormatNumber(w.seen))
	}
	return w.conn.do(ctx, w.request.end(w.value))
}

func (w *worker) identify() {
	w.sent++
	w.request.header(wire.HeaderIdempotencyKey, w.run+"-"+strconv.Itoa(w.id)+"-"+strconv.FormatInt(w.sent, 10))
}

func (w *worker) get(ctx context.Context, number int64) error {
	path := w.keyPath(number)
	if w.stale {
		path += "?consistency=stale"
	}
	return w.conn.do(ctx, w.request.begin(http.MethodGet, path).end(nil))
}

// acquireRelease takes and gives up a lock that no other client wants. Its
// resource covers no key of the other kinds of work: those carry tokens of the
// lock on the prefix, and hold off any lock below it.
func (w *worker) acquireRelease(ctx context.Context) string {
	resource := wire.KeyPath(w.prefix) + "-locks/" + strconv.Itoa(w.id)
	if code := w.code(w.post(ctx, wire.RouteAcquire+resource, wire.Acquire{Holder: "bench", TTLMs: 60_000})); code != "" {
		return code
	}
	var granted wire.Granted
	if err := json.Unmarshal(w.conn.answer.body, &granted); err != nil {
		return "no_answer"
	}
	return w.code(w.post(ctx, wire.RouteRelease+resource, wire.Release{LeaseID: granted.LeaseID}))
}

func (w *worker) post(ctx context.Context, path string, ask any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	w.request.begin(http.MethodPost, path)
	w.request.header("Content-Type", wire.TypeJSON)
	w.identify()
	return w.conn.do(ctx, w.request.end(body))
}

// prepare makes what the work needs: the lock whose token its writes carry, or
// keys to read, unless an earlier run left them.
func (b *bench) prepare(ctx context.Context, c *caller, lease time.Duration, fill func() error) (release func(), err error) {
	b.value = make([]byte, b.size)
	for i := range b.value {
		b.value[i] = byte('a' + rand.IntN(26))
	}
	switch {
	case b.kind == benchGet:
		last := wire.RouteKV + "/" + wire.KeyPath(b.prefix) + "/" + strconv.FormatInt(b.keys-1, 10)
		_, err := c.do(ctx, &operation{method: http.MethodGet, path: last})
		if r, ok := errors.AsType[*refusal](err); ok && r.Code == wire.CodeKeyNotFound {
			err = fill()
		}
		return func() {}, err
	case b.kind == benchPut && !b.plain:
		granted, _, err := c.acquire(ctx, b.prefix, wire.Acquire{Holder: "bench", TTLMs: lease.Milliseconds()}, "")
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", b.prefix, err)
		}
		b.token, b.since = granted.Token, granted.Revision
		return func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, _ = c.release(ctx, b.prefix, granted.LeaseID) // or it ends by itself
		}, nil
	}
	return func() {}, nil
}
