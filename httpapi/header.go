package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// protocolHeaders are the headers that decide what a request does. Each may
// stand once at most, and only where its endpoint takes it.
var protocolHeaders = []string{
	wire.HeaderToken, wire.HeaderIdempotencyKey, wire.HeaderRequestID, wire.HeaderRequestBase,
	wire.HeaderSequence, wire.HeaderIfMatch, wire.HeaderIfNoneMatch, wire.HeaderReason,
}

func checkHeaders(header http.Header, taken []string) error {
	for _, name := range protocolHeaders {
		switch n := len(header[name]); {
		case n > 1:
			return invalid(name, "stands %d times; it may stand once", n)
		case n == 1 && !slices.Contains(taken, name):
			return invalid(name, "means nothing to this route")
		}
	}
	for _, name := range []string{"Content-Type", wire.HeaderForwarded} {
		if n := len(header[name]); n > 1 {
			return invalid(name, "stands %d times; it may stand once", n)
		}
	}
	return nil
}

// value returns a header's value and whether it is there, if only as an empty one.
func value(header http.Header, name string) (string, bool) {
	values := header[name]
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// number reads an optional header that holds a number of at least least.
func number(header http.Header, name string, least uint64) (n uint64, given bool, err error) {
	text, given := value(header, name)
	if !given {
		return 0, false, nil
	}
	n, err = wire.ParseNumber(text)
	if err != nil {
		return 0, false, invalid(name, "%v", err)
	}
	if n < least {
		return 0, false, invalid(name, "must be at least %d", least)
	}
	return n, true, nil
}

// identifyRequest finds the request's ID or makes one, and puts it on the
// answer, whatever that will be: a caller whose outcome is unknown needs it. A
// numbered write without an ID goes without a request record on purpose.
func identifyRequest(w http.ResponseWriter, c *call) error {
	key, hasKey := value(c.Header, wire.HeaderIdempotencyKey)
	alias, hasAlias := value(c.Header, wire.HeaderRequestID)
	_, numbered := value(c.Header, wire.HeaderSequence)
	name := wire.HeaderIdempotencyKey
	switch {
	case hasKey && hasAlias:
		return invalid(wire.HeaderRequestID, "and %s name the same thing; send one", wire.HeaderIdempotencyKey)
	case hasAlias:
		name, key = wire.HeaderRequestID, alias
	case !hasKey && numbered:
		return nil
	case !hasKey:
		key = randomID()
	}
	id, err := wire.ParseRequestID(key)
	if err != nil {
		return invalid(name, "%v", err)
	}
	c.id = id
	c.fields.set(w.Header(), wire.HeaderIdempotencyKey, wire.FormatRequestID(id))
	return nil
}

// randomID returns 128 random bits in hexadecimal.
func randomID() string {
	var bits [16]byte
	rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// request returns what identifies the operation.
func (c *call) request() (fsm.Request, error) {
	base, hasBase, err := number(c.Header, wire.HeaderRequestBase, 0)
	if err != nil {
		return fsm.Request{}, err
	}
	reason, _ := value(c.Header, wire.HeaderReason)
	if !utf8.ValidString(reason) || strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fsm.Request{}, invalid(wire.HeaderReason, "must be UTF-8 without control characters")
	}
	return fsm.Request{ID: c.id, Base: base, HasBase: hasBase, Reason: reason}, nil
}

// condition reads the precondition of a write. If-Match "0" asks for a key that
// does not exist, since 0 is the revision such a key is reported with.
func condition(header http.Header) (fsm.Condition, error) {
	match, hasMatch := value(header, wire.HeaderIfMatch)
	none, hasNone := value(header, wire.HeaderIfNoneMatch)
	switch {
	case hasMatch && hasNone:
		return fsm.Condition{}, invalid(wire.HeaderIfNoneMatch, "contradicts %s; send one", wire.HeaderIfMatch)
	case hasNone && none != "*":
		return fsm.Condition{}, invalid(wire.HeaderIfNoneMatch, "must be * on a write")
	case hasNone:
		return fsm.Condition{Absent: true}, nil
	case !hasMatch:
		return fsm.Condition{}, nil
	case match == "*":
		return fsm.Condition{Exists: true}, nil
	}
	revision, err := wire.ParseETag(match)
	if err != nil {
		return fsm.Condition{}, invalid(wire.HeaderIfMatch, "%v, or *", err)
	}
	return fsm.Condition{Revision: revision, Absent: revision == 0}, nil
}
