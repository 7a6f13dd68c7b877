package httpapi

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// The handlers write to the header map by name, so the names must be as net/http
// keeps them.
func TestNamesAreCanonical(t *testing.T) {
	for _, name := range append([]string{
		wire.HeaderOutcome, wire.HeaderRevision, wire.HeaderVersion, wire.HeaderMaxToken, wire.HeaderReplayed,
		wire.HeaderRequestWindowMs, wire.HeaderAgeMs, wire.HeaderLeader, wire.HeaderNode, wire.HeaderForwarded, fieldETag,
	}, protocolHeaders...) {
		if canonical := http.CanonicalHeaderKey(name); canonical != name {
			t.Errorf("%s should be %s", name, canonical)
		}
	}
}

// Every header keeps its own value, however many there are and whatever is added
// to one of them later.
func TestFields(t *testing.T) {
	header := http.Header{}
	var f fields
	name := func(i int) string { return "Name-" + strconv.Itoa(i) }
	for i := range 2 * len(f.values) {
		f.setNumber(header, name(i), uint64(i))
		header[name(i)] = append(header[name(i)], "more")
	}
	for i := range 2 * len(f.values) {
		if got := header[name(i)]; len(got) != 2 || got[0] != strconv.Itoa(i) || got[1] != "more" {
			t.Errorf("%s: %q", name(i), got)
		}
	}
}
