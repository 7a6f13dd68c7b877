package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// puppet is a node whose answers to writes a test decides. It counts what it
// got; reads of its status it answers by itself.
type puppet struct {
	*httptest.Server
	leader string // told in every answer

	mu     sync.Mutex
	writes []http.Header
	next   []string // answers to come: cut, a code, a status with a location, or ok; the last repeats
}

func newPuppet(t *testing.T, next ...string) *puppet {
	p := &puppet{next: next}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *puppet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.leader != "" {
		w.Header().Set(wire.HeaderLeader, p.leader)
	}
	if r.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(wire.Status{Revision: 41})
		return
	}
	p.mu.Lock()
	answer := p.next[0]
	if len(p.next) > 1 {
		p.next = p.next[1:]
	}
	p.writes = append(p.writes, r.Header.Clone())
	p.mu.Unlock()
	switch answer {
	case "ok":
		_ = json.NewEncoder(w).Encode(wire.Written{Key: "k", Version: 1})
	case "cut":
		panic(http.ErrAbortHandler) // closes the connection without an answer
	case "redirect":
		http.Redirect(w, r, "/v1/kv/elsewhere", http.StatusTemporaryRedirect)
	default:
		info, _ := wire.Lookup(wire.Code(answer))
		outcome := wire.NotApplied
		if info.Code == wire.CodeOutcomeUnknown {
			outcome = wire.Unknown
		}
		w.Header().Set("Content-Type", wire.TypeProblem)
		w.WriteHeader(info.Status)
		_ = json.NewEncoder(w).Encode(wire.Problem{Code: info.Code, Title: info.Title, Status: info.Status, Outcome: outcome})
	}
}

// got returns the headers of the writes so far.
func (p *puppet) got() []http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// runLine runs a command line in this process.
func runLine(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs, environ)
	return code, out.String(), errs.String()
}

// Goal: whatever a node does to a write, the caller sends it again only where
// that is safe and of use, always as the same request, and says what is known.
func TestWriteOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		next   []string
		code   int
		writes int    // 0 for more than one
		stderr string // part of it
	}{
		"applied":                        {[]string{"ok"}, wire.ExitOK, 1, ""},
		"leader comes later":             {[]string{"no_leader", "ok"}, wire.ExitOK, 2, ""},
		"answer lost":                    {[]string{"cut", "ok"}, wire.ExitOK, 2, ""},
		"unknown, then known":            {[]string{"outcome_unknown", "ok"}, wire.ExitOK, 2, ""},
		"all at once":                    {[]string{"overloaded", "cut", "no_leader", "ok"}, wire.ExitOK, 4, ""},
		"a refusal is final":             {[]string{"stale_owner", "ok"}, wire.ExitStaleOwner, 1, "stale_owner"},
		"refused after a lost answer":    {[]string{"cut", "revision_mismatch"}, wire.ExitRevisionMismatch, 2, "revision_mismatch"},
		"too fast is final":              {[]string{"too_many_requests", "ok"}, wire.ExitServer, 1, "too_many_requests"},
		"never a leader":                 {[]string{"no_leader"}, wire.ExitServer, 0, "no_leader"},
		"answers always lost":            {[]string{"cut"}, wire.ExitUnknown, 0, "--request-id"},
		"unknown stays unknown":          {[]string{"cut", "no_leader"}, wire.ExitUnknown, 0, "--request-id"},
		"a redirect is not followed":     {[]string{"redirect"}, wire.ExitServer, 1, "307"},
		"a fault that may have happened": {[]string{"outcome_unknown"}, wire.ExitUnknown, 0, "The outcome is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPuppet(t, c.next...)
			code, _, stderr := runLine(t, nil, "put", "k", "v", "--no-lock", "--timeout", "1s", "--addr", p.URL)
			if code != c.code || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, c.code, stderr)
			}
			writes := p.got()
			if n := len(writes); c.writes != 0 && n != c.writes || c.writes == 0 && n < 2 {
				t.Errorf("%d writes, want %d", n, c.writes)
			}
			for _, h := range writes {
				id := h.Get(wire.HeaderRequestID)
				if id == "" || id != writes[0].Get(wire.HeaderRequestID) {
					t.Errorf("request ID %q, first %q", id, writes[0].Get(wire.HeaderRequestID))
				}
				if base := h.Get(wire.HeaderRequestBase); base != "41" {
					t.Errorf("request base %q, want 41", base)
				}
			}
			if code == wire.ExitUnknown && !strings.Contains(stderr, writes[0].Get(wire.HeaderRequestID)) {
				t.Errorf("stderr does not name the request ID:\n%s", stderr)
			}
		})
	}
}

// The user's own request ID may be an old one: today's revision is not its base.
func TestGivenRequestIDHasNoBase(t *testing.T) {
	p := newPuppet(t, "ok")
	if code, _, stderr := runLine(t, nil, "put", "k", "v", "--request-id", "mine", "--addr", p.URL); code != 0 {
		t.Fatal(stderr)
	}
	h := p.got()[0]
	if h.Get(wire.HeaderRequestID) != "mine" || h.Get(wire.HeaderRequestBase) != "" {
		t.Errorf("headers %v", h)
	}
}

// A follower's answer names the leader, and the next request goes there; but
// not when that would take the credential off an encrypted connection.
func TestFollowsLeader(t *testing.T) {
	leader, follower := newPuppet(t, "ok"), newPuppet(t, "no_leader")
	follower.leader = leader.URL
	if code, _, stderr := runLine(t, nil, "put", "k", "v", "--addr", follower.URL); code != 0 {
		t.Fatal(stderr)
	}
	if len(leader.got()) != 1 || len(follower.got()) != 0 {
		t.Errorf("%d writes at the leader, %d at the follower", len(leader.got()), len(follower.got()))
	}
	c := &caller{endpoints: []string{"https://a"}}
	for _, hint := range []string{"http://b", "", "://"} {
		if c.follow("https://a", hint); c.target() != "https://a" {
			t.Errorf("followed %q", hint)
		}
	}
	if c.follow("https://a", "https://b/"); c.target() != "https://b" {
		t.Errorf("target %s, want https://b", c.target())
	}
	if c.leave("https://b"); c.target() != "https://a" {
		t.Errorf("target %s, want https://a", c.target())
	}
}

func TestCredential(t *testing.T) {
	p := newPuppet(t, "ok")
	code, stdout, stderr := runLine(t, []string{"FENCEKV_AUTH_TOKEN=s3cret", "FENCEKV_ADDR=" + p.URL, "FENCEKV_FENCE_TOKEN=12"}, "put", "k", "v", "--curl")
	if code != 0 || strings.Contains(stdout+stderr, "s3cret") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if h := p.got()[0]; h.Get("Authorization") != "Bearer s3cret" || h.Get(wire.HeaderToken) != "12" {
		t.Errorf("headers %v", h)
	}
}
