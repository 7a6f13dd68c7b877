package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencekv/fencekv/httpapi"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// raw sends bytes on one connection and returns the answers until it is closed.
func (h *house) raw(text string) []*http.Response {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		h.t.Fatal(err)
	}
	var answers []*http.Response
	for in := bufio.NewReader(conn); ; {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return answers
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			h.t.Errorf("read answer: %v", err)
		}
		answers = append(answers, response)
		if response.Close {
			return answers
		}
	}
}

// What only bytes on a connection can show, since no HTTP library sends it. A
// request that parsers could read in two ways is refused, or read in one and
// the connection closed behind it. Refusals leave no trace in the store.
func TestRawBytes(t *testing.T) {
	h := newHouse(t, "n1")
	const put, host = "PUT /v1/kv/k HTTP/1.1\r\n", "Host: localhost\r\n"
	const smuggled = "0\r\n\r\nPUT /v1/kv/smuggled HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"
	for _, row := range []struct {
		name, text string
		status     int
	}{
		{"no Host", put + "Content-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"two Hosts", put + host + host + "Content-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"HTTP/1.0 without Host", "PUT /v1/kv/k HTTP/1.0\r\nContent-Length: 1\r\n\r\nv", 421},
		{"absolute form of another host", "PUT http://evil.example/v1/kv/k HTTP/1.1\r\n" + host + "Content-Length: 1\r\nConnection: close\r\n\r\nv", 421},
		{"two lengths", put + host + "Content-Length: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nvv", 400},
		{"signed length", put + host + "Content-Length: +1\r\nConnection: close\r\n\r\nv", 400},
		{"two encodings", put + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", 501},
		{"unknown encoding", put + host + "Transfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", 501},
		{"folded token", put + host + "Fence-Token: 5\r\n 6\r\nContent-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"folded empty token", put + host + "Fence-Token:\r\n 05\r\nContent-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"two tokens", put + host + "Fence-Token: 5\r\nfence-token: 6\r\nContent-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"space before the colon", put + host + "Fence-Token : 5\r\nContent-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"NUL in a header", put + host + "Change-Reason: a\x00b\r\nContent-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"bad escape", "PUT /v1/kv/%zz HTTP/1.1\r\n" + host + "Content-Length: 1\r\nConnection: close\r\n\r\nv", 400},
		{"short chunked body", put + host + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n", 400},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n", 404},
		{"large header", put + host + "Change-Reason: " + strings.Repeat("x", 20_000) + "\r\nContent-Length: 1\r\n\r\nv", 431},
		{"body on a GET", "GET /v1/kv/k HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", 400},
	} {
		answers := h.raw(row.text)
		if len(answers) != 1 || answers[0].StatusCode != row.status {
			t.Errorf("%s: %v, want one %d", row.name, statuses(answers), row.status)
		}
		if h.node.index != 0 {
			t.Fatalf("%s: something was proposed", row.name)
		}
	}
	answers := h.raw(put + host + "Content-Length: " + strconv.Itoa(len(smuggled)) + "\r\nTransfer-Encoding: chunked\r\n\r\n" + smuggled)
	if len(answers) != 1 || !answers[0].Close || h.node.state.Entry("smuggled") != nil {
		t.Errorf("length and encoding together: %v", statuses(answers))
	}
}

func statuses(answers []*http.Response) []int {
	var all []int
	for _, a := range answers {
		all = append(all, a.StatusCode)
	}
	return all
}

// Good requests share a connection.
func TestKeepAlive(t *testing.T) {
	h := newHouse(t, "n1")
	one := "PUT /v1/kv/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nv"
	last := "GET /v1/kv/k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	if got := statuses(h.raw(one + one + last)); len(got) != 3 || got[0] != 201 || got[1] != 200 || got[2] != 200 {
		t.Errorf("answers %v", got)
	}
}

// A caller that announces more than it sends is let go in time, and what it
// sent is stored nowhere.
func TestBodyThatNeverEnds(t *testing.T) {
	h := newHouse(t, "n1", func(cfg *httpapi.Config, _ *http.Server) { cfg.BodyTimeout = 100 * time.Millisecond })
	answers := h.raw("PUT /v1/kv/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nshort")
	if len(answers) != 1 || answers[0].StatusCode != 400 || answers[0].Header.Get(wire.HeaderOutcome) != string(wire.NotApplied) || h.node.index != 0 {
		t.Errorf("answers %v", statuses(answers))
	}
}

// HTTP/2 without TLS gives the same answers.
func TestHTTP2(t *testing.T) {
	h := newHouse(t, "n1")
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", h.url+"/v1/kv/k", strings.NewReader("v"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 || response.StatusCode != 201 || response.Header.Get("ETag") != `"1"` {
		t.Errorf("%s %d %v", response.Proto, response.StatusCode, response.Header)
	}
}
