package app

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/filewatch"
	"github.com/tidefill/tidefill/telemetry"
)

// reloadInterval is the time between two checks of the files of the configuration, of keys, of
// certificates and of signals.
const reloadInterval = time.Second

// reload reads the files of the configuration, of keys, of certificates and of signals again when
// they change, and when Options.Reload asks for it. If a file cannot be used, its last good version
// stays in use, and it is tried again from time to time.
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
		case <-a.targets.changed:
			a.found.come()
			a.applyFound(ctx)
			continue
		case <-a.feed.poolsChanged():
			a.found.come()
			a.applyFound(ctx)
			continue
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
		if a.targets.keysChanged() {
			a.found.come()
		}
		a.applyFound(ctx)
	}
}

// due reports whether a source is to be read: its file has changed, or the read is forced. retried
// reports that it is only because the last version was refused.
func (a *App) due(
	ctx context.Context, s *source, path string, files *filewatch.Files, forced bool,
) (due, retried bool) {
	changed, err := blockable(ctx, a, path, func() (bool, error) { return files.Changed(), nil })
	if err != nil {
		return false, false
	}
	due = changed || forced
	retried = !due && s.retry(time.Now())
	return due || retried, retried
}

// refuse logs why a source is refused; that of a retry only if it is another reason than before.
func (a *App) refuse(
	ctx context.Context, s *source, retried bool, message, file string, reason string,
) {
	if ctx.Err() != nil {
		return // the read was given up
	}
	if a.reloads.refuse(s, reason, time.Now()) || !retried {
		a.log.ErrorContext(ctx, message, "file", file, "error", reason)
	}
}

func (a *App) reloadCertificates(ctx context.Context, forced bool) {
	if a.certificates == nil {
		return
	}
	s, file := &a.reloads.certificates, a.cfg.TLS.CertFile
	retried := !forced && s.retry(time.Now())
	reloaded, err := blockable(ctx, a, file, func() (bool, error) {
		return a.certificates.Reload(forced || retried)
	})
	if err != nil {
		a.refuse(ctx, s, retried, "certificate files refused; the last version stays in use", file,
			err.Error())
		return
	}
	if reloaded {
		a.reloads.accept(s)
		a.log.InfoContext(ctx, "certificate files read again")
	}
}

// reloadSignals reads the file of telemetry.signals again if it has changed, or if forced. All
// runners are read anew then.
func (a *App) reloadSignals(ctx context.Context, forced bool) {
	cfg, s := a.effective, &a.reloads.signals
	file := cfg.Telemetry.Signals
	if file == "" {
		a.reloads.accept(s)
		return
	}
	due, retried := a.due(ctx, s, file, a.signalsFile, forced)
	if !due {
		return
	}
	reader, err := blockable(ctx, a, file, func() (*telemetry.Reader, error) {
		if err := config.CheckRegular(file); err != nil {
			return nil, err
		}
		return a.newReader(cfg)
	})
	if err != nil {
		a.refuse(ctx, s, retried, "signals file refused; its last version stays in use", file,
			err.Error())
		return
	}
	a.reloads.accept(s)
	a.replaceReader(ctx, reader)
	a.log.InfoContext(ctx, "signals file read again", "file", file)
}
