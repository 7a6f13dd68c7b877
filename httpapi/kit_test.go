package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/httpapi"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// site is a handler on a fake node.
type site struct {
	t       *testing.T
	node    *fakeNode
	handler *httpapi.Handler
}

func newSite(t *testing.T) *site {
	t.Helper()
	node := newFakeNode("n1", "http://n1.example:8700")
	handler, err := httpapi.New(httpapi.Config{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(handler.CloseIdle)
	return &site{t: t, node: node, handler: handler}
}

// answer is what came back.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   string
}

// do sends a request; headers are "Name: value" lines.
func (s *site) do(method, target, body string, headers ...string) *answer {
	s.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8700"
	for _, line := range headers {
		name, text, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = text
			continue
		}
		r.Header.Add(name, text)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	a := &answer{t: s.t, what: method + " " + target, status: w.Code, header: w.Result().Header, body: w.Body.String()}
	a.check(method, target)
	return a
}

// check is what holds for every answer.
func (a *answer) check(method, target string) {
	a.t.Helper()
	if a.header.Get(wire.HeaderNode) == "" || a.header.Get("Cache-Control") != "no-store" {
		a.t.Errorf("%s: headers %v", a.what, a.header)
	}
	mutation := method == "PUT" || method == "POST" || method == "DELETE"
	outcome := wire.Outcome(a.header.Get(wire.HeaderOutcome))
	if mutation == (outcome == "") {
		a.t.Errorf("%s: outcome %q", a.what, outcome)
	}
	if a.status/100 == 3 && (mutation || a.status != http.StatusNotModified) {
		a.t.Errorf("%s: answered %d", a.what, a.status)
	}
	for name, values := range a.header {
		if len(values) != 1 {
			a.t.Errorf("%s: %s stands %d times", a.what, name, len(values))
		}
	}
	if a.status < 400 || method == "HEAD" {
		return
	}
	p := a.problem()
	info, known := wire.Lookup(p.Code)
	if !known || p.Status != a.status || info.Status != a.status || p.Title != info.Title || p.Detail == "" ||
		p.Type != wire.RouteProblems+string(p.Code) || p.Node == "" || (p.Outcome == wire.Unknown) != (p.Code == wire.CodeOutcomeUnknown) {
		a.t.Errorf("%s: problem %+v", a.what, p)
	}
	if mutation && outcome != p.Outcome && outcome != wire.Refused {
		a.t.Errorf("%s: outcome %q in the header, %q in the body", a.what, outcome, p.Outcome)
	}
}

func (a *answer) problem() wire.Problem {
	a.t.Helper()
	if got := a.header.Get("Content-Type"); got != wire.TypeProblem {
		a.t.Fatalf("%s: %d %s: %s", a.what, a.status, got, a.body)
	}
	return decode[wire.Problem](a)
}

// decode reads a body that must hold no field the type does not know.
func decode[T any](a *answer) T {
	a.t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		a.t.Fatalf("%s: %d %q: %v", a.what, a.status, a.body, err)
	}
	if _, err := d.Token(); err != io.EOF {
		a.t.Fatalf("%s: trailing %q", a.what, a.body)
	}
	return v
}

// is asserts status and outcome.
func (a *answer) is(status int, outcome wire.Outcome) *answer {
	a.t.Helper()
	if got := a.header.Get(wire.HeaderOutcome); a.status != status || got != string(outcome) {
		a.t.Fatalf("%s: %d %q, want %d %q: %s", a.what, a.status, got, status, outcome, a.body)
	}
	return a
}

// fails asserts a problem's code.
func (a *answer) fails(code wire.Code) wire.Problem {
	a.t.Helper()
	p := a.problem()
	if p.Code != code {
		a.t.Fatalf("%s: %s, want %s", a.what, a.body, code)
	}
	return p
}

// has asserts a header.
func (a *answer) has(name, want string) *answer {
	a.t.Helper()
	if got := a.header.Get(name); got != want {
		a.t.Errorf("%s: %s is %q, want %q", a.what, name, got, want)
	}
	return a
}

// acquire takes a lock and returns the grant.
func (s *site) acquire(resource, holder string, more ...string) wire.Granted {
	s.t.Helper()
	body := `{"holder":"` + holder + `","ttlMs":10000` + strings.Join(more, "") + `}`
	return decode[wire.Granted](s.do("POST", "/v1/acquire/"+resource, body).is(201, wire.Applied))
}
