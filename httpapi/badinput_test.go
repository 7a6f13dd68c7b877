package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// bad is one request that must be refused before anything is proposed.
type bad struct {
	method, target, body string
	headers              []string
	status               int
	field                string // of an invalid_request
}

const goodAcquire = `{"holder":"A","ttlMs":10000`

func badPaths() []bad {
	var rows []bad
	for _, path := range []string{
		"a/../b", "/x", "a//b", "%2e%2e%2f", "%2e/x", "..", ".", "a/.", "a/%2E%2E", "", "a/", "%00", "a%0Ab", "a%7F", "a%C2%85",
		"%ff", "a%C0%AF", strings.Repeat("k", fsm.MaxKeyBytes+1), "%2Fa", "a%2F%2Fb",
	} {
		for _, method := range []string{"PUT", "GET", "DELETE"} {
			rows = append(rows, bad{method: method, target: "/v1/kv/" + path, status: 400, field: "key"})
		}
	}
	for _, path := range []string{"", "a//b", "a/../b", "%00", "//"} {
		for _, verb := range []string{"revoke", "require"} {
			rows = append(rows, bad{method: "POST", target: "/v1/" + verb + "/" + path, status: 400, field: "resource"})
		}
		rows = append(rows,
			bad{method: "POST", target: "/v1/acquire/" + path, body: goodAcquire + "}", status: 400, field: "resource"},
			bad{method: "POST", target: "/v1/seal/" + path + "?id=x", status: 400, field: "resource"},
			bad{method: "GET", target: "/v1/locks/" + path, status: 400, field: "resource"},
			bad{method: "GET", target: "/v1/requests/" + path + "?id=x", status: 400, field: "resource"})
	}
	return rows
}

func badHeaders() []bad {
	var rows []bad
	put := func(field string, headers ...string) {
		rows = append(rows, bad{method: "PUT", target: "/v1/kv/k", body: "v", headers: headers, status: 400, field: field})
	}
	for _, number := range []string{"05", "+5", "5_0", " 5", "5.0", "1e3", "0x5", "٥", "", "-1", "5 6", "5, 6", "1000000000000000", "18446744073709551616"} {
		put("Fence-Token", "Fence-Token: "+number)
		put("Request-Base", "Request-Base: "+number)
		put("Fence-Sequence", "Fence-Token: 1", "Fence-Sequence: "+number)
		put("If-Match", `If-Match: "`+number+`"`)
	}
	put("Fence-Token", "Fence-Token: 0")
	put("Fence-Sequence", "Fence-Token: 1", "Fence-Sequence: 0")
	put("sequence", "Fence-Sequence: 1")
	for _, tag := range []string{"", "5", `W/"5"`, `"5", "6"`, `"`, "**", `"*"`} {
		put("If-Match", "If-Match: "+tag)
	}
	for _, tag := range []string{"", `"5"`, `W/"5"`, "**"} {
		put("If-None-Match", "If-None-Match: "+tag)
	}
	put("If-None-Match", `If-Match: "5"`, "If-None-Match: *")
	for _, id := range []string{"", strings.Repeat("x", 129), "a b", `"a`, `"a"b`, `""`, "é", "a\tb"} {
		put("Idempotency-Key", "Idempotency-Key: "+id)
		put("Request-Id", "Request-Id: "+id)
	}
	put("Request-Id", "Idempotency-Key: a", "Request-Id: a")
	for _, name := range []string{"Fence-Token", "Idempotency-Key", "Request-Id", "Request-Base", "Fence-Sequence", "If-Match", "If-None-Match", "Change-Reason", "Content-Type"} {
		put(name, name+": 5", name+": 5")
	}
	put("changeReason", "Change-Reason: "+strings.Repeat("x", 257))
	put("Change-Reason", "Change-Reason: \xff")
	put("Content-Type", "Content-Type: "+strings.Repeat("x", 257))
	put("Content-Type", "Content-Type: text/ü")
	rows = append(rows,
		bad{method: "GET", target: "/v1/kv/k", headers: []string{"If-None-Match: *"}, status: 400, field: "If-None-Match"},
		bad{method: "GET", target: "/v1/kv/k", headers: []string{`If-None-Match: W/"1"`}, status: 400, field: "If-None-Match"},
		bad{method: "GET", target: "/v1/kv/k", headers: []string{"Fence-Token: 1"}, status: 400, field: "Fence-Token"},
		bad{method: "POST", target: "/v1/acquire/k", body: goodAcquire + "}", headers: []string{"Fence-Token: 1"}, status: 400, field: "Fence-Token"},
		bad{method: "POST", target: "/v1/acquire/k", body: goodAcquire + "}", headers: []string{`If-Match: "1"`}, status: 400, field: "If-Match"},
		bad{method: "POST", target: "/v1/txn", body: `{}`, headers: []string{"Fence-Token: 1"}, status: 400, field: "Fence-Token"},
		bad{method: "POST", target: "/v1/seal/k?id=x", headers: []string{"Idempotency-Key: x"}, status: 400, field: "Idempotency-Key"})
	return rows
}

func badQueries() []bad {
	rows := []bad{
		{method: "PUT", target: "/v1/kv/k?cas=1", body: "v", status: 400, field: "cas"},
		{method: "PUT", target: "/v1/kv/k?acquire=1&cas=1", body: "v", status: 400},
		{method: "GET", target: "/v1/kv/k?meta=1", status: 400, field: "meta"},
		{method: "GET", target: "/v1/kv/k?meta&meta", status: 400, field: "meta"},
		{method: "GET", target: "/v1/kv/k?meta&revision=1", status: 400, field: "revision"},
		{method: "GET", target: "/v1/kv/k?revision=01", status: 400, field: "revision"},
		{method: "GET", target: "/v1/kv/k?revision=99", status: 400, field: "revision"},
		{method: "GET", target: "/v1/kv/k?consistency=eventual", status: 400, field: "consistency"},
		{method: "GET", target: "/v1/kv/k?consistency=", status: 400, field: "consistency"},
		{method: "GET", target: "/v1/kv?limit=0", status: 400, field: "limit"},
		{method: "GET", target: "/v1/kv?limit=1001", status: 400, field: "limit"},
		{method: "GET", target: "/v1/kv?limit=+5", status: 400, field: "limit"},
		{method: "GET", target: "/v1/kv?prefix=%ff", status: 400, field: "prefix"},
		{method: "GET", target: "/v1/kv?after=" + strings.Repeat("k", 513), status: 400, field: "after"},
		{method: "GET", target: "/v1/kv?values=yes", status: 400, field: "values"},
		{method: "GET", target: "/v1/kv?a;b", status: 400, field: "query"},
		{method: "GET", target: "/v1/decisions?after=-1", status: 400, field: "after"},
		{method: "GET", target: "/v1/requests/k", status: 400, field: "id"},
		{method: "POST", target: "/v1/seal/k", status: 400, field: "id"},
		{method: "POST", target: "/v1/seal/k?id=a%20b", status: 400, field: "id"},
		{method: "POST", target: "/v1/purge", status: 400, field: "prefix"},
		{method: "POST", target: "/v1/purge?prefix=a", status: 400, field: "prefix"},
		{method: "GET", target: "/v1/status?verbose", status: 400, field: "verbose"},
		{method: "GET", target: "/healthz?x", status: 400, field: "x"},
	}
	return rows
}

func badBodies() []bad {
	var rows []bad
	acquire := func(field, body string) {
		rows = append(rows, bad{method: "POST", target: "/v1/acquire/k", body: body, status: 400, field: field})
	}
	for _, body := range []string{
		"", "null", "[]", `"x"`, "5", "{", "{}x", "{}{}", "\ufeff{}", goodAcquire, `{"holder":"A","ttlMs":NaN}`,
		strings.Repeat("[", 10_000), `{"holder":` + strings.Repeat("[", 10_000), `{"holder":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}`,
		"{\"holder\":\"\xff\",\"ttlMs\":10000}", `{"holder":"\ud800","ttlMs":10000}`, `{"holder":"\udc00\ud800","ttlMs":10000}`, `{"holder":"\ud800\u0041","ttlMs":10000}`,
		goodAcquire + `,"unknown":1}`,
	} {
		acquire("body", body)
	}
	acquire("holder", `{"holder":"A","holder":"B","ttlMs":10000}`)
	acquire("Holder", `{"holder":"A","Holder":"B","ttlMs":10000}`)
	acquire("holder", `{"holder":5,"ttlMs":10000}`)
	acquire("holder", `{"ttlMs":10000}`)
	acquire("holder", `{"holder":"a\u0000","ttlMs":10000}`)
	for _, ttl := range []string{"0", "-1", "999", "86400001", "9223372036854775807"} {
		acquire("ttlMs", `{"holder":"A","ttlMs":`+ttl+`}`)
	}
	for _, ttl := range []string{"1e4", "10000.0", "9223372036854775808", "1e400", `"10000"`} {
		acquire("ttlMs", `{"holder":"A","ttlMs":`+ttl+`}`)
	}
	for _, wait := range []string{"-1", "86400001"} {
		acquire("waitMs", goodAcquire+`,"waitMs":`+wait+`}`)
	}
	acquire("fence", goodAcquire+`,"fence":"none"}`)
	acquire("ifToken", goodAcquire+`,"ifToken":-1}`)
	acquire("ifToken", goodAcquire+`,"ifToken":1000000000000000}`)

	txn := func(field, ops string) {
		rows = append(rows, bad{method: "POST", target: "/v1/txn", body: `{"resource":"r","ops":[` + ops + `]}`, status: 400, field: field})
	}
	txn("ops", "")
	txn("ops", strings.Repeat(`{"op":"delete","key":"k"},`, 128)+`{"op":"delete","key":"k"}`)
	txn("ops", `{"op":"delete","key":"k"},{"op":"put","key":"k","value":""}`)
	txn("ops[0].op", `{"op":"get","key":"k"}`)
	txn("ops[0].value", `{"op":"put","key":"k"}`)
	txn("ops[0].value", `{"op":"put","key":"k","value":"a","valueBase64":"YQ=="}`)
	txn("ops[0].value", `{"op":"delete","key":"k","value":"a"}`)
	txn("ops[0].contentType", `{"op":"put","key":"k","value":"a","contentType":"a\nb"}`)
	txn("ops[0].ifExists", `{"op":"delete","key":"k","ifExists":true,"ifRevision":1}`)
	txn("check", `{"op":"check","key":"k"}`)
	txn("key", `{"op":"put","key":"a//b","value":"a"}`)
	txn("body", `{"op":"put","key":"k","valueBase64":"***"}`)
	rows = append(rows,
		bad{method: "POST", target: "/v1/txn", body: `{"resource":"r","tokens":[0],"ops":[{"op":"delete","key":"k"}]}`, status: 400, field: "tokens"},
		bad{method: "POST", target: "/v1/txn", body: `{"resource":"","ops":[{"op":"delete","key":"k"}]}`, status: 400, field: "resource"},
		bad{method: "POST", target: "/v1/renew/k", body: `{}`, status: 400, field: "leaseId"},
		bad{method: "POST", target: "/v1/release/k", body: `{"leaseId":"a b"}`, status: 400, field: "leaseId"},
		bad{method: "POST", target: "/v1/revoke/k", body: `{}`, status: 400, field: "body"},
		bad{method: "DELETE", target: "/v1/kv/k", body: "v", status: 400, field: "body"},
		bad{method: "GET", target: "/v1/kv/k", body: "v", status: 400, field: "body"},
		bad{method: "PUT", target: "/v1/kv/k", body: strings.Repeat("x", 256<<10+1), status: 413},
		bad{method: "POST", target: "/v1/acquire/k", body: goodAcquire + `,"holder":"` + strings.Repeat("x", 64<<10) + `"}`, status: 413})
	for _, media := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "application/jsonx", ";"} {
		rows = append(rows, bad{method: "POST", target: "/v1/acquire/k", body: goodAcquire + "}", headers: []string{"Content-Type: " + media}, status: 415})
	}
	for _, header := range []string{"Content-Encoding: gzip", "Content-Encoding: identity", "Content-Range: bytes 0-1/2", "Upgrade: h2c"} {
		rows = append(rows, bad{method: "PUT", target: "/v1/kv/k", body: "v", headers: []string{header}, status: 415})
	}
	return rows
}

func badCallers() []bad {
	var rows []bad
	put := func(status int, headers ...string) {
		rows = append(rows, bad{method: "PUT", target: "/v1/kv/k", body: "v", headers: headers, status: status})
	}
	for _, host := range []string{"evil.example", "n1.example.evil.example", "localhost.evil.example", "192.0.2.1:8700", "", "127.0.0.1.evil.example", "[::2]:8700"} {
		put(421, "Host: "+host)
		rows = append(rows, bad{method: "GET", target: "/v1/kv/k", headers: []string{"Host: " + host}, status: 421})
	}
	put(403, "Origin: http://evil.example")
	put(403, "Origin: null")
	put(403, "Sec-Fetch-Site: cross-site")
	put(403, "Sec-Fetch-Site: same-site")
	for _, method := range []string{"OPTIONS", "PATCH", "put", "POST", "TRACE"} {
		rows = append(rows, bad{method: method, target: "/v1/kv/k", status: 405})
	}
	for _, target := range []string{"/", "/v1", "/v1/", "/v2/kv/k", "/v1/nothing", "/v1/kvx", "/V1/kv/k", "//v1/kv/k", "/v1//kv/k", "/v1/k%76/k", "/v1/watch", "/v1/backup", "/metrics", "/problems/nothing", "/v1/status/"} {
		rows = append(rows, bad{method: "GET", target: target, status: 404})
	}
	return rows
}

// Nothing malformed is forgiven, each refusal names what is wrong, and none
// changes anything: the store's state is the very same value after as before.
func TestBadInputChangesNothing(t *testing.T) {
	s := newSite(t)
	s.do("PUT", "/v1/kv/before", "v").is(201, wire.Applied)
	for group, rows := range map[string][]bad{
		"paths": badPaths(), "headers": badHeaders(), "queries": badQueries(), "bodies": badBodies(), "callers": badCallers(),
	} {
		for i, row := range rows {
			before := s.node.state
			a := s.do(row.method, row.target, row.body, row.headers...)
			name := fmt.Sprintf("%s %d: %s %.80q %q %.80q", group, i, row.method, row.target, row.headers, row.body)
			if a.status != row.status {
				t.Errorf("%s: %d, want %d: %s", name, a.status, row.status, a.body)
				continue
			}
			if s.node.state != before {
				t.Errorf("%s: changed the state", name)
			}
			p := a.problem()
			if row.status == 400 && (p.Code != wire.CodeInvalidRequest || p.Field == "" || row.field != "" && p.Field != row.field) {
				t.Errorf("%s: field %q, want %q (%s)", name, p.Field, row.field, p.Detail)
			}
			if row.status == 405 && !strings.Contains(a.header.Get("Allow"), "PUT, DELETE") {
				t.Errorf("%s: Allow %q", name, a.header.Get("Allow"))
			}
		}
	}
}

func TestCallersThatMay(t *testing.T) {
	s := newSite(t)
	for _, headers := range [][]string{
		{"Host: localhost"},
		{"Host: LOCALHOST:8700"},
		{"Host: 127.1.2.3"},
		{"Host: [::1]:8700"},
		{"Host: n1.example:9"},
		{"Host: N1.example."},
		{"Sec-Fetch-Site: none"},
		{"Sec-Fetch-Site: same-origin"},
		{"Content-Type: application/x-www-form-urlencoded"},
	} {
		s.do("PUT", "/v1/kv/k", "v", headers...).is2xx()
	}
	s.do("GET", "/v1/kv/k", "", "Origin: http://evil.example").is(200, "").has("Access-Control-Allow-Origin", "")
	s.do("GET", "/healthz", "", "Host: 10.1.2.3:8700").is(200, "")

	s.node.mu.Lock()
	s.node.apply(&fsm.Command{Op: &fsm.SetMember{Member: fsm.Member{Name: "n2", HTTPAddress: "http://n2.example:8700"}}})
	s.node.mu.Unlock()
	s.do("PUT", "/v1/kv/k", "v", "Host: n2.example:8700").is2xx()
}

// A body whose length nobody announced is cut at the limit and stored nowhere.
func TestUnannouncedBodyOverTheLimit(t *testing.T) {
	s := newSite(t)
	before := s.node.state
	r := httptest.NewRequest("PUT", "/v1/kv/k", bytes.NewReader(make([]byte, 256<<10+1)))
	r.Host, r.ContentLength, r.TransferEncoding = "localhost", -1, []string{"chunked"}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || s.node.state != before || w.Header().Get("Connection") != "close" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if !strings.Contains(w.Body.String(), `"bound":262144`) {
		t.Errorf("body %s", w.Body)
	}
}
