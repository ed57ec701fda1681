package app

import (
	"context"
	"time"
)

// reloadInterval is the time between two checks of the files of the configuration, of keys, of
// certificates and of signals.
const reloadInterval = time.Second

// reload reads the files of the configuration, of keys, of certificates and of signals again when
// they change, and when Options.Reload asks for it. If a file cannot be used, its last good version
// stays in use.
func (a *App) reload(ctx context.Context) error {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		forced := false
		select {
		case <-ctx.Done():
			return nil
		case <-a.options.Reload:
			forced = true
		case <-a.kubernetes.changes():
			a.found.come()
			a.applyFound(ctx)
			continue
		case <-ticker.C:
		}
		a.reloadConfig(ctx, forced)
		a.reloadKeys(ctx, forced)
		a.reloadCertificates(ctx, forced)
		a.reloadSignals(ctx, forced)
		a.applyFound(ctx)
	}
}

func (a *App) reloadCertificates(ctx context.Context, forced bool) {
	if a.certificates == nil {
		return
	}
	reloaded, err := a.certificates.Reload(forced)
	if err != nil {
		a.log.ErrorContext(ctx, "certificate files refused; the last version stays in use",
			"error", err)
	}
	if reloaded {
		a.log.InfoContext(ctx, "certificate files read again")
	}
}

// reloadSignals reads the file of telemetry.signals again if it has changed, or if forced. All
// runners are read anew then.
func (a *App) reloadSignals(ctx context.Context, forced bool) {
	cfg := a.effective
	if cfg.Telemetry.Signals == "" || !a.signalsFile.Changed() && !forced {
		return
	}
	reader, err := a.newReader(cfg)
	if err != nil {
		a.log.ErrorContext(ctx, "signals file refused; its last version stays in use", "error", err)
		return
	}
	a.replaceReader(ctx, reader)
	a.log.InfoContext(ctx, "signals file read again", "file", cfg.Telemetry.Signals)
}
