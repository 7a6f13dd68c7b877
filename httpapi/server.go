package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Bounds of the HTTP server itself. Bodies and long waits set deadlines of
// their own (body.go, submit.go).
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // whole request; also ends the draining of a body nobody asked for
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 8192
)

// Handler serves the API of one node.
type Handler struct {
	cfg    Config
	node   Node
	name   string   // of the node
	names  []string // the name as the value of a header
	log    hclog.Logger
	hosts  map[string]bool
	routes http.Handler
	proxy  *httputil.ReverseProxy

	requests atomic.Int64 // under way
	bodies   atomic.Int64 // bytes held
	refusals pacer
}

// New returns the handler for cfg.
func New(cfg Config) (*Handler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("http configuration: %w", err)
	}
	hello := cfg.Node.Hello()
	h := &Handler{
		cfg: cfg, node: cfg.Node, name: hello.Name, names: []string{hello.Name}, log: cfg.Logger.Named("http"),
		hosts: allowedHosts(append([]string{hello.HTTPAddress}, cfg.Hosts...)),
	}
	h.proxy = h.newProxy()
	h.routes = h.router()
	return h, nil
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.identify(w, r.Method)
	if h.requests.Add(1) > h.cfg.MaxRequests {
		h.requests.Add(-1)
		h.pace(r.Context(), overloaded())
		h.fail(w, r, overloaded())
		return
	}
	defer h.requests.Add(-1)
	if err := h.checkHost(r); err != nil {
		h.fail(w, r, err)
		return
	}
	h.routes.ServeHTTP(w, r)
}

// NewHTTPServer returns a server for handler on addr, with bounds on slow and
// large requests. It speaks HTTP/1.1 and HTTP/2, the latter without TLS too.
func NewHTTPServer(addr string, handler http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		Protocols:         &protocols,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,

		DisableGeneralOptionsHandler: true,
	}
}
