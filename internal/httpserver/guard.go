package httpserver

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard refuses requests that a foreign web page makes a browser send. Without keys, whoever
// reaches the daemon may use it, and every page in a browser on the same network reaches it.
type guard struct {
	hosts     []string // served in addition to addresses and localhost
	checkHost bool
	crossSite bool // also refuse reads from other sites
	pages     []string
	origins   *http.CrossOriginProtection
}

func newGuard(c Config, o Options) (*guard, error) {
	g := &guard{checkHost: o.CheckHost, crossSite: o.RefuseCrossSite, pages: o.Pages,
		origins: http.NewCrossOriginProtection()}
	for _, host := range c.Hosts {
		g.hosts = append(g.hosts, normalized(host))
	}
	for _, origin := range c.Origins {
		if err := g.origins.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("origin %s: %w", origin, err)
		}
	}
	return g, nil
}

// protect calls next for requests that are not refused.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.checkHost && !g.knows(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "invalid_request_error", "unknown_host",
				fmt.Sprintf("The host %.100q is not one of this server's. Use its IP address or "+
					"localhost, or list the name in http.hosts of its configuration.", r.Host))
			return
		}
		foreign := g.crossSite && !g.isVisit(r) && slices.Contains([]string{"cross-site",
			"same-site"}, r.Header.Get("Sec-Fetch-Site"))
		if foreign || g.origins.Check(r) != nil {
			refuse(w, http.StatusForbidden, "invalid_request_error", "cross_origin", fmt.Sprintf(
				"A web page of the origin %.100q made this request, which only the server's own "+
					"pages may. List the origin in http.origins of its configuration to allow it.",
				r.Header.Get("Origin")))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isVisit reports whether somebody follows a link to one of the server's pages, in a window of its
// own: the page with the link sees nothing of it.
func (g *guard) isVisit(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && slices.Contains(g.pages, r.URL.Path)
}

// knows reports whether a Host header cannot be a foreign name pointed at this server. HTTP/1.0,
// which browsers do not use, has no Host.
func (g *guard) knows(host string) bool {
	if host == "" {
		return true
	}
	name := host
	if split, _, err := net.SplitHostPort(host); err == nil {
		name = split
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	name = normalized(name)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	return slices.ContainsFunc(g.hosts, func(known string) bool {
		parent, wildcard := strings.CutPrefix(known, "*")
		return name == known || wildcard && strings.HasSuffix(name, parent)
	})
}

func normalized(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// IsLoopback reports whether only this machine reaches an address of the form host:port.
func IsLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
