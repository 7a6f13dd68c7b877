package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// The drill speaks HTTP by hand, as any program could: what it proves must not
// depend on a clever client.

func drillClient() *http.Client {
	return &http.Client{
		Timeout:       40 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// reply is an answer, whole.
type reply struct {
	status  int
	header  http.Header
	body    []byte
	problem wire.Problem // of an answer that is one
}

// verdict is what a row compares: status, code and outcome of a problem, status
// and outcome of anything else.
func (r reply) verdict() string {
	outcome := r.header.Get(wire.HeaderOutcome)
	if r.problem.Code != "" {
		return fmt.Sprintf("%d %s, %s", r.status, r.problem.Code, outcome)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, outcome))
}

func (r reply) decode(into any) error {
	if r.status/100 != 2 {
		return fmt.Errorf("%d %s: %s", r.status, r.problem.Code, r.problem.Detail)
	}
	return json.Unmarshal(r.body, into)
}

// fields are request headers.
type fields map[string]string

func token(t uint64) fields { return fields{wire.HeaderToken: wire.FormatNumber(t)} }

func (f fields) with(name, value string) fields {
	next := fields{name: value}
	for k, v := range f {
		next[k] = v
	}
	return next
}

func kvPath(key string) string { return "/v1/kv/" + escape(key) }

// escape keeps the slashes of a key, which are part of its path.
func escape(key string) string { return strings.ReplaceAll(url.PathEscape(key), "%2F", "/") }

// call sends one request and goes to the next node while nobody decided on it:
// no node there, or not_applied for want of a leader.
func (d *drill) call(method, path string, body []byte, header fields) (reply, error) {
	var last error
	for range 50 {
		for _, addr := range d.cfg.Addrs {
			r, err := d.callAt(addr, method, path, body, header)
			if err == nil && r.status != http.StatusServiceUnavailable {
				return r, nil
			}
			last = err
			if err == nil {
				last = &r.problem
			}
		}
		if !d.pause(200 * time.Millisecond) {
			break
		}
	}
	return reply{}, fmt.Errorf("%s %s: no node decides: %w", method, path, last)
}

func (d *drill) pause(t time.Duration) bool {
	select {
	case <-d.ctx.Done():
		return false
	case <-time.After(t):
		return true
	}
}

func (d *drill) callAt(addr, method, path string, body []byte, header fields) (reply, error) {
	request, err := http.NewRequestWithContext(d.ctx, method, addr+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	r := reply{status: response.StatusCode, header: response.Header}
	if r.body, err = io.ReadAll(response.Body); err != nil {
		return reply{}, err
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), wire.TypeProblem) {
		if err := json.Unmarshal(r.body, &r.problem); err != nil {
			return reply{}, err
		}
	}
	return r, nil
}

func (d *drill) put(key, value string, header fields) (reply, error) {
	return d.call(http.MethodPut, kvPath(key), []byte(value), header.with("Content-Type", "text/plain"))
}

func (d *drill) postJSON(path string, body any, header fields) (reply, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	return d.call(http.MethodPost, path, data, header.with("Content-Type", wire.TypeJSON))
}

func acquirePath(resource string) string { return "/v1/acquire/" + escape(resource) }

// acquire takes a lock for at least a second, waiting for it if need be.
func (d *drill) acquire(resource, holder string, ttl time.Duration, fence string) (wire.Granted, error) {
	var g wire.Granted
	r, err := d.postJSON(acquirePath(resource), wire.Acquire{
		Holder: holder, TTLMs: ttl.Milliseconds(), WaitMs: 30_000, Fence: fence,
	}, nil)
	if err != nil {
		return g, err
	}
	return g, r.decode(&g)
}

func (d *drill) lock(resource string) (wire.LockDetail, error) {
	var l wire.LockDetail
	r, err := d.call(http.MethodGet, "/v1/locks/"+escape(resource), nil, nil)
	if err != nil {
		return l, err
	}
	return l, r.decode(&l)
}

func (d *drill) entry(key string) (wire.Entry, error) {
	var e wire.Entry
	r, err := d.call(http.MethodGet, kvPath(key)+"?meta", nil, nil)
	if err != nil {
		return e, err
	}
	return e, r.decode(&e)
}

// value returns what a reader sees, with the version.
func (d *drill) value(key string) string {
	r, err := d.call(http.MethodGet, kvPath(key), nil, nil)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%q version %s", r.body, r.header.Get(wire.HeaderVersion))
}

func (d *drill) status() (wire.Status, error) {
	var s wire.Status
	r, err := d.call(http.MethodGet, "/v1/status", nil, nil)
	if err != nil {
		return s, err
	}
	return s, r.decode(&s)
}

// hangUp sends a request, waits for the first byte of the answer (so the change
// is committed) and closes the connection without reading it: the answer is
// lost on its way, as far as the caller can tell.
func (d *drill) hangUp(method, path, body string, header fields) error {
	var last error
	for _, addr := range d.cfg.Addrs {
		if last = d.hangUpAt(addr, method, path, body, header); last == nil {
			return nil
		}
	}
	return last
}

func (d *drill) hangUpAt(addr, method, path, body string, header fields) error {
	target, err := url.Parse(addr)
	if err != nil {
		return err
	}
	if target.Scheme != "http" {
		return errors.New("this story needs a plain http address")
	}
	conn, err := net.DialTimeout("tcp", target.Host, 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	request, err := http.NewRequest(method, addr+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	if err := request.Write(conn); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}
