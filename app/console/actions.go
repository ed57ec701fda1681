package console

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// apiRoutes are the routes of the API that the page uses.
var apiRoutes = []string{
	"GET /v1/batches/{id}", "POST /v1/batches/{id}",
	"POST /v1/batches/{id}/pause", "POST /v1/batches/{id}/resume",
	"POST /v1/batches/{id}/cancel", "POST /v1/batches/{id}/retry", "GET /v1/files/{id}/content",
}

// registerAPI passes the routes that the page uses on to the API. The API decides by the key of a
// request, as at its own address.
func (c *Console) registerAPI(mux *http.ServeMux) {
	serve := c.serve(func(w http.ResponseWriter, r *http.Request) error {
		if why := c.refusal(r); why != "" {
			return &httpError{Status: http.StatusForbidden, Type: "invalid_request_error",
				Code: "insufficient_permissions", Message: why}
		}
		http.StripPrefix("/console/api", c.deps.API).ServeHTTP(w, r)
		return nil
	})
	for _, route := range apiRoutes {
		method, path, _ := strings.Cut(route, " ")
		mux.Handle(method+" /console/api"+path, serve)
	}
}

// refusal returns why a request may not use the API by the console, as a sentence. Without keys,
// the API serves its own machine only, unless it is open to others; the admin address may be wider.
func (c *Console) refusal(r *http.Request) string {
	switch {
	case c.deps.API == nil:
		return "This process serves no API. Open the console of one that does."
	case c.deps.NeedsKey() || c.deps.Open() || isLocal(r.RemoteAddr):
		return ""
	}
	return "Without API keys, only this machine may read and change batches. Configure keys, or " +
		"open the console on the machine of the daemon."
}

// isLocal reports whether a request comes from this machine.
func isLocal(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
