package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// A path is refused, or it is the one key it decodes to; its canonical spelling
// then leads to the same value.
func FuzzKeyPath(f *testing.F) {
	for _, path := range []string{"a", "a/b", "a%2Fb", "a//b", "../a", "%2e%2e/a", "%00", "%ff", "ü", "a%20b", "a+b", "%zz", "a;b", "a:b", "%25%32%46"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI("/v1/kv/" + path)
		if err != nil || u.RawQuery != "" || u.ForceQuery {
			return
		}
		s := newSite(t)
		before := s.node.state
		r := httptest.NewRequest("PUT", "/", strings.NewReader("v"))
		r.URL, r.Host = u, "localhost"
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		key, err := url.PathUnescape(path)
		if err != nil || fsm.CheckKey(key) != "" {
			if w.Code != http.StatusBadRequest || s.node.state != before {
				t.Fatalf("%q: %d %s", path, w.Code, w.Body)
			}
			return
		}
		if w.Code != http.StatusCreated || s.node.state.Counts().Keys != 1 || s.node.state.Entry(key) == nil {
			t.Fatalf("%q is the key %q: %d %s", path, key, w.Code, w.Body)
		}
		s.do("GET", "/v1/kv/"+wire.KeyPath(key), "").is(200, "")
	})
}

// Whatever stands in the headers, a write is refused as invalid and nothing is
// proposed, or it is decided on exactly what they say.
func FuzzWriteHeaders(f *testing.F) {
	f.Add("1", "1", `"5"`, "", "id", "0", "why")
	f.Add("05", "", "*", "*", `"id"`, "-1", "\xff")
	f.Add("", "", "", "*", "", "", "")
	f.Fuzz(func(t *testing.T, token, sequence, match, none, id, base, reason string) {
		s := newSite(t)
		before := s.node.state
		r := httptest.NewRequest("PUT", "/v1/kv/k", strings.NewReader("v"))
		r.Host = "localhost"
		for name, text := range map[string]string{
			wire.HeaderToken: token, wire.HeaderSequence: sequence, wire.HeaderIfMatch: match, wire.HeaderIfNoneMatch: none,
			wire.HeaderIdempotencyKey: id, wire.HeaderRequestBase: base, wire.HeaderReason: reason,
		} {
			if text != "" {
				r.Header.Set(name, text)
			}
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusBadRequest:
			if s.node.state != before {
				t.Fatalf("%v: changed the state: %s", r.Header, w.Body)
			}
		case http.StatusCreated:
			v := s.node.state.Entry("k").Now
			parsed, _ := wire.ParseRequestID(id)
			if token != "" && token != fmt.Sprint(v.Token) || v.Reason != reason || parsed != "" && v.RequestID != parsed {
				t.Fatalf("%v: stored %+v", r.Header, v)
			}
		case http.StatusPreconditionFailed, http.StatusConflict:
			if s.node.state.Entry("k") != nil {
				t.Fatalf("%v: stored although refused: %s", r.Header, w.Body)
			}
		default:
			t.Fatalf("%v: %d %s", r.Header, w.Code, w.Body)
		}
	})
}

// Whatever stands in a JSON body, it is refused and nothing is proposed, or it
// is decided.
func FuzzJSONBody(f *testing.F) {
	f.Add("acquire/k", goodAcquire+"}")
	f.Add("txn", `{"resource":"r","ops":[{"op":"put","key":"k","value":"\ud83d\ude00"}]}`)
	f.Add("renew/k", `{"leaseId":"x","ttlMs":1e4}`)
	f.Add("release/k", `{"leaseId":"x","leaseId":"y"}`)
	f.Fuzz(func(t *testing.T, route, body string) {
		switch route {
		case "acquire/k", "txn", "renew/k", "release/k":
		default:
			return
		}
		s := newSite(t)
		before := s.node.state
		a := s.do("POST", "/v1/"+route, body)
		if proposed := s.node.state != before; proposed == (a.status == 400 || a.status == 413) || a.status >= 500 {
			t.Fatalf("%q: %d %s", body, a.status, a.body)
		}
	})
}
