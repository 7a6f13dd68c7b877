package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// problem is the error a handler returns when it knows the answer.
type problem struct {
	code       wire.Code
	field      string
	detail     string // default: the text of the code
	facts      wire.Facts
	retryAfter time.Duration
	unknown    bool
}

// Error returns the code and the detail.
func (p *problem) Error() string { return string(p.code) + ": " + p.detail }

func refuse(code wire.Code) *problem { return &problem{code: code} }

func invalid(field, format string, args ...any) *problem {
	return &problem{code: wire.CodeInvalidRequest, field: field, detail: field + " " + fmt.Sprintf(format, args...)}
}

func overloaded() *problem {
	return &problem{code: wire.CodeOverloaded, retryAfter: time.Second}
}

// reasons maps what a node could not do to the code of the answer.
var reasons = map[cluster.Reason]wire.Code{
	cluster.NoLeader:     wire.CodeNoLeader,
	cluster.Lost:         wire.CodeNoLeader,
	cluster.NotReady:     wire.CodeNotReady,
	cluster.TimedOut:     wire.CodeNotReady,
	cluster.Overloaded:   wire.CodeOverloaded,
	cluster.Removed:      wire.CodeRemovedFromCluster,
	cluster.NoSuchMember: wire.CodeMemberNotFound,
	cluster.Conflict:     wire.CodeClusterConflict,
}

// asProblem says what err means to the caller. What the caller cannot use stays
// in the log.
func asProblem(err error) *problem {
	var known *problem
	var bad *fsm.InvalidError
	var failed *cluster.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &bad):
		return &problem{code: wire.CodeInvalidRequest, field: bad.Field, detail: err.Error()}
	case errors.As(err, &failed) && failed.Unknown:
		return &problem{code: wire.CodeOutcomeUnknown, unknown: true}
	case errors.As(err, &failed):
		code, ok := reasons[failed.Reason]
		if !ok {
			return refuse(wire.CodeInternal)
		}
		p := &problem{code: code, retryAfter: failed.RetryAfter}
		if failed.Reason == cluster.Conflict && failed.Err != nil {
			p.detail = failed.Err.Error()
		}
		return p
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return refuse(wire.CodeNotReady)
	}
	return refuse(wire.CodeInternal)
}

// fail answers with err as a problem.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	info, _ := wire.Lookup(p.code)
	outcome := wire.NotApplied
	if p.unknown {
		outcome = wire.Unknown
	}
	switch {
	case info.Status == http.StatusInternalServerError:
		h.log.Error("request failed", "method", r.Method, "path", cut(r.URL.Path), "error", err)
	case info.Status > http.StatusInternalServerError:
		h.log.Debug("request failed", "method", r.Method, "path", cut(r.URL.Path), "error", err)
	}
	if header := w.Header(); mutates(r.Method) && len(header[wire.HeaderOutcome]) == 0 {
		header[wire.HeaderOutcome] = outcomes[outcome]
	}
	if wait := retryAfter(info.Status, p.retryAfter); wait != "" {
		w.Header().Set("Retry-After", wait)
	}
	detail := p.detail
	if detail == "" {
		detail = info.Text
	}
	writeJSON(w, typeProblem, info.Status, &wire.Problem{
		Type: wire.RouteProblems + string(info.Code), Title: info.Title, Status: info.Status,
		Detail: detail, Code: info.Code, Outcome: outcome, Field: p.field, Facts: p.facts, Node: h.name,
	})
}

// retryAfter returns whole seconds, at least one, where an answer has any.
func retryAfter(status int, d time.Duration) string {
	if d <= 0 && status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
		return ""
	}
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// mutates tells the methods whose answers carry an outcome.
func mutates(method string) bool {
	return method == http.MethodPut || method == http.MethodPost || method == http.MethodDelete
}

// cut shortens what a caller sent for the log, which quotes it.
func cut(s string) string {
	const most = 128
	if len(s) > most {
		return s[:most]
	}
	return s
}

// jsonBody is a body that writes itself as JSON, as encoding/json would.
type jsonBody interface{ AppendJSON(to []byte) []byte }

// texts are buffers of bodies; net/http has copied or sent one when Write returns.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// countedBody is the length up to which net/http holds a body back until it is
// complete and then tells its length by itself.
const countedBody = 2048

// maxPooledText keeps one large answer from holding its memory for ever.
const maxPooledText = 64 << 10

func writeJSON(w http.ResponseWriter, contentType []string, status int, body any) {
	text := texts.Get().(*[]byte)
	*text = appendJSON((*text)[:0], body)
	header := w.Header()
	header["Content-Type"] = contentType
	if len(*text) > countedBody {
		header["Content-Length"] = []string{strconv.Itoa(len(*text))}
	}
	w.WriteHeader(status)
	w.Write(*text)
	if cap(*text) <= maxPooledText {
		texts.Put(text)
	}
}

func appendJSON(to []byte, body any) []byte {
	if b, ok := body.(jsonBody); ok {
		return append(b.AppendJSON(to), '\n')
	}
	data := bytes.NewBuffer(to)
	encoder := json.NewEncoder(data)
	encoder.SetEscapeHTML(false) // nosniff is set, and people read keys and values in a terminal
	if err := encoder.Encode(body); err != nil {
		panic(fmt.Sprintf("httpapi: encode %T: %v", body, err)) // every body is a type that has a JSON form
	}
	return data.Bytes()
}

func writeOK(w http.ResponseWriter, body any) { writeJSON(w, typeJSON, http.StatusOK, body) }

// identify sets the headers every answer to a method carries.
func (h *Handler) identify(w http.ResponseWriter, method string) {
	header := w.Header()
	header[wire.HeaderNode] = h.names
	if leader, ok := h.node.Leader(); ok {
		header[wire.HeaderLeader] = []string{leader.HTTPAddress}
	}
	header["Cache-Control"] = noStore
	if !mutates(method) { // no page can take the answer to another for a script
		header["X-Content-Type-Options"] = noSniff
	}
}
