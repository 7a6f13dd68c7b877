package httpapi

import (
	"net/http"
	"strconv"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// Values of headers that many answers share. net/http copies a header before it
// sends it and changes none of its values.
var (
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	typeJSON    = []string{wire.TypeJSON}
	typeProblem = []string{wire.TypeProblem}
	truths      = map[bool][]string{false: {"false"}, true: {"true"}}
	outcomes    = map[wire.Outcome][]string{
		wire.Applied: {string(wire.Applied)}, wire.Replayed: {string(wire.Replayed)}, wire.Refused: {string(wire.Refused)},
		wire.NotApplied: {string(wire.NotApplied)}, wire.Unknown: {string(wire.Unknown)},
	}
)

// fieldETag is wire.HeaderETag as net/http keeps it; the other names of wire are
// in that form already.
var fieldETag = http.CanonicalHeaderKey(wire.HeaderETag)

// fields holds the values of one answer's headers, so that they take one piece of
// memory and not one each.
type fields struct {
	values [12]string
	used   int
}

// set gives header one value under a name in net/http's canonical form.
func (f *fields) set(header http.Header, name, value string) {
	if f.used == len(f.values) {
		header[name] = []string{value}
		return
	}
	f.values[f.used] = value
	header[name] = f.values[f.used : f.used+1 : f.used+1]
	f.used++
}

func (f *fields) setNumber(header http.Header, name string, value uint64) {
	f.set(header, name, strconv.FormatUint(value, 10))
}
