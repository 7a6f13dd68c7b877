package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

func benchHeader() http.Header {
	header := http.Header{}
	header.Set(wire.HeaderToken, "1207")
	header.Set(wire.HeaderIdempotencyKey, "0ecfefa3f5b54604bd5a12e3ef8b1207")
	header.Set(wire.HeaderRequestBase, "8812")
	header.Set(wire.HeaderIfMatch, `"8811"`)
	header.Set("Content-Type", "application/octet-stream")
	return header
}

// BenchmarkHeaders reads what a fenced, idempotent, conditional write says in its
// headers.
func BenchmarkHeaders(b *testing.B) {
	r := httptest.NewRequest(http.MethodPut, "/v1/kv/k", nil)
	r.Header = benchHeader()
	taken := []string{wire.HeaderToken, wire.HeaderIdempotencyKey, wire.HeaderRequestBase, wire.HeaderIfMatch}
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		c := &call{Request: r}
		if err := checkHeaders(r.Header, taken); err != nil {
			b.Fatal(err)
		}
		if err := identifyRequest(w, c); err != nil {
			b.Fatal(err)
		}
		if _, err := writeTerms(r.Header); err != nil {
			b.Fatal(err)
		}
		if _, err := c.request(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAnswer is the JSON of the answer to a write.
func BenchmarkAnswer(b *testing.B) {
	h := &Handler{name: "n1"}
	d := &fsm.Decision{
		Op: fsm.KindPut, Outcome: fsm.OutcomeApplied, Resource: "orders/1207", RequestID: "0ecfefa3f5b54604bd5a12e3ef8b1207",
		Revision: 8812, Version: 3, Token: 1207, MaxToken: 1207, ClockMs: 88_120, WallMs: 1_780_000_000_000,
	}
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = appendJSON(text[:0], h.bodyOf(d))
	}
}
