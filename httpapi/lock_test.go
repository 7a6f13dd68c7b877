package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func TestLease(t *testing.T) {
	s := newSite(t)
	body := `{"holder":"A","ttlMs":10000,"fence":"write"}`
	first := s.do("POST", "/v1/acquire/app/", body, "Idempotency-Key: q1").is(201, wire.Applied).has("Fence-Token", "1")
	a := decode[wire.Granted](first)
	if a.Resource != "app/" || a.Holder != "A" || a.Token != 1 || len(a.LeaseID) != 32 || a.TTLMs != 10_000 || a.RemainingMs != 10_000 ||
		a.Fence != "write" || a.MaxToken != 0 || a.RequestID != "q1" || a.Replayed {
		t.Errorf("granted %+v", a)
	}
	s.node.pass(4 * time.Second)
	again := decode[wire.Granted](s.do("POST", "/v1/acquire/app/", body, "Idempotency-Key: q1").is(201, wire.Replayed))
	if again.LeaseID != a.LeaseID || again.Token != a.Token || again.RemainingMs != 6_000 || !again.Replayed {
		t.Errorf("resend %+v", again)
	}

	p := s.do("POST", "/v1/acquire/app/x", `{"holder":"B","ttlMs":10000}`).is(423, wire.Refused).has("Retry-After", "6").fails(wire.CodeLockHeld)
	if p.Holder != "A" || p.Key != "app/" || p.RemainingMs != 6_000 {
		t.Errorf("problem %+v", p)
	}
	renewed := decode[wire.Renewed](s.do("POST", "/v1/renew/app/", `{"leaseId":"`+a.LeaseID+`","ttlMs":20000}`).is(200, wire.Applied))
	if renewed.RemainingMs != 20_000 || renewed.TTLMs != 20_000 || renewed.Token != 1 {
		t.Errorf("renewed %+v", renewed)
	}
	s.do("POST", "/v1/release/app/", `{"leaseId":"someone-elses"}`).is(409, wire.Refused).fails(wire.CodeNotHolder)
	if lock := decode[wire.LockDetail](s.do("GET", "/v1/locks/app/", "")); !lock.Held || lock.MaxToken != 0 || lock.Issued != 1 || len(lock.Refusals) != 2 {
		t.Errorf("lock %+v", lock)
	}
	released := decode[wire.Changed](s.do("POST", "/v1/release/app/", `{"leaseId":"`+a.LeaseID+`"}`).is(200, wire.Applied))
	if released.Code != "released" || released.Holder != "A" || released.Token != 1 {
		t.Errorf("released %+v", released)
	}
	s.do("PUT", "/v1/kv/app/k", "late", "Fence-Token: 1").is(409, wire.Refused).fails(wire.CodeTokenRetired)
}

// A lease ID is told to the request that got it and stands in no other answer.
func TestLeaseIDIsNeverShown(t *testing.T) {
	s := newSite(t)
	g := decode[wire.Granted](s.do("POST", "/v1/acquire/k", `{"holder":"A","ttlMs":10000}`, "Idempotency-Key: q").is(201, wire.Applied))
	answers := []*answer{
		s.do("GET", "/v1/locks/k", ""), s.do("GET", "/v1/locks", ""), s.do("GET", "/v1/locks?all", ""),
		s.do("GET", "/v1/requests/k?id=q", ""), s.do("GET", "/v1/decisions", ""),
		s.do("POST", "/v1/acquire/k", `{"holder":"B","ttlMs":10000}`),
		s.do("POST", "/v1/release/k", `{"leaseId":"x"}`),
		s.do("POST", "/v1/seal/k?id=q", ""),
		s.do("POST", "/v1/renew/k", `{"leaseId":"`+g.LeaseID+`"}`),
		s.do("POST", "/v1/revoke/k", ""),
	}
	for _, a := range answers {
		if strings.Contains(a.body, g.LeaseID) {
			t.Errorf("%s shows the lease ID: %s", a.what, a.body)
		}
	}
}

// B waits while A holds; A's release grants to B in the answer B waits for.
func TestWaitingAcquireIsGranted(t *testing.T) {
	s := newSite(t)
	a := s.acquire("k", "A")
	granted := make(chan *answer)
	go func() {
		granted <- s.do("POST", "/v1/acquire/k", `{"holder":"B","ttlMs":10000,"waitMs":60000}`, "Idempotency-Key: b")
	}()
	s.waitFor(func() bool { return s.node.state.Waiter("k", "b") != nil })
	fate := decode[wire.Fate](s.do("GET", "/v1/requests/k?id=b", ""))
	if fate.State != wire.RequestWaiting || fate.RemainingMs != 60_000 || fate.Holder != "B" {
		t.Errorf("fate %+v", fate)
	}
	lock := decode[wire.LockDetail](s.do("GET", "/v1/locks/k", ""))
	if lock.Waiting != 1 || len(lock.Waiters) != 1 || lock.Waiters[0].Holder != "B" || lock.Waiters[0].Node != "n1" {
		t.Errorf("lock %+v", lock)
	}
	s.do("POST", "/v1/release/k", `{"leaseId":"`+a.LeaseID+`"}`).is(200, wire.Applied)
	b := decode[wire.Granted]((<-granted).is(201, wire.Applied))
	if b.Holder != "B" || b.Token <= a.Token || b.RemainingMs != 10_000 || len(b.LeaseID) != 32 {
		t.Errorf("granted %+v", b)
	}
}

func TestWaitIsOver(t *testing.T) {
	s := newSite(t)
	s.acquire("k", "A")
	over := make(chan *answer)
	go func() {
		over <- s.do("POST", "/v1/acquire/k", `{"holder":"B","ttlMs":10000,"waitMs":2000}`, "Idempotency-Key: b")
	}()
	s.waitFor(func() bool { return s.node.state.Waiter("k", "b") != nil })
	s.node.pass(3 * time.Second)
	p := (<-over).is(423, wire.Refused).fails(wire.CodeLockHeld)
	if p.Holder != "A" {
		t.Errorf("problem %+v", p)
	}
}

// A caller that hangs up leaves the queue.
func TestHangUpLeavesTheQueue(t *testing.T) {
	s := newSite(t)
	s.acquire("k", "A")
	ctx, hangUp := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/acquire/k", strings.NewReader(`{"holder":"B","ttlMs":10000,"waitMs":60000}`))
		r.Host = "localhost"
		r.Header.Set("Idempotency-Key", "b")
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
	}()
	s.waitFor(func() bool { return s.node.state.Waiter("k", "b") != nil })
	hangUp()
	<-done
	s.waitFor(func() bool { return s.node.state.Waiter("k", "b") == nil })
}

// waitFor waits until something holds of the node, which it may read.
func (s *site) waitFor(holds func() bool) {
	s.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		s.node.mu.Lock()
		ok, changed := holds(), s.node.changed
		s.node.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.t.Fatal("it never came about")
		}
	}
}

func TestAdministration(t *testing.T) {
	s := newSite(t)
	s.do("POST", "/v1/revoke/k", "").is(404, wire.Refused).fails(wire.CodeLockNotFound)
	s.do("GET", "/v1/locks/k", "").is(404, "").fails(wire.CodeLockNotFound)
	required := decode[wire.Changed](s.do("POST", "/v1/require/k", "", "Idempotency-Key: r").is(200, wire.Applied))
	if required.Code != "required" || required.Resource != "k" {
		t.Errorf("required %+v", required)
	}
	s.do("POST", "/v1/require/k", "", "Idempotency-Key: r").is(200, wire.Replayed)
	s.do("PUT", "/v1/kv/k", "v").is(428, wire.Refused).fails(wire.CodeTokenRequired)

	a := s.acquire("k", "A")
	revoked := decode[wire.Changed](s.do("POST", "/v1/revoke/k", "").is(200, wire.Applied))
	if revoked.Code != "revoked" || revoked.Holder != "A" || revoked.Token != a.Token || revoked.MaxToken <= a.Token {
		t.Errorf("revoked %+v", revoked)
	}
	s.do("PUT", "/v1/kv/k", "v", "Fence-Token: 1").is(409, wire.Refused).fails(wire.CodeStaleOwner)

	b := s.acquire("p/k", "B")
	s.do("PUT", "/v1/kv/p/k", "v", "Fence-Token: 2").is(201, wire.Applied)
	s.do("DELETE", "/v1/kv/p/k", "", "Fence-Token: 2").is(200, wire.Applied)
	s.do("POST", "/v1/release/p/k", `{"leaseId":"`+b.LeaseID+`"}`).is(200, wire.Applied)
	purged := decode[wire.Purged](s.do("POST", "/v1/purge?prefix=p/", "").is(200, wire.Applied))
	if purged.Prefix != "p/" || purged.Count != 1 || purged.Remaining {
		t.Errorf("purged %+v", purged)
	}
	s.do("PUT", "/v1/kv/p/k", "v").is(428, wire.Refused).fails(wire.CodeTokenRequired)
}

func TestSeal(t *testing.T) {
	s := newSite(t)
	s.do("GET", "/v1/requests/k?id=lost", "").is(404, "").fails(wire.CodeRequestNotFound)
	fate := decode[wire.Fate](s.do("POST", "/v1/seal/k?id=lost", "").is(200, wire.Applied).has("Idempotency-Key", "lost"))
	if fate.State != wire.RequestSealed || fate.Scope != "k" || fate.RequestID != "lost" {
		t.Errorf("fate %+v", fate)
	}
	s.do("PUT", "/v1/kv/k", "v", "Idempotency-Key: lost").is(409, wire.Refused).fails(wire.CodeRequestSealed)
	s.do("PUT", "/v1/kv/k", "v", "Idempotency-Key: done").is(201, wire.Applied)
	fate = decode[wire.Fate](s.do("POST", "/v1/seal/k?id=done", "").is(200, wire.Replayed))
	if fate.State != wire.RequestApplied || fate.Version != 1 {
		t.Errorf("fate %+v", fate)
	}
}

func TestLocksPage(t *testing.T) {
	s := newSite(t)
	for _, r := range []string{"a/1", "a/2", "b"} {
		s.acquire(r, "A")
	}
	s.do("POST", "/v1/require/a/0", "").is(200, wire.Applied)
	page := decode[wire.Locks](s.do("GET", "/v1/locks?prefix=a/&limit=1", ""))
	if len(page.Locks) != 1 || page.Locks[0].Resource != "a/1" || page.Next != "a/1" || page.Locks[0].RemainingMs != 10_000 {
		t.Errorf("page %+v", page)
	}
	page = decode[wire.Locks](s.do("GET", "/v1/locks?prefix=a/&limit=1&after=a/1", ""))
	if len(page.Locks) != 1 || page.Locks[0].Resource != "a/2" || page.Next != "" {
		t.Errorf("page %+v", page)
	}
	if page = decode[wire.Locks](s.do("GET", "/v1/locks?all=true", "")); len(page.Locks) != 4 || page.Locks[0].Held || !page.Locks[0].Required {
		t.Errorf("page %+v", page)
	}
}

func TestDecisionsPage(t *testing.T) {
	s := newSite(t)
	s.acquire("k", "A")
	for range 3 {
		s.do("PUT", "/v1/kv/k", "v").is(428, wire.Refused)
	}
	page := decode[wire.Decisions](s.do("GET", "/v1/decisions?code=token_required&limit=2", ""))
	if len(page.Decisions) != 2 || page.Next != page.Decisions[1].Seq {
		t.Fatalf("page %+v", page)
	}
	next, err := json.Marshal(page.Next)
	if err != nil {
		t.Fatal(err)
	}
	page = decode[wire.Decisions](s.do("GET", "/v1/decisions?code=token_required&limit=2&after="+string(next), ""))
	if len(page.Decisions) != 1 || page.Next != 0 {
		t.Errorf("page %+v", page)
	}
}
