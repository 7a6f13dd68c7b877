package httpapi

import (
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// parseQuery reads a query whose parameters are all known and stand once.
func parseQuery(raw string, known []string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("query", "is malformed")
	}
	for name, values := range query {
		switch {
		case !slices.Contains(known, name):
			return nil, invalid(cut(name), "is no parameter of this route")
		case len(values) > 1:
			return nil, invalid(name, "stands %d times; it may stand once", len(values))
		}
	}
	return query, nil
}

// flag reads a parameter that is on when it stands alone or is true.
func (c *call) flag(name string) (bool, error) {
	if !c.query.Has(name) {
		return false, nil
	}
	switch c.query.Get(name) {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, invalid(name, "must be true or false")
}

// count reads an optional number.
func (c *call) count(name string) (n uint64, given bool, err error) {
	if !c.query.Has(name) {
		return 0, false, nil
	}
	if n, err = wire.ParseNumber(c.query.Get(name)); err != nil {
		return 0, false, invalid(name, "%v", err)
	}
	return n, true, nil
}

// limit reads the size of a page.
func (c *call) limit() (int, error) {
	n, given, err := c.count("limit")
	switch {
	case err != nil:
		return 0, err
	case !given:
		return wire.DefaultPage, nil
	case n < 1 || n > wire.MaxPage:
		return 0, invalid("limit", "must be 1 to %d", wire.MaxPage)
	}
	return int(n), nil
}

// start reads a parameter that is the beginning of a key, or empty.
func (c *call) start(name string) (string, error) {
	text := c.query.Get(name)
	if len(text) > fsm.MaxKeyBytes || !utf8.ValidString(text) {
		return "", invalid(name, "must be UTF-8 of at most %d bytes", fsm.MaxKeyBytes)
	}
	return text, nil
}

// requestIDParam reads the parameter id.
func (c *call) requestIDParam() (string, error) {
	id, err := wire.ParseRequestID(c.query.Get("id"))
	if err != nil {
		return "", invalid("id", "%v", err)
	}
	return id, nil
}

// key returns the argument of the path as a key.
func (c *call) key() (string, error) {
	if problem := fsm.CheckKey(c.arg); problem != "" {
		return "", invalid("key", "%s", problem)
	}
	return c.arg, nil
}

// resource returns the argument of the path as a resource: a key or a prefix.
func (c *call) resource() (string, error) {
	if problem := fsm.CheckResource(c.arg); problem != "" {
		return "", invalid("resource", "%s", problem)
	}
	return c.arg, nil
}
