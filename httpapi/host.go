package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// allowedHosts returns the host names in addresses, which are host names,
// host:port pairs or base URLs.
func allowedHosts(addresses []string) map[string]bool {
	hosts := make(map[string]bool, len(addresses))
	for _, a := range addresses {
		if u, err := url.Parse(a); err == nil && u.Host != "" {
			a = u.Host
		}
		if host := hostOnly(a); host != "" {
			hosts[host] = true
		}
	}
	return hosts
}

// hostOnly returns the host of a Host header in the form hosts are compared.
func hostOnly(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// checkHost refuses a name that is none of ours. Without it a web page whose
// name is made to resolve to this node would be of the same origin and could
// use a node that trusts its network (DNS rebinding, as in etcd #9353). Probes
// come under whatever address their prober knows and learn nothing.
func (h *Handler) checkHost(r *http.Request) error {
	if r.URL.Path == wire.RouteHealth || r.URL.Path == wire.RouteReady {
		return nil
	}
	host := hostOnly(r.Host)
	if host == "localhost" || h.hosts[host] {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	state, _ := h.node.Stale()
	for m := range state.Members() {
		if u, err := url.Parse(m.HTTPAddress); err == nil && hostOnly(u.Host) == host {
			return nil
		}
	}
	return refuse(wire.CodeWrongHost)
}

// checkOrigin refuses mutations that a browser sent on behalf of a page. No
// page of ours makes any, and nothing but a browser sets these headers.
func checkOrigin(r *http.Request) error {
	if len(r.Header["Origin"]) > 0 {
		return refuse(wire.CodeForbidden)
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if site != "same-origin" && site != "none" {
			return refuse(wire.CodeForbidden)
		}
	}
	return nil
}
