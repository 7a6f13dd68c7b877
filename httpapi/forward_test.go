package httpapi_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/httpapi"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// house is a site behind a real server on a port of its own.
type house struct {
	site
	url string
}

func newHouse(t *testing.T, name string, adjust ...func(*httpapi.Config, *http.Server)) *house {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	node := newFakeNode(name, url)
	cfg, server := httpapi.Config{Node: node}, httpapi.NewHTTPServer("", nil)
	for _, f := range adjust {
		f(&cfg, server)
	}
	handler, err := httpapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server.Handler = handler
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		handler.CloseIdle()
		server.Close()
		<-served
	})
	return &house{site: site{t: t, node: node, handler: handler}, url: url}
}

// pair returns a leader and a follower of it.
func pair(t *testing.T, adjust ...func(*httpapi.Config, *http.Server)) (leader, follower *house) {
	leader, follower = newHouse(t, "n1", adjust...), newHouse(t, "n2", adjust...)
	follower.node.follow(cluster.Peer{Name: "n1", HTTPAddress: leader.url})
	follower.node.through = leader.node
	return leader, follower
}

// send sends a request over the network; headers are "Name: value" lines.
func (h *house) send(ctx context.Context, method, target, body string, headers ...string) *answer {
	h.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, h.url+target, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range headers {
		name, text, _ := strings.Cut(line, ": ")
		r.Header.Add(name, text)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			h.t.Errorf("%s %s: %v", method, target, err)
		}
		return &answer{t: h.t}
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Errorf("%s %s: %v", method, target, err)
	}
	a := &answer{t: h.t, what: method + " " + target, status: response.StatusCode, header: response.Header, body: string(data)}
	a.check(method, target)
	return a
}

// A follower brings every kind of mutation to the leader, with all that it
// depends on, and answers with what was decided there.
func TestFollowerPassesOn(t *testing.T) {
	leader, follower := pair(t)
	ctx := t.Context()
	a := decode[wire.Granted](follower.send(ctx, "POST", "/v1/acquire/a%20b/x", `{"holder":"A","ttlMs":10000}`).is(201, wire.Applied))
	if a.Node != "n2" || a.Token != 1 {
		t.Errorf("granted %+v", a)
	}
	// The Connection header asks proxies to drop the token; it must arrive all the same.
	follower.send(ctx, "PUT", "/v1/kv/a%20b%2Fx", "v", "Fence-Token: 1", "Idempotency-Key: w", `If-None-Match: *`,
		"Request-Base: 0", "Change-Reason: why", "Content-Type: text/plain", "Connection: Fence-Token").
		is(201, wire.Applied).has("ETag", `"2"`).has("Fencekv-Node", "n2").has("Fencekv-Leader", leader.url).has("Idempotency-Key", "w")
	meta := decode[wire.Entry](leader.send(ctx, "GET", "/v1/kv/a%20b/x?meta", ""))
	if meta.Token != 1 || meta.Reason != "why" || meta.ContentType != "text/plain" || meta.RequestID != "w" || meta.Size != 1 {
		t.Errorf("meta %+v", meta)
	}
	follower.send(ctx, "PUT", "/v1/kv/a%20b/x", "w", "Fence-Token: 1", `If-Match: "9"`).is(412, wire.Refused)
	follower.send(ctx, "DELETE", "/v1/kv/a%20b/x", "", "Fence-Token: 1", `If-Match: "2"`, `Request-Id: "quoted"`).is(200, wire.Applied).has("Idempotency-Key", "quoted")
	follower.send(ctx, "POST", "/v1/txn", `{"resource":"r","ops":[{"op":"put","key":"y","value":"1"}]}`).is(200, wire.Applied)
	// It has applied nothing itself, and yet must not deny what it just heard of.
	seal := decode[wire.Fate](follower.send(ctx, "POST", "/v1/seal/r?id=z", "").is(200, wire.Applied).has("Idempotency-Key", "z"))
	if seal.StoreRevision < seal.Revision {
		t.Errorf("a store at revision %d knows of revision %d", seal.StoreRevision, seal.Revision)
	}
	follower.send(ctx, "POST", "/v1/purge?prefix=a%20b/", "").is(200, wire.Applied)
	follower.send(ctx, "POST", "/v1/revoke/a%20b/x", "").is(200, wire.Applied)
	// These are answered by the leader itself.
	follower.send(ctx, "POST", "/v1/acquire/a%20b/x", `{"holder":"A","ttlMs":10000,"waitMs":10}`, "Idempotency-Key: l",
		"Request-Base: 0", "Connection: Request-Base").is(201, wire.Applied).has("Fencekv-Node", "n1").has("Idempotency-Key", "l")
	follower.send(ctx, "DELETE", "/v1/cluster/members/n3", "").is(200, wire.Applied).has("Fencekv-Node", "n1")
	if follower.node.index != 0 {
		t.Errorf("the follower applied %d commands itself", follower.node.index)
	}
}

// A follower refuses bad input itself, and answers reads itself.
func TestFollowerDecidesNothing(t *testing.T) {
	_, follower := pair(t)
	follower.send(t.Context(), "PUT", "/v1/kv/k", "v", "Fence-Token: 05").is(400, wire.NotApplied).has("Fencekv-Node", "n2")
	follower.send(t.Context(), "GET", "/v1/kv/k", "").is(404, "").has("Fencekv-Node", "n2")
}

// A request goes one hop at most: a node that was passed a request and does not
// lead says so, even where both take the other for the leader.
func TestHopGuard(t *testing.T) {
	one, two := pair(t)
	one.node.follow(cluster.Peer{Name: "n2", HTTPAddress: two.url})
	for _, h := range []*house{one, two} {
		h.send(t.Context(), "POST", "/v1/acquire/k", goodAcquire+`,"waitMs":10}`).is(503, wire.NotApplied).fails(wire.CodeNoLeader)
	}
	two.send(t.Context(), "POST", "/v1/acquire/k", goodAcquire+`,"waitMs":10}`, "Fencekv-Forwarded: n9").is(503, wire.NotApplied).has("Fencekv-Node", "n2").fails(wire.CodeNoLeader)
}

func TestNobodyToPassTo(t *testing.T) {
	_, follower := pair(t)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	for _, leader := range []cluster.Peer{
		{}, {Name: "n1", HTTPAddress: "http://" + dead.Addr().String()}, {Name: "n1"}, {Name: "n1", HTTPAddress: "%"}, {Name: "n2", HTTPAddress: follower.url},
	} {
		follower.node.follow(leader)
		if leader.Name == "n2" {
			follower.node.name = "elsewhere" // knows itself as the leader's address, and does not lead
		}
		follower.node.through = nil
		for _, a := range []*answer{
			follower.send(t.Context(), "PUT", "/v1/kv/k", "v", "Idempotency-Key: w"),
			follower.send(t.Context(), "POST", "/v1/acquire/k", goodAcquire+`,"waitMs":10}`, "Idempotency-Key: w"),
		} {
			a.is(503, wire.NotApplied).has("Retry-After", "1").has("Fencekv-Node", "n2").has("Idempotency-Key", "w").fails(wire.CodeNoLeader)
		}
	}
}

// cutter is a leader that takes a whole request and closes the connection
// instead of answering, once it has answered the first few.
func cutter(t *testing.T, answers int32) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					if requests.Add(1) > answers {
						return
					}
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nFencekv-Node: n1\r\nCache-Control: no-store\r\nFence-Outcome: applied\r\n\r\n{}")
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

// Once a request was sent its outcome is unknown, and it is not sent again: not
// on a new connection, and not where net/http would by itself, on a kept one.
func TestCutAfterSend(t *testing.T) {
	for _, kept := range []int32{0, 1} {
		for _, row := range []struct{ method, target, body string }{
			{"DELETE", "/v1/cluster/members/n3", ""},
			{"POST", "/v1/acquire/k", goodAcquire + `,"waitMs":60000}`},
		} {
			_, follower := pair(t)
			url, requests := cutter(t, kept)
			follower.node.follow(cluster.Peer{Name: "n1", HTTPAddress: url})
			for range kept {
				follower.send(t.Context(), "DELETE", "/v1/cluster/members/n3", "").is(200, wire.Applied)
			}
			a := follower.send(t.Context(), row.method, row.target, row.body).is(504, wire.Unknown).has("Fencekv-Node", "n2")
			a.fails(wire.CodeOutcomeUnknown)
			if row.method == "POST" && a.header.Get("Idempotency-Key") == "" {
				t.Errorf("%s: the answer does not say which request to ask for", row.target)
			}
			if n := requests.Load(); n != kept+1 {
				t.Errorf("%s %s: the leader got %d requests, want %d", row.method, row.target, n, kept+1)
			}
		}
	}
}

// A wait outlasts the timeouts of both servers on its way.
func TestWaitOutlastsServerTimeouts(t *testing.T) {
	const short = 200 * time.Millisecond
	leader, follower := pair(t, func(cfg *httpapi.Config, s *http.Server) {
		cfg.BodyTimeout, s.ReadTimeout, s.WriteTimeout = short, short, short
	})
	a := decode[wire.Granted](leader.do("POST", "/v1/acquire/k", goodAcquire+"}"))
	granted := make(chan *answer, 1)
	go func() {
		granted <- follower.send(t.Context(), "POST", "/v1/acquire/k", `{"holder":"B","ttlMs":10000,"waitMs":60000}`, "Idempotency-Key: b")
	}()
	leader.waitFor(func() bool { return leader.node.state.Waiter("k", "b") != nil })
	<-time.After(3 * short) // nothing but time can show that no timeout strikes
	leader.do("POST", "/v1/release/k", `{"leaseId":"`+a.LeaseID+`"}`).is(200, wire.Applied)
	if b := decode[wire.Granted]((<-granted).is(201, wire.Applied)); b.Holder != "B" {
		t.Errorf("granted %+v", b)
	}
}

// A change of members that takes its time is not taken for one whose caller
// hung up.
func TestSlowChangeOutlastsServerTimeouts(t *testing.T) {
	const short = 100 * time.Millisecond
	h := newHouse(t, "n1", func(cfg *httpapi.Config, s *http.Server) {
		cfg.BodyTimeout, s.ReadTimeout, s.WriteTimeout = short, short, short
	})
	h.node.hold = make(chan struct{})
	time.AfterFunc(3*short, func() { close(h.node.hold) })
	h.send(t.Context(), "DELETE", "/v1/cluster/members/n2", "").is(200, wire.Applied)
}

// Hanging up on a follower reaches the leader's queue.
func TestHangUpThroughFollower(t *testing.T) {
	leader, follower := pair(t)
	leader.do("POST", "/v1/acquire/k", goodAcquire+"}").is(201, wire.Applied)
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		follower.send(ctx, "POST", "/v1/acquire/k", `{"holder":"B","ttlMs":10000,"waitMs":60000}`, "Idempotency-Key: b")
	}()
	leader.waitFor(func() bool { return leader.node.state.Waiter("k", "b") != nil })
	hangUp()
	<-done
	leader.waitFor(func() bool { return leader.node.state.Waiter("k", "b") == nil })
}
