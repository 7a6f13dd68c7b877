package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// Whatever the store can refuse with has a row in the table, and whatever has a
// row has a page.
func TestEveryCodeIsExplained(t *testing.T) {
	s := newSite(t)
	for _, code := range fsm.RefusalCodes() {
		if _, known := wire.Lookup(wire.Code(code)); !known {
			t.Errorf("%s is not in the table", code)
		}
	}
	index := s.do("GET", "/problems/", "").is(200, "").has("Content-Type", "text/html; charset=utf-8").body
	for _, info := range wire.Codes() {
		page := s.do("GET", wire.RouteProblems+string(info.Code), "").is(200, "").body
		if !strings.Contains(page, info.Title) || !strings.Contains(page, string(info.Code)) {
			t.Errorf("page of %s: %s", info.Code, page)
		}
		if !strings.Contains(index, `href="/problems/`+string(info.Code)+`"`) {
			t.Errorf("the index does not lead to %s", info.Code)
		}
	}
}

func TestStatus(t *testing.T) {
	s := newSite(t)
	s.acquire("k", "A")
	status := decode[wire.Status](s.do("GET", "/v1/status", "").is(200, ""))
	if status.Name != "n1" || status.Token != 1 || status.Revision != 1 || status.Counts.Locks != 1 || status.LeaderName != "n1" ||
		status.Settings.MaxValue != 256<<10 || status.Limits.MaxTxnOps != 128 || status.Limits.MaxPage != wire.MaxPage {
		t.Errorf("status %+v", status)
	}
	hello := decode[cluster.Hello](s.do("GET", "/v1/peer", "").is(200, ""))
	if hello.Name != "n1" || hello.HTTPAddress != "http://n1.example:8700" {
		t.Errorf("hello %+v", hello)
	}
	if body := s.do("GET", "/healthz", "").is(200, "").body; body != "ok\n" {
		t.Errorf("health %q", body)
	}
}

// Ready is who can serve a linearizable read, not whose process runs.
func TestReady(t *testing.T) {
	s := newSite(t)
	s.do("GET", "/readyz", "").is(200, "")
	s.node.failWith(&cluster.Error{Reason: cluster.NoLeader})
	s.do("GET", "/readyz", "").is(503, "").fails(wire.CodeNotReady)
	s.do("GET", "/healthz", "").is(200, "")
	s.do("GET", "/v1/kv/k?consistency=stale", "").is(404, "")
	s.do("GET", "/v1/kv/k", "").is(503, "").has("Retry-After", "1").fails(wire.CodeNoLeader)
}

func TestMembers(t *testing.T) {
	s := newSite(t)
	joined := decode[cluster.Joined](s.do("POST", "/v1/cluster/members",
		`{"name":"n2","serverId":"n2-1","httpAddress":"http://n2","raftAddress":"n2:1","build":"x","format":1}`).is(200, wire.Applied))
	if joined.ClusterID != "c1" {
		t.Errorf("joined %+v", joined)
	}
	view := decode[wire.Cluster](s.do("DELETE", "/v1/cluster/members/n2", "").is(200, wire.Applied))
	if view.Leader != "n1" || len(view.Members) != 1 || !view.Members[0].Voter {
		t.Errorf("cluster %+v", view)
	}
	s.do("POST", "/v1/cluster/transfer", `{"to":"n2"}`).is(200, wire.Applied)
	s.do("POST", "/v1/cluster/transfer", `{}`).is(200, wire.Applied)
	if got := fmt.Sprint(s.node.asked); got != "[join n2 remove n2 transfer n2 transfer ]" {
		t.Errorf("asked %s", got)
	}
	s.do("DELETE", "/v1/cluster/members/", "").is(400, wire.NotApplied)
	decode[wire.Cluster](s.do("GET", "/v1/cluster", "").is(200, ""))
}

// Each way a node can fail has its answer, and says what became of the write.
func TestErrorsOfTheNode(t *testing.T) {
	s := newSite(t)
	for _, row := range []struct {
		err     error
		status  int
		code    wire.Code
		outcome wire.Outcome
		wait    string
	}{
		{&cluster.Error{Reason: cluster.NoLeader}, 503, wire.CodeNoLeader, wire.NotApplied, "1"},
		{&cluster.Error{Reason: cluster.NotReady, RetryAfter: 2500 * time.Millisecond}, 503, wire.CodeNotReady, wire.NotApplied, "3"},
		{&cluster.Error{Reason: cluster.Overloaded}, 503, wire.CodeOverloaded, wire.NotApplied, "1"},
		{&cluster.Error{Reason: cluster.TimedOut}, 503, wire.CodeNotReady, wire.NotApplied, "1"},
		{&cluster.Error{Reason: cluster.Removed}, 410, wire.CodeRemovedFromCluster, wire.NotApplied, ""},
		{&cluster.Error{Reason: cluster.NoSuchMember}, 404, wire.CodeMemberNotFound, wire.NotApplied, ""},
		{&cluster.Error{Reason: cluster.Conflict, Err: errors.New("taken")}, 409, wire.CodeClusterConflict, wire.NotApplied, ""},
		{&cluster.Error{Reason: cluster.Lost, Unknown: true}, 504, wire.CodeOutcomeUnknown, wire.Unknown, ""},
		{fmt.Errorf("propose: %w", &cluster.Error{Reason: cluster.TimedOut, Unknown: true}), 504, wire.CodeOutcomeUnknown, wire.Unknown, ""},
		{&cluster.Error{Reason: "new"}, 500, wire.CodeInternal, wire.NotApplied, ""},
		{errors.New("something else"), 504, wire.CodeOutcomeUnknown, wire.Unknown, ""},
	} {
		s.node.failWith(row.err)
		for _, method := range []string{"PUT /v1/kv/k", "DELETE /v1/cluster/members/x"} {
			verb, target, _ := strings.Cut(method, " ")
			a := s.do(verb, target, "").is(row.status, row.outcome).has("Retry-After", row.wait)
			a.fails(row.code)
			if strings.Contains(a.body, "something else") {
				t.Errorf("an internal text left the node: %s", a.body)
			}
		}
		if a := s.do("PUT", "/v1/kv/k", ""); a.header.Get("Idempotency-Key") == "" {
			t.Errorf("%v: the answer does not name the request", row.err)
		}
	}
}

func TestBounds(t *testing.T) {
	node := newFakeNode("n1", "http://n1")
	for _, cfg := range []httpapi.Config{
		{}, {Node: node, ReadTimeout: -1}, {Node: node, MaxRequests: -1}, {Node: node, MaxBodies: 1},
	} {
		if _, err := httpapi.New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
	s := newSite(t)
	var err error
	if s.handler, err = httpapi.New(httpapi.Config{Node: s.node, MaxRequests: 1}); err != nil {
		t.Fatal(err)
	}
	s.acquire("k", "A")
	done := make(chan *answer)
	go func() {
		done <- s.do("POST", "/v1/acquire/k", `{"holder":"B","ttlMs":10000,"waitMs":2000}`, "Request-Id: b")
	}()
	s.waitFor(func() bool { return s.node.state.Waiter("k", "b") != nil })
	s.do("PUT", "/v1/kv/x", "v").is(503, wire.NotApplied).has("Retry-After", "1").fails(wire.CodeOverloaded)
	s.node.pass(time.Minute)
	<-done
	s.do("PUT", "/v1/kv/x", "v").is(201, wire.Applied)
}

// Bodies are held within bounds, and their memory is given back.
func TestBoundOnBodies(t *testing.T) {
	s := newSite(t)
	const bound = 8 << 20
	var err error
	if s.handler, err = httpapi.New(httpapi.Config{Node: s.node, MaxBodies: bound}); err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("x", 256<<10)
	for range 2 * bound / len(value) {
		s.do("PUT", "/v1/kv/k", value).is2xx()
	}
	out, in := io.Pipe()
	done := make(chan int)
	go func() {
		r := httptest.NewRequest("POST", "/v1/txn", out) // of unknown length: as much as a transaction may have
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		done <- w.Code
	}()
	if _, err := in.Write([]byte("{")); err != nil { // returns once the body is being read
		t.Fatal(err)
	}
	s.do("PUT", "/v1/kv/k", value).is(503, wire.NotApplied).fails(wire.CodeOverloaded)
	in.Close()
	if code := <-done; code != 400 {
		t.Errorf("half a body: %d", code)
	}
	s.do("PUT", "/v1/kv/k", value).is2xx()
}
