package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gorilla/mux"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// endpoint is one method of one route, and all it accepts beside its body. What
// it does not accept it refuses: a parameter or header that is silently ignored
// is a precondition its caller believes in.
type endpoint struct {
	method  string
	params  []string // query parameters
	headers []string // protocol headers; see protocolHeaders
	serve   func(w http.ResponseWriter, c *call) error
}

// call is a request whose headers and query passed.
type call struct {
	*http.Request
	takes []string // protocol headers of the endpoint
	arg   string   // the rest of the path, decoded once
	query url.Values
	id    string // request ID, empty where the endpoint takes none or goes without
	body  []byte
	held  *atomic.Int64 // the account its body is on, nil for none
	hold  int64         // bytes

	fields fields // of the answer
}

// release gives back the memory of the body.
func (c *call) release() {
	if c.held != nil {
		c.held.Add(-c.hold)
		c.held, c.body = nil, nil
	}
}

// router lists every route. Paths are matched as they were sent: neither
// cleaned, which would answer PUT /v1/kv/a//b with a redirect that loses the
// write (gorilla/mux #142), nor decoded before the argument is cut out.
func (h *Handler) router() http.Handler {
	m := mux.NewRouter().SkipClean(true).UseEncodedPath()
	identified := []string{wire.HeaderIdempotencyKey, wire.HeaderRequestID, wire.HeaderRequestBase, wire.HeaderReason}
	conditional := []string{wire.HeaderIfMatch, wire.HeaderIfNoneMatch}
	write := slices.Concat(identified, conditional, []string{wire.HeaderToken, wire.HeaderSequence})
	lock := identified[:3]
	consistency := "consistency"

	h.route(m, wire.RouteKV, endpoint{"GET", []string{"prefix", "limit", "after", "values", consistency}, nil, h.listKeys})
	h.route(m, wire.RouteKV+"/{arg:.*}",
		endpoint{"GET", []string{"revision", "meta", consistency}, []string{wire.HeaderIfNoneMatch}, h.getKey},
		endpoint{"PUT", nil, write, h.putKey},
		endpoint{"DELETE", nil, write, h.deleteKey})
	h.route(m, wire.RouteTxn, endpoint{"POST", nil, identified, h.txn})

	h.route(m, wire.RouteAcquire+"{arg:.*}", endpoint{"POST", nil, lock, h.acquire})
	h.route(m, wire.RouteRenew+"{arg:.*}", endpoint{"POST", nil, lock, h.renew})
	h.route(m, wire.RouteRelease+"{arg:.*}", endpoint{"POST", nil, lock, h.release})
	h.route(m, wire.RouteRevoke+"{arg:.*}", endpoint{"POST", nil, identified, h.revoke})
	h.route(m, wire.RouteRequire+"{arg:.*}", endpoint{"POST", nil, identified, h.require})
	h.route(m, wire.RoutePurge, endpoint{"POST", []string{"prefix"}, identified, h.purge})
	h.route(m, wire.RouteLocks, endpoint{"GET", []string{"prefix", "limit", "after", "all", consistency}, nil, h.listLocks})
	h.route(m, wire.RouteLocks+"/{arg:.*}", endpoint{"GET", []string{consistency}, nil, h.getLock})

	h.route(m, wire.RouteRequests+"{arg:.*}", endpoint{"GET", []string{"id", consistency}, nil, h.getRequest})
	h.route(m, wire.RouteSeal+"{arg:.*}", endpoint{"POST", []string{"id"}, []string{wire.HeaderRequestBase}, h.seal})
	h.route(m, wire.RouteDecisions, endpoint{"GET", []string{"resource", "code", "after", "limit", consistency}, nil, h.listDecisions})

	h.route(m, wire.RouteCluster, endpoint{"GET", nil, nil, h.getCluster})
	h.route(m, wire.RouteMembers, endpoint{"POST", nil, nil, h.joinMember})
	h.route(m, wire.RouteMembers+"/{arg:[^/]*}", endpoint{"DELETE", nil, nil, h.removeMember})
	h.route(m, wire.RouteTransfer, endpoint{"POST", nil, nil, h.transfer})
	h.route(m, wire.RoutePeer, endpoint{"GET", nil, nil, h.getPeer})
	h.route(m, wire.RouteStatus, endpoint{"GET", nil, nil, h.getStatus})
	h.route(m, wire.RouteHealth, endpoint{"GET", nil, nil, h.health})
	h.route(m, wire.RouteReady, endpoint{"GET", nil, nil, h.ready})
	h.route(m, wire.RouteProblems+"{arg:[^/]*}", endpoint{"GET", nil, nil, h.problemPage})
	m.NotFoundHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, refuse(wire.CodeRouteNotFound))
	})
	return m
}

// route serves the endpoints at path. HEAD is GET without a body; any other
// method is a 405, OPTIONS too: no page of another site may call this API.
func (h *Handler) route(m *mux.Router, path string, endpoints ...endpoint) {
	var allow []string
	for _, e := range endpoints {
		allow = append(allow, e.method)
		if e.method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	m.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		for i := range endpoints {
			method := endpoints[i].method
			if r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
				h.serve(w, r, &endpoints[i])
				return
			}
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		h.fail(w, r, refuse(wire.CodeMethodNotAllowed))
	})
}

// serve checks what all endpoints have in common and calls e.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, e *endpoint) {
	c := &call{Request: r, takes: e.headers}
	defer c.release()
	err := h.prepare(w, c, e)
	if err == nil {
		err = e.serve(w, c)
	}
	if err != nil {
		c.release()
		h.pace(r.Context(), err)
		h.fail(w, r, err)
	}
}

func (h *Handler) prepare(w http.ResponseWriter, c *call, e *endpoint) error {
	if mutates(c.Method) {
		if err := checkOrigin(c.Request); err != nil {
			return err
		}
	}
	if err := checkFraming(w, c.Request); err != nil {
		return err
	}
	if err := checkHeaders(c.Header, e.headers); err != nil {
		return err
	}
	var err error
	if c.query, err = parseQuery(c.URL.RawQuery, e.params); err != nil {
		return err
	}
	if c.arg, err = url.PathUnescape(mux.Vars(c.Request)["arg"]); err != nil {
		return invalid("path", "is not percent-encoded UTF-8")
	}
	if slices.Contains(e.headers, wire.HeaderIdempotencyKey) {
		return identifyRequest(w, c)
	}
	return nil
}
