package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// maxAnswer bounds the bytes read of one answer: a page of the largest values.
const maxAnswer = 1 << 30

// operation is one logical call. However often it is sent, it is the same
// request under the same ID, so it takes effect once.
type operation struct {
	method  string
	path    string // escaped, from the root
	query   url.Values
	header  http.Header
	body    []byte
	bodyArg string // how curl is to get the body; empty for the body itself

	identified bool          // it carries a request ID, made here if the header has none
	once       bool          // not resent after an unknown outcome: it has no request ID to make that safe
	quiet      bool          // not shown by --curl
	wait       time.Duration // how long the server may hold the answer back on purpose
	node       string        // ask this node and no other; empty for any
}

// answer is what a node said, whole.
type answer struct {
	header http.Header
	body   []byte
	sent   time.Time // when the try that got this answer was sent
}

// refusal is a problem a node answered.
type refusal struct {
	*wire.Problem
	body  []byte
	write bool // of a mutation, so that its outcome means something
}

func (r *refusal) Unwrap() error { return r.Problem }

// noAnswer means that no try got a decision.
type noAnswer struct {
	node      string // of the last try
	requestID string
	unknown   bool // some try may have taken effect
	cause     error
}

func (e *noAnswer) Error() string { return fmt.Sprintf("no answer from %s: %v", e.node, e.cause) }
func (e *noAnswer) Unwrap() error { return e.cause }

// tryError is why one try got no answer of a fencekv node.
type tryError struct {
	err   error
	sent  bool // it may have reached the store
	final bool // another try would end the same way
}

func (e *tryError) Error() string { return e.err.Error() }
func (e *tryError) Unwrap() error { return e.err }

// newRequestID makes a request ID; its beginning is the time, so that those of
// one caller sort in logs.
func newRequestID() string { return uuid.Must(uuid.NewV7()).String() }

// do sends op until a node decides on it or the timeout is over. Errors are
// *refusal, *noAnswer, or local.
func (c *caller) do(ctx context.Context, op *operation) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+op.wait)
	defer cancel()
	if err := c.identify(ctx, op); err != nil {
		return nil, err
	}
	if !op.quiet {
		c.curl.print(c, op)
	}
	pause := &backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond, MaxInterval: 2 * time.Second,
		Multiplier: 1.6, RandomizationFactor: 0.5,
	}
	pause.Reset()
	unknown := false
	// Only a node that holds the answer back may use up the wait; nodes that
	// cannot be reached, or have no leader, get the timeout.
	until := time.Now().Add(c.timeout)
	for tries := 1; ; tries++ {
		node := op.node
		if node == "" {
			node = c.target()
		}
		a, err := c.try(ctx, op, node)
		again, maybe := retryable(err, len(c.endpoints) > 1)
		unknown = unknown || maybe && op.method != http.MethodGet
		if maybe {
			until = time.Now().Add(c.timeout)
		}
		r, refused := errors.AsType[*refusal](err)
		if err == nil || refused && !again {
			return a, err
		}
		c.leave(node)
		ended := &noAnswer{node: node, requestID: op.header.Get(wire.HeaderIdempotencyKey), unknown: unknown, cause: err}
		if !again || op.once && unknown {
			return nil, ended
		}
		if tries%len(c.endpoints) == 0 && !sleep(ctx, until, max(pause.NextBackOff(), retryAfter(a))) || ctx.Err() != nil {
			if refused && !unknown {
				return nil, r
			}
			return nil, ended
		}
	}
}

// retryable tells what a failed try calls for: to send the operation again, and
// whether the failed one may have taken effect. A refusal is a decision and
// asks for neither; only that of a node that is no member any more is not the
// cluster's, if there are others to ask.
func retryable(err error, others bool) (again, maybe bool) {
	if r, ok := errors.AsType[*refusal](err); ok {
		maybe = r.Outcome == wire.Unknown
		removed := r.Code == wire.CodeRemovedFromCluster && others
		return maybe || removed || r.Status == http.StatusServiceUnavailable, maybe
	}
	if t, ok := errors.AsType[*tryError](err); ok {
		return !t.final, t.sent
	}
	return false, false
}

// sleep waits for d and reports whether there is time left for another try; if
// there would not be, there is no use in waiting.
func sleep(ctx context.Context, until time.Time, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	if end := time.Now().Add(d); end.After(until) || ok && end.After(deadline) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// retryAfter returns how long a node asks to wait, at most a minute.
func retryAfter(a *answer) time.Duration {
	if a == nil {
		return 0
	}
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 60)) * time.Second
}

// identify gives op its request ID. An ID made here is new, so the store's
// present revision is its base: should the record of this request be dropped
// before a resend of it arrives, the resend is refused and not run a second
// time. An ID of the user's may have been sent before; its base is theirs to know.
func (c *caller) identify(ctx context.Context, op *operation) error {
	if op.header == nil {
		op.header = http.Header{}
	}
	if !op.identified || op.header.Get(wire.HeaderIdempotencyKey) != "" {
		return nil
	}
	if c.base == nil {
		a, err := c.do(ctx, &operation{method: http.MethodGet, path: wire.RouteStatus, quiet: true})
		if err != nil {
			return err
		}
		var status wire.Status
		if err := json.Unmarshal(a.body, &status); err != nil {
			return fmt.Errorf("read status: %w", err)
		}
		c.base = &status.Revision
	}
	op.header.Set(wire.HeaderIdempotencyKey, newRequestID())
	op.header.Set(wire.HeaderRequestBase, wire.FormatNumber(*c.base))
	return nil
}

// try sends op to node once. A *refusal comes with its answer.
func (c *caller) try(ctx context.Context, op *operation, node string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, op.wait+max(c.timeout/3, time.Second))
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := c.request(ctx, op, node)
	if err != nil {
		return nil, err
	}
	a := &answer{sent: time.Now()}
	response, err := c.http.Do(request)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest of it repeats what was asked
		}
		_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
		return nil, &tryError{err: err, sent: connected.Load(), final: untrusted}
	}
	defer response.Body.Close()
	a.header = response.Header
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return nil, &tryError{err: fmt.Errorf("read answer: %w", err), sent: true}
	}
	c.follow(node, response.Header.Get(wire.HeaderLeader))
	if response.StatusCode/100 == 2 {
		return a, nil
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	problem := &wire.Problem{}
	if kind != wire.TypeProblem || json.Unmarshal(a.body, problem) != nil {
		err := fmt.Errorf("answered %s, and not as a fencekv node does", response.Status)
		return nil, &tryError{err: err, sent: response.StatusCode >= 500, final: response.StatusCode < 500}
	}
	return a, &refusal{Problem: problem, body: a.body, write: op.method != http.MethodGet}
}

func (c *caller) request(ctx context.Context, op *operation, node string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, op.method, node+op.path, bytes.NewReader(op.body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.URL.RawQuery = op.query.Encode()
	request.Header = op.header.Clone()
	// net/http takes an Idempotency-Key for leave to send the request again by
	// itself. A lost first copy that nobody knows of would make a not_applied of
	// the second look certain, so the ID travels under its other name.
	if id := request.Header.Get(wire.HeaderIdempotencyKey); id != "" {
		request.Header.Del(wire.HeaderIdempotencyKey)
		request.Header.Set(wire.HeaderRequestID, id)
	}
	if c.authToken != "" {
		request.Header.Set("Authorization", "Bearer "+c.authToken)
	}
	return request, nil
}
