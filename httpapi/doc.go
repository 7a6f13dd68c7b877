// Package httpapi is the HTTP surface of a node: it parses requests without
// forgiving anything, turns them into commands, and turns decisions into
// answers. It decides nothing itself. It is the only importer of gorilla/mux.
//
// One request passes, in this order: the host and origin rules (host.go), the
// route and its method (route.go), headers and query (header.go, query.go), its
// body (body.go), its handler, which makes a command or a read of it, the
// leader (submit.go, forward.go), and the answer (answer.go, problem.go; pace.go
// when there are too many to refuse).
package httpapi
