// Package wire is what a fencekv node and its callers both know: header names,
// routes, JSON bodies, and the one table from a decision's code to its HTTP
// status, exit code and text. It imports the standard library only, so a
// client's binary carries nothing of the server.
//
// Numbers in JSON are integers of at most fifteen digits and exact everywhere.
// Durations are integers of milliseconds whose names end in Ms. Times are
// RFC 3339 in UTC; they are the leader's wall clock, shown and never compared.
package wire
