package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// Bounds of JSON bodies in bytes.
const (
	maxJSONBody = 64 << 10

	// maxTxnBody is enough for MaxTxnBytes of values as base64 or lightly
	// escaped text, and the keys around them.
	maxTxnBody = 2 * fsm.MaxTxnBytes
)

// checkFraming refuses encodings, and closes the connection behind a chunked
// body: if it also carried a Content-Length, a proxy in front may disagree about
// where it ended (RFC 9112, 6.3), and net/http does not tell.
func checkFraming(w http.ResponseWriter, r *http.Request) error {
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	for _, name := range []string{"Content-Encoding", "Content-Range", "Upgrade"} {
		if len(r.Header[name]) > 0 {
			return refuse(wire.CodeUnsupportedMedia)
		}
	}
	if !mutates(r.Method) && (r.ContentLength != 0 || len(r.TransferEncoding) > 0) {
		w.Header().Set("Connection", "close")
		return invalid("body", "must be empty on a %s", r.Method)
	}
	return nil
}

// read reads the whole body into c, or nothing: at most limit bytes, within the
// time for bodies and the memory for bodies.
func (h *Handler) read(w http.ResponseWriter, c *call, limit int64) error {
	if c.ContentLength == 0 {
		// net/http already watches the connection for the caller to hang up, and
		// would take the end of a deadline set now for that.
		return nil
	}
	if c.ContentLength > limit {
		w.Header().Set("Connection", "close")
		return tooLarge(limit)
	}
	hold := limit
	if c.ContentLength >= 0 {
		hold = c.ContentLength
	}
	if h.bodies.Add(hold) > h.cfg.MaxBodies {
		h.bodies.Add(-hold)
		w.Header().Set("Connection", "close")
		return overloaded()
	}
	c.held, c.hold = &h.bodies, hold

	if h.cfg.BodyTimeout < readTimeout { // else the server's own deadline is the earlier one
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.cfg.BodyTimeout))
	}
	body, err := readBody(w, c.Request, limit)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge(limit)
	case err != nil:
		w.Header().Set("Connection", "close")
		return invalid("body", "ended early or did not arrive within %s", h.cfg.BodyTimeout)
	}
	c.body = body
	return nil
}

// readBody reads a body whose length, where it was said, is at most limit.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

func tooLarge(limit int64) *problem {
	return &problem{code: wire.CodeTooLarge, facts: wire.Facts{Limit: "body", Bound: limit}}
}

// readNothing is read for an endpoint whose path and headers say all.
func (h *Handler) readNothing(w http.ResponseWriter, c *call) error {
	if err := h.read(w, c, maxJSONBody); err != nil {
		return err
	}
	if len(c.body) > 0 {
		return invalid("body", "must be empty")
	}
	return nil
}

// readJSON reads one JSON object into v. A media type a browser would send
// without asking first is refused (cross-site request forgery).
func (h *Handler) readJSON(w http.ResponseWriter, c *call, limit int64, v any) error {
	if text, given := value(c.Header, "Content-Type"); given {
		if media, _, err := mime.ParseMediaType(text); err != nil || media != wire.TypeJSON {
			return refuse(wire.CodeUnsupportedMedia)
		}
	}
	if err := h.read(w, c, limit); err != nil {
		return err
	}
	if err := checkJSON(c.body); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(c.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		var typed *json.UnmarshalTypeError
		if errors.As(err, &typed) && typed.Field != "" {
			return invalid(typed.Field, "must not be a JSON %s", typed.Value)
		}
		return invalid("body", "does not fit: %v", err)
	}
	return nil
}
