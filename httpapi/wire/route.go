package wire

import (
	"net/url"
	"strings"
)

// Routes. Those that end in a slash are followed by a key, a resource, a scope
// or a name, escaped by KeyPath; the rest of the path is one argument.
const (
	RouteKV        = "/v1/kv"
	RouteTxn       = "/v1/txn"
	RouteAcquire   = "/v1/acquire/"
	RouteRenew     = "/v1/renew/"
	RouteRelease   = "/v1/release/"
	RouteRevoke    = "/v1/revoke/"
	RouteRequire   = "/v1/require/"
	RoutePurge     = "/v1/purge"
	RouteLocks     = "/v1/locks"
	RouteRequests  = "/v1/requests/"
	RouteSeal      = "/v1/seal/"
	RouteDecisions = "/v1/decisions"
	RouteCluster   = "/v1/cluster"
	RouteMembers   = "/v1/cluster/members"
	RouteTransfer  = "/v1/cluster/transfer"
	RoutePeer      = "/v1/peer"
	RouteStatus    = "/v1/status"
	RouteHealth    = "/healthz"
	RouteReady     = "/readyz"
	RouteProblems  = "/problems/"
)

// Page sizes of lists.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// MaxRequestIDBytes bounds a request ID.
const MaxRequestIDBytes = 128

// KeyPath escapes a key or resource for a URL path, leaving its slashes.
func KeyPath(key string) string {
	segments := strings.Split(key, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
