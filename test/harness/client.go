//go:build linux

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// Header is the headers of one request. Tests spell their names out: those are
// part of what is tested.
type Header map[string]string

// Answer is a whole answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Outcome returns what the answer says became of a mutation.
func (a Answer) Outcome() wire.Outcome { return wire.Outcome(a.Header.Get("Fence-Outcome")) }

// Problem returns the problem of an answer that is one, else a zero Problem.
func (a Answer) Problem() wire.Problem {
	var p wire.Problem
	if a.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(a.Body, &p) != nil {
		return wire.Problem{}
	}
	return p
}

// String shows the answer in a failed test.
func (a Answer) String() string {
	return fmt.Sprintf("%d %s %s", a.Status, a.Outcome(), strings.TrimSpace(string(a.Body)))
}

// Decode returns the body of a 2xx answer as a T, and fails the test on any
// other answer and on a field T does not know.
func Decode[T any](t testing.TB, a Answer) T {
	t.Helper()
	var into T
	if a.Status/100 != 2 {
		t.Fatalf("want success, got %s", a)
	}
	d := json.NewDecoder(strings.NewReader(string(a.Body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&into); err != nil {
		t.Fatalf("decode %s: %v", a, err)
	}
	return into
}

// Client speaks HTTP to one address, through the node's proxy or past it. It
// sends each request once: no redirect is followed, nothing is sent again.
type Client struct {
	URL  string
	http *http.Client
}

func newClient(base string) Client {
	return Client{URL: base, http: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       Patience,
	}}
}

// CloseIdle closes the connections no request uses.
func (c Client) CloseIdle() { c.http.CloseIdleConnections() }

// Do sends one request. An error means that no whole answer came: of a mutation
// the outcome is unknown.
func (c Client) Do(ctx context.Context, method, path string, header Header, body string) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, once{strings.NewReader(body)})
	if err != nil {
		return Answer{}, err
	}
	r.ContentLength = int64(len(body))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return Answer{Status: answer.StatusCode, Header: answer.Header, Body: content}, nil
}

// once is a body net/http cannot rewind. It takes any request that carries
// Idempotency-Key for one it may send again by itself when a kept connection
// breaks; a test of lost answers must see every loss.
type once struct{ io.Reader }

// Try is Do in JSON, within Patience.
func (c Client) Try(method, path string, header Header, body any) (Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	text, isText := body.(string)
	if !isText && body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return Answer{}, err
		}
		text = string(encoded)
		with := Header{"Content-Type": "application/json"}
		for name, value := range header {
			with[name] = value
		}
		header = with
	}
	return c.Do(ctx, method, path, header, text)
}

// Send is Try for a request whose answer must come. A node that says it has no
// leader or is not ready is asked again: nothing was changed.
func (c Client) Send(t testing.TB, method, path string, header Header, body any) (a Answer) {
	t.Helper()
	Await(t, "a decision on "+method+" "+path, func() bool {
		var err error
		if a, err = c.Try(method, path, header, body); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return a.Status != http.StatusServiceUnavailable
	})
	return a
}

// Lost sends a mutation whose answer must not come, and fails the test if it does.
func (c Client) Lost(t testing.TB, method, path string, header Header, body any) {
	t.Helper()
	a, err := c.Try(method, path, header, body)
	if err == nil {
		t.Fatalf("the answer to %s %s was to be lost, got %s", method, path, a)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

// KV returns the path of a key.
func KV(key string) string { return "/v1/kv/" + escape(key) }

// escape keeps the slashes of a key: they are part of its path.
func escape(key string) string { return strings.ReplaceAll(url.PathEscape(key), "%2F", "/") }

// Put writes a value.
func (c Client) Put(t testing.TB, key, value string, header Header) Answer {
	t.Helper()
	return c.Send(t, "PUT", KV(key), header, value)
}

// Get reads a key's value.
func (c Client) Get(t testing.TB, key string) Answer {
	t.Helper()
	return c.Send(t, "GET", KV(key), nil, nil)
}

// Acquire asks for a lock.
func (c Client) Acquire(t testing.TB, resource string, header Header, want wire.Acquire) Answer {
	t.Helper()
	return c.Send(t, "POST", "/v1/acquire/"+escape(resource), header, want)
}

// Renew asks for a new deadline of a lease.
func (c Client) Renew(t testing.TB, resource string, header Header, lease string) Answer {
	t.Helper()
	return c.Send(t, "POST", "/v1/renew/"+escape(resource), header, wire.Renew{LeaseID: lease})
}

// Release gives a lease up.
func (c Client) Release(t testing.TB, resource string, header Header, lease string) Answer {
	t.Helper()
	return c.Send(t, "POST", "/v1/release/"+escape(resource), header, wire.Release{LeaseID: lease})
}

// Entry reads what is known of a key, its history included.
func (c Client) Entry(t testing.TB, key string) wire.Entry {
	t.Helper()
	return Decode[wire.Entry](t, c.Send(t, "GET", KV(key)+"?meta", nil, nil))
}

// Lock reads what is known of a resource.
func (c Client) Lock(t testing.TB, resource string) wire.LockDetail {
	t.Helper()
	return Decode[wire.LockDetail](t, c.Send(t, "GET", "/v1/locks/"+escape(resource), nil, nil))
}

// Fate asks what became of a request.
func (c Client) Fate(t testing.TB, scope, id string) Answer {
	t.Helper()
	return c.Send(t, "GET", "/v1/requests/"+escape(scope)+"?id="+url.QueryEscape(id), nil, nil)
}

// Decisions reads the newest page of evidence on a resource.
func (c Client) Decisions(t testing.TB, resource string) []wire.Decision {
	t.Helper()
	path := "/v1/decisions?limit=1000&resource=" + url.QueryEscape(resource)
	return Decode[wire.Decisions](t, c.Send(t, "GET", path, nil, nil)).Decisions
}

// Status reads what one node knows by itself.
func (c Client) Status(t testing.TB) wire.Status {
	t.Helper()
	return Decode[wire.Status](t, c.Send(t, "GET", "/v1/status", nil, nil))
}

// Role returns the node's role in Raft, or nothing if it does not answer.
func (c Client) Role() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var status wire.Status
	a, err := c.Do(ctx, "GET", "/v1/status", nil, "")
	if err != nil || json.Unmarshal(a.Body, &status) != nil {
		return ""
	}
	return status.Role
}
