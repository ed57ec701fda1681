// Package app builds the daemon from a configuration and runs it: the store, the dispatcher, the
// readings of the pool, and the HTTP servers of the API and of administration. It is the only
// package that knows all the others.
//
// New opens the store and listens; Run serves until its context ends and then drains:
//
//	daemon, err := app.New(cfg, app.Options{Logger: logger})
//	if err != nil {
//		return err
//	}
//	return daemon.Run(ctx)
//
// The package handles no signals and reads no environment variables, except that traces follow
// those of OpenTelemetry. Options.Reload and Options.Keys take what a program derives from them.
package app

//go:generate go run ../internal/metriclist/generate ../docs/metrics.md
