package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// operateFunc is an operator without a connection.
type operateFunc func(sequence int64) string

func (f operateFunc) operate(_ context.Context, _ *rand.Rand, sequence int64) string {
	return f(sequence)
}
func (operateFunc) close() {}

// TestOpenLoop shows what an open loop is for: one stall of the store is felt by
// every operation that was due in it, not by the one that met it alone.
func TestOpenLoop(t *testing.T) {
	const stall = 300 * time.Millisecond
	l := &load{clients: 1, rate: 1000, duration: time.Minute, count: 600, work: func(int) operator {
		return operateFunc(func(sequence int64) string {
			if sequence == 100 {
				<-time.After(stall)
			}
			return ""
		})
	}}
	found := l.run(t.Context())
	if n := found.waited.TotalCount(); n != 600 || found.missed != 0 || found.failed() != nil {
		t.Fatalf("%d operations, %d missed, %v", n, found.missed, found.failed())
	}
	// About 300 were due in the stall; those in its first two thirds waited 100 ms
	// or more, and on a busy machine more of them did.
	slow := int64(0)
	for _, bar := range found.waited.Distribution() {
		if bar.From >= 100_000 {
			slow += bar.Count
		}
	}
	if slow < 190 {
		t.Errorf("%d operations tell of the stall, want 190 or more", slow)
	}
	if most := found.served.ValueAtPercentile(50); most > 100_000 {
		t.Errorf("half were served in %d µs: the service time has the wait in it", most)
	}
}

// TestMissed shows that a generator that cannot keep up says so.
func TestMissed(t *testing.T) {
	l := &load{clients: 1, rate: 100, duration: time.Minute, count: 150, work: func(int) operator {
		return operateFunc(func(sequence int64) string {
			if sequence == 0 {
				<-time.After(missedAfter + 300*time.Millisecond)
			}
			return ""
		})
	}}
	found := l.run(t.Context())
	if n := found.waited.TotalCount(); found.missed < 20 || n+found.missed != 150 {
		t.Errorf("%d operations and %d missed, want 20 or more missed and 150 in all", n, found.missed)
	}
}

// TestCounting shows what is counted: nothing of the warm-up, failures by code.
func TestCounting(t *testing.T) {
	for name, rate := range map[string]float64{"closed loop": 0, "open loop": 500} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			l := &load{clients: 2, rate: rate, warmup: 100 * time.Millisecond, duration: 200 * time.Millisecond, work: func(int) operator {
				return operateFunc(func(sequence int64) string {
					asked.Add(1)
					<-time.After(2 * time.Millisecond)
					if sequence%2 == 1 {
						return "refused"
					}
					return ""
				})
			}}
			found := l.run(t.Context())
			counted := found.waited.TotalCount() + found.errors["refused"]
			if len(found.errors) != 1 || found.failed() == nil || counted == 0 || counted >= asked.Load() {
				t.Errorf("%d asked, %d counted, errors %v", asked.Load(), counted, found.errors)
			}
		})
	}
}

// TestBenchConn holds the generator's own HTTP to what servers answer.
func TestBenchConn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/close":
			w.Header().Set("Connection", "close")
		case "/refuse":
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"stale_token"}`)
			return
		case "/bad":
			w.WriteHeader(http.StatusBadGateway)
			return
		case "/chunked":
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Fence-Revision", "42")
		text := r.Method + " " + r.Header.Get("Thing") + " " + string(body)
		if r.URL.Path != "/chunked" {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		}
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn := &benchConn{base: base, limit: time.Minute}
	defer conn.close()
	long := strings.Repeat("x", 10_000)
	for _, step := range []struct {
		path, body string
		code       string
		fails      bool
	}{
		{path: "/a", body: "short"},
		{path: "/a", body: long},
		{path: "/a"},
		{path: "/refuse", code: "stale_token"},
		{path: "/bad", code: "status_502"},
		{path: "/close"},
		{path: "/a", body: "after"},
		{path: "/chunked", fails: true},
		{path: "/a", body: "after a failure"},
	} {
		request := (&requestBuilder{host: base.Host}).begin(http.MethodPut, step.path)
		request.header("Thing", "given")
		err := conn.do(t.Context(), request.end([]byte(step.body)))
		answer := &conn.answer
		switch {
		case step.fails:
			if err == nil {
				t.Errorf("%s: no error", step.path)
			}
		case err != nil:
			t.Errorf("%s: %v", step.path, err)
		case answer.code() != step.code:
			t.Errorf("%s: code %q", step.path, answer.code())
		case step.code == "" && (answer.revision != 42 || string(answer.body) != "PUT given "+step.body):
			t.Errorf("%s: answer %+v", step.path, answer)
		}
	}
}
