package app

import (
	"crypto/tls"
	"fmt"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/internal/httpserver"
)

// adminConnections bounds the connections of the admin address. They don't count among the API's,
// so that health checks are answered however many clients the API has.
const adminConnections = 64

// newServers builds the servers of the API and of administration.
func (a *App) newServers() (err error) {
	files := httpserver.OpenFiles()
	bounds, lowered := a.cfg.HTTP.Within(files)
	if lowered {
		a.log.Warn(
			"http.max_connections is lowered to a quarter of the files that the process may open",
			"max_connections", bounds.MaxConnections, "configured", a.cfg.HTTP.MaxConnections,
			"open_files", files,
			"remedy", "raise the limit of open files (ulimit -n, LimitNOFILE)")
	}
	var required, optional *tls.Config // nil: without TLS
	if a.cfg.TLS.Enabled() {
		if a.certificates, err = httpserver.LoadCertificates(a.cfg.TLS); err != nil {
			return err
		}
		required, optional = a.certificates.Required(), a.certificates.Optional()
	}
	a.server, err = httpserver.New(bounds, console.WithUsersPage(a.api.Handler()),
		httpserver.Options{
			HalfClose: true, CheckHost: a.keyless, TLS: required,
			Logger: a.log.With("component", "api server"), Registerer: a.options.Registry,
		})
	if err != nil {
		return fmt.Errorf("api server: %w", err)
	}
	a.server.OnShutdown(a.api.CloseStreams)
	bounds.MaxConnections, bounds.MaxConnectionsPerAddress = adminConnections, 0
	a.admin, err = httpserver.New(bounds,
		a.certificates.RequireCertificate(a.adminHandler(), "/healthz", "/readyz"),
		httpserver.Options{
			CheckHost: true, TLS: optional, RefuseCrossSite: true, Pages: []string{"/console"},
			Logger: a.log.With("component", "admin server"),
		})
	if err != nil {
		return fmt.Errorf("admin server: %w", err)
	}
	if a.cfg.AdminListen != "" && !httpserver.IsLoopback(a.cfg.AdminListen) {
		a.log.Warn(
			"other machines reach admin_listen, which requires no key: metrics and profiles show "+
				"what the daemon does; restrict access by a firewall or network policy",
			"admin_listen", a.cfg.AdminListen)
	}
	return nil
}
