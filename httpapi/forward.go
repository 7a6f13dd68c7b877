package httpapi

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// hop is one request on its way to the leader.
type hop struct {
	target *url.URL
	id     string      // request ID, or empty
	names  bool        // the endpoint takes the ID as a header
	sent   atomic.Bool // something may have reached the leader
}

type hopKey struct{}

// passedOn are the headers that mean something to the leader, beside the request
// ID. They are copied from the request as it came, behind the proxy's removal of
// whatever its Connection header names: a caller must not be able to lose them.
var passedOn = []string{wire.HeaderRequestBase, "Content-Type"}

// forward passes the request on to the leader, once and as it came, and answers
// with the leader's answer: an acquire that waits, or a change of members. Other
// commands are carried between the nodes (cluster.Node.Propose). A redirect would
// not do: clients turn a redirected POST into a GET or drop its headers.
func (h *Handler) forward(w http.ResponseWriter, c *call, patience time.Duration) error {
	leader, known := h.node.Leader()
	_, forwarded := value(c.Header, wire.HeaderForwarded)
	if !known || forwarded || leader.Name == h.name {
		return refuse(wire.CodeNoLeader)
	}
	target, err := url.Parse(leader.HTTPAddress)
	if err != nil || target.Host == "" {
		return refuse(wire.CodeNoLeader)
	}
	passed := &hop{target: target, id: c.id, names: slices.Contains(c.takes, wire.HeaderRequestID)}
	ctx, cancel := context.WithTimeout(context.WithValue(c.Context(), hopKey{}, passed), patience)
	defer cancel()
	// net/http resends by itself only where it wrote nothing, which is when it
	// asks for a connection again: newProxy keeps it from resending more.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { passed.sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { passed.sent.Store(true) },
	})
	body := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	r := c.WithContext(ctx)
	r.Body, _ = body()
	r.GetBody = body
	r.ContentLength = int64(len(c.body))
	r.TransferEncoding = nil
	allowTime(w, patience)
	clear(w.Header()) // the leader's answer brings its own
	h.proxy.ServeHTTP(w, r)
	return nil
}

func (h *Handler) newProxy() *httputil.ReverseProxy {
	dialer := &net.Dialer{
		Timeout:         2 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &httputil.ReverseProxy{
		Rewrite: h.rewrite,
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 256,
			IdleConnTimeout:     idleTimeout / 2, // never used at the moment its server closes it
			DisableCompression:  true,
		},
		ErrorHandler: h.forwardFailed,
		ErrorLog:     h.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
}

// rewrite makes the request the leader gets. The request ID travels under its
// other name: net/http takes whatever carries Idempotency-Key for its own to
// send again after a failure, and an outcome that is unknown is the caller's.
func (h *Handler) rewrite(p *httputil.ProxyRequest) {
	passed := p.In.Context().Value(hopKey{}).(*hop)
	p.Out.URL.Scheme, p.Out.URL.Host = passed.target.Scheme, passed.target.Host
	p.Out.Host = passed.target.Host
	header := make(http.Header)
	for _, name := range passedOn {
		if text, given := value(p.In.Header, name); given {
			header.Set(name, text)
		}
	}
	if passed.id != "" && passed.names {
		header.Set(wire.HeaderRequestID, wire.FormatRequestID(passed.id))
	}
	header.Set(wire.HeaderForwarded, h.name)
	p.Out.Header = header
}

// forwardFailed answers for a leader that did not.
func (h *Handler) forwardFailed(w http.ResponseWriter, r *http.Request, err error) {
	passed := r.Context().Value(hopKey{}).(*hop)
	h.identify(w, r.Method)
	if passed.id != "" {
		w.Header().Set(wire.HeaderIdempotencyKey, wire.FormatRequestID(passed.id))
	}
	h.log.Debug("forward", "leader", passed.target.Host, "sent", passed.sent.Load(), "error", err)
	if passed.sent.Load() {
		h.fail(w, r, &problem{code: wire.CodeOutcomeUnknown, unknown: true})
		return
	}
	h.fail(w, r, refuse(wire.CodeNoLeader))
}

// CloseIdle closes the connections to other nodes that no request uses.
func (h *Handler) CloseIdle() {
	if t, ok := h.proxy.Transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}
