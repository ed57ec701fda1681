package main

import (
	"crypto/tls"
	"fmt"

	"github.com/tidefill/tidefill/internal/httpserver"
)

// adminConnections bounds the connections of the admin address. They don't count among the API's,
// so that probes are answered however many clients the API has.
const adminConnections = 64

// newServers makes the servers of the API and of administration.
func (d *daemon) newServers() (err error) {
	files := httpserver.OpenFiles()
	bounds, lowered := d.cfg.HTTP.Within(files)
	if lowered {
		d.log.Warn(
			"http.max_connections is lowered to a quarter of the files that the process may open",
			"max_connections", bounds.MaxConnections, "configured", d.cfg.HTTP.MaxConnections,
			"open_files", files,
			"remedy", "raise the limit of open files (ulimit -n, LimitNOFILE)")
	}
	var demanding, asking *tls.Config // nil: in clear
	if d.cfg.TLS.Enabled() {
		if d.certificates, err = httpserver.LoadCertificates(d.cfg.TLS); err != nil {
			return err
		}
		demanding, asking = d.certificates.Demanding(), d.certificates.Asking()
	}
	d.server, err = httpserver.New(bounds, d.api.Handler(), httpserver.Options{
		HalfClose: true, CheckHost: d.keyless, TLS: demanding, Logger: d.log.With("component",
			"api server"), Registerer: d.registry,
	})
	if err != nil {
		return fmt.Errorf("api server: %w", err)
	}
	d.server.OnShutdown(d.api.CloseStreams)
	bounds.MaxConnections, bounds.MaxConnectionsPerAddress = adminConnections, 0
	d.admin, err = httpserver.New(bounds, d.certificates.RequireCertificate(d.adminHandler(),
		"/healthz", "/readyz"), httpserver.Options{
		CheckHost: true, TLS: asking, RefuseCrossSite: true, Logger: d.log.With("component",
			"admin server"),
	})
	if err != nil {
		return fmt.Errorf("admin server: %w", err)
	}
	if d.cfg.AdminListen != "" && !isLoopback(d.cfg.AdminListen) {
		d.log.Warn(
			"admin_listen is reached from other machines and asks for no key: metrics and profiles show what the daemon does; "+
				"keep it inside by a firewall or network policy", "admin_listen", d.cfg.AdminListen)
	}
	return nil
}
