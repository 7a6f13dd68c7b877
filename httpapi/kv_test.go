package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// The story the store exists for: A is issued a token, B a newer one, A wakes up.
func TestLateWriteIsRefusedWithEvidence(t *testing.T) {
	s := newSite(t)
	a := s.acquire("app/report", "A")
	s.node.pass(11 * time.Second)
	b := s.acquire("app/report", "B")
	tokenA, tokenB := fmt.Sprintf("Fence-Token: %d", a.Token), fmt.Sprintf("Fence-Token: %d", b.Token)
	s.do("PUT", "/v1/kv/app/report", "from B", tokenB, "Idempotency-Key: b1", "Content-Type: text/plain").
		is(201, wire.Applied).has("ETag", `"4"`).has("Fence-Revision", "4").has("Fence-Version", "1").
		has("Fence-Token", "2").has("Fence-Max-Token", "2").has("Idempotency-Key", "b1").
		has("Idempotency-Replayed", "false").has("Fence-Request-Window-Ms", "600000").
		has("Fencekv-Node", "n1").has("Fencekv-Leader", "http://n1.example:8700")

	late := s.do("PUT", "/v1/kv/app/report", "from A", tokenA, "Idempotency-Key: a1").is(409, wire.Refused)
	p := late.fails(wire.CodeStaleOwner)
	if p.Resource != "app/report" || p.Token != a.Token || p.MaxToken != b.Token || p.Issued != b.Token ||
		p.RequestID != "a1" || len(p.Fingerprint) != 64 || p.Revision != 4 || p.ClockMs != 12_000 || p.At == "" ||
		p.Applied != nil || p.EnforcedBy == nil || p.Outcome != wire.NotApplied {
		t.Errorf("problem %s", late.body)
	}
	if e := p.EnforcedBy; e != nil && (e.Resource != "app/report" || e.Holder != "B" || e.Token != b.Token || e.Revision != 3 || e.Cause != "issue" || e.At == "") {
		t.Errorf("evidence %+v", e)
	}
	s.do("GET", "/v1/kv/app/report", "").is(200, "").has("Content-Type", "text/plain").
		has("Fence-Token", "2").has("Fence-Max-Token", "2").has("Fence-Revision", "4")

	decisions := decode[wire.Decisions](s.do("GET", "/v1/decisions?resource=app/&code=stale_owner", ""))
	if len(decisions.Decisions) != 1 || decisions.Oldest != 1 || decisions.Decisions[0].Token != a.Token || decisions.Decisions[0].Outcome != wire.Refused {
		t.Errorf("decisions %+v", decisions)
	}
	lock := decode[wire.LockDetail](s.do("GET", "/v1/locks/app/report", ""))
	if !lock.Held || lock.Holder != "B" || lock.Issued != 2 || lock.MaxToken != 2 || len(lock.Refusals) != 1 || len(lock.Tokens) != 1 {
		t.Errorf("lock %+v", lock)
	}
}

// A lost answer: the resend gets the first answer, and the fenced-out sender
// learns that its write had taken effect.
func TestResend(t *testing.T) {
	s := newSite(t)
	a := s.acquire("k", "A")
	token := fmt.Sprintf("Fence-Token: %d", a.Token)
	first := s.do("PUT", "/v1/kv/k", "v", token, "Idempotency-Key: w1").is(201, wire.Applied)
	again := s.do("PUT", "/v1/kv/k", "v", token, `Idempotency-Key: "w1"`).is(201, wire.Replayed).has("Idempotency-Replayed", "true")
	one, two := decode[wire.Written](first), decode[wire.Written](again)
	two.Replayed = false
	if one != two {
		t.Errorf("first %+v, again %+v", one, two)
	}
	s.do("PUT", "/v1/kv/k", "w", token, "Request-Id: w1").is(422, wire.Refused).fails(wire.CodeRequestMismatch)
	s.do("POST", "/v1/release/k", `{"leaseId":"`+a.LeaseID+`"}`).is(200, wire.Applied)
	s.acquire("k", "B")
	p := s.do("PUT", "/v1/kv/k", "v", token, "Idempotency-Key: w1").is(409, wire.Refused).fails(wire.CodeStaleOwner)
	if p.Applied == nil || p.Applied.Revision != one.Revision || p.Applied.Version != 1 || p.Applied.Token != a.Token {
		t.Errorf("applied %+v", p.Applied)
	}
	fate := decode[wire.Fate](s.do("GET", "/v1/requests/k?id=w1", ""))
	if fate.State != wire.RequestApplied || fate.Revision != one.Revision || fate.Version != 1 || fate.RemainingMs != 600_000 || fate.Op != "put" {
		t.Errorf("fate %+v", fate)
	}
}

func TestConditions(t *testing.T) {
	s := newSite(t)
	s.do("PUT", "/v1/kv/k", "1", `If-Match: *`).is(412, wire.Refused).fails(wire.CodeRevisionMismatch)
	s.do("PUT", "/v1/kv/k", "1", `If-None-Match: *`).is(201, wire.Applied)
	p := s.do("PUT", "/v1/kv/k", "2", `If-Match: "0"`).is(412, wire.Refused).fails(wire.CodeRevisionMismatch)
	if p.Current == nil || *p.Current != 2 || p.Key != "" || p.Resource != "k" {
		t.Errorf("problem %+v", p)
	}
	s.do("PUT", "/v1/kv/k", "2", `If-Match: "2"`).is(200, wire.Applied)
	s.do("PUT", "/v1/kv/k", "3", `If-Match: "2"`, "Idempotency-Key: x").is(412, wire.Refused)
	s.do("PUT", "/v1/kv/k", "3", `If-Match: "2"`, "Idempotency-Key: x").is(412, wire.Refused)
	s.do("DELETE", "/v1/kv/k", "", `If-Match: *`).is(200, wire.Applied).has("ETag", "")
	s.do("PUT", "/v1/kv/k", "4", `If-Match: "0"`).is(201, wire.Applied)
	s.do("DELETE", "/v1/kv/gone", "").is(404, wire.Refused).fails(wire.CodeKeyNotFound)
	fate := decode[wire.Fate](s.do("GET", "/v1/requests/k?id=x", ""))
	if fate.State != wire.RequestRefused || fate.Code != wire.CodeRevisionMismatch || fate.Current == nil || *fate.Current != 4 {
		t.Errorf("fate %+v", fate)
	}
}

func TestReadsOfOneKey(t *testing.T) {
	s := newSite(t)
	s.do("PUT", "/v1/kv/a%20b/%C3%BC", "eins", "Change-Reason: first", "Content-Type: text/html").is(201, wire.Applied)
	s.do("PUT", "/v1/kv/a%20b%2Fü", "zwei").is(200, wire.Applied)
	get := s.do("GET", "/v1/kv/a%20b/%C3%BC", "").is(200, "").has("Content-Type", wire.TypeBytes).has("Content-Length", "4").
		has("X-Content-Type-Options", "nosniff").has("Content-Security-Policy", "default-src 'none'; sandbox")
	if get.body != "zwei" {
		t.Errorf("value %q", get.body)
	}
	head := s.do("HEAD", "/v1/kv/a%20b/%C3%BC", "").is(200, "").has("ETag", `"2"`).has("Content-Length", "4")
	if head.header.Get("Fence-Version") != "2" {
		t.Errorf("head %v", head.header)
	}
	s.do("GET", "/v1/kv/a%20b/%C3%BC", "", `If-None-Match: "2"`).is(304, "").has("ETag", `"2"`)
	s.do("GET", "/v1/kv/a%20b/%C3%BC", "", `If-None-Match: "1"`).is(200, "")
	if v := s.do("GET", "/v1/kv/a%20b/%C3%BC?revision=1", "").is(200, "").has("ETag", `"1"`).has("Content-Type", "text/html"); v.body != "eins" {
		t.Errorf("value at 1: %q", v.body)
	}
	s.do("GET", "/v1/kv/a%20b/%C3%BC?revision=0", "").is(404, "").fails(wire.CodeKeyNotFound)
	s.do("GET", "/v1/kv/a%20b/%C3%BC?revision=3", "").is(400, "").fails(wire.CodeInvalidRequest)
	meta := decode[wire.Entry](s.do("GET", "/v1/kv/a%20b/%C3%BC?meta", "").is(200, ""))
	if meta.Key != "a b/ü" || meta.Version != 2 || meta.Size != 4 || len(meta.History) != 1 || meta.History[0].Reason != "first" || meta.StoreRevision != 2 {
		t.Errorf("meta %+v", meta)
	}
	s.do("DELETE", "/v1/kv/a%20b/%C3%BC", "").is(200, wire.Applied)
	s.do("GET", "/v1/kv/a%20b/%C3%BC", "").is(404, "").fails(wire.CodeKeyNotFound)
	if gone := decode[wire.Entry](s.do("GET", "/v1/kv/a%20b/%C3%BC?meta=true", "").is(200, "")); !gone.Deleted || gone.Version != 3 || len(gone.History) != 2 {
		t.Errorf("meta of a deleted key %+v", gone)
	}
	for range fsm.DefaultSettings().History + 1 {
		s.do("PUT", "/v1/kv/a%20b/%C3%BC", "x").is2xx()
	}
	s.do("GET", "/v1/kv/a%20b/%C3%BC?revision=1", "").is(410, "").fails(wire.CodeCompacted)
}

func (a *answer) is2xx() {
	a.t.Helper()
	if a.status/100 != 2 {
		a.t.Fatalf("%s: %d %s", a.what, a.status, a.body)
	}
}

func TestStaleReadSaysItsAge(t *testing.T) {
	s := newSite(t)
	s.do("PUT", "/v1/kv/k", "v").is(201, wire.Applied)
	s.node.age = 1500 * time.Millisecond
	s.do("GET", "/v1/kv/k?consistency=stale", "").is(200, "").has("Fence-Age-Ms", "1500").has("Fence-Revision", "1")
	list := decode[wire.List](s.do("GET", "/v1/kv?consistency=stale", "").is(200, ""))
	if list.AgeMs == nil || *list.AgeMs != 1500 {
		t.Errorf("list %+v", list)
	}
	s.do("GET", "/v1/kv/k?consistency=linearizable", "").is(200, "").has("Fence-Age-Ms", "")
}

func TestSequenceGoesWithoutRequestRecord(t *testing.T) {
	s := newSite(t)
	g := s.acquire("k", "A")
	token := fmt.Sprintf("Fence-Token: %d", g.Token)
	s.do("PUT", "/v1/kv/k", "1", token, "Fence-Sequence: 1").is(201, wire.Applied).has("Idempotency-Key", "").has("Fence-Request-Window-Ms", "")
	s.do("PUT", "/v1/kv/k", "1", token, "Fence-Sequence: 1").is(201, wire.Replayed)
	p := s.do("PUT", "/v1/kv/k", "3", token, "Fence-Sequence: 3").is(409, wire.Refused).fails(wire.CodeSequenceGap)
	if p.Expected != 2 {
		t.Errorf("problem %+v", p)
	}
	if n := s.node.state.Counts().Requests; n != 1 {
		t.Errorf("%d request records; only the acquire has one", n)
	}
}

func TestListPages(t *testing.T) {
	s := newSite(t)
	for _, key := range []string{"a/1", "a/2", "a/3", "b"} {
		s.do("PUT", "/v1/kv/"+key, "v of "+key).is(201, wire.Applied)
	}
	s.do("PUT", "/v1/kv/a/4", "\xff").is(201, wire.Applied)
	s.do("DELETE", "/v1/kv/a/2", "").is(200, wire.Applied)
	var keys []string
	after := ""
	for {
		page := decode[wire.List](s.do("GET", "/v1/kv?prefix=a/&limit=2&values=true&after="+after, "").is(200, ""))
		for _, k := range page.Keys {
			data, err := k.Bytes()
			if err != nil || k.Size != len(data) {
				t.Errorf("%s: %q, %v", k.Key, data, err)
			}
			keys = append(keys, k.Key+"="+string(data))
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if got := strings.Join(keys, " "); got != "a/1=v of a/1 a/3=v of a/3 a/4=\xff" {
		t.Errorf("listed %q", got)
	}
	if page := decode[wire.List](s.do("GET", "/v1/kv", "")); len(page.Keys) != 4 || page.Keys[0].Value.Value != nil || page.StoreRevision != 6 {
		t.Errorf("page %+v", page)
	}
}

// A page of large values ends early, and the next goes on where it ended.
func TestListOfValuesIsBoundedInBytes(t *testing.T) {
	s := newSite(t)
	big := strings.Repeat("x", 256<<10)
	for i := range 20 {
		s.do("PUT", fmt.Sprintf("/v1/kv/k%02d", i), big).is(201, wire.Applied)
	}
	seen, after := 0, ""
	for pages := 0; ; pages++ {
		page := decode[wire.List](s.do("GET", "/v1/kv?values=true&after="+after, ""))
		seen += len(page.Keys)
		if after = page.Next; after == "" {
			if seen != 20 || pages != 1 {
				t.Errorf("%d keys on %d pages", seen, pages+1)
			}
			return
		}
	}
}

func TestTxn(t *testing.T) {
	s := newSite(t)
	a := s.acquire("app/", "A")
	body := fmt.Sprintf(`{"resource":"app/","tokens":[%d],"ops":[
		{"op":"put","key":"app/x","value":"1","ifRevision":0,"contentType":"text/plain"},
		{"op":"put","key":"free","valueBase64":"/w=="},
		{"op":"check","key":"app/y","ifExists":false}]}`, a.Token)
	done := decode[wire.Committed](s.do("POST", "/v1/txn", body, "Idempotency-Key: t1", "Content-Type: application/json; charset=utf-8").is(200, wire.Applied))
	if done.Resource != "app/" || fmt.Sprint(done.Versions) != "[1 1 0]" || done.RequestID != "t1" {
		t.Errorf("committed %+v", done)
	}
	s.do("POST", "/v1/txn", body, "Idempotency-Key: t1").is(200, wire.Replayed)
	p := s.do("POST", "/v1/txn", body).is(412, wire.Refused).fails(wire.CodeRevisionMismatch)
	if p.FailedOp == nil || *p.FailedOp != 0 || p.Key != "app/x" || p.Current == nil || *p.Current != done.Revision {
		t.Errorf("problem %+v", p)
	}
	p = s.do("POST", "/v1/txn", `{"resource":"r","ops":[{"op":"put","key":"free","value":"2"},{"op":"delete","key":"app/x"}]}`).
		is(428, wire.Refused).fails(wire.CodeTokenRequired)
	if p.FailedOp == nil || *p.FailedOp != 1 || p.Key != "app/x" {
		t.Errorf("problem %+v", p)
	}
	if v := s.do("GET", "/v1/kv/free", "").body; v != "\xff" {
		t.Errorf("free is %q", v)
	}
}
