package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// reloadEvery is how often the files of keys and certificates are looked at.
const reloadEvery = 2 * time.Second

// reload reads the files of keys and certificates again when they change, and on SIGHUP. What can't
// be read leaves the last good version in use.
func (d *daemon) reload(ctx context.Context) error {
	defer signal.Stop(d.hangup)
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		forced := false
		select {
		case <-ctx.Done():
			return nil
		case <-d.hangup:
			forced = true
		case <-tick.C:
		}
		d.reloadKeys(ctx, forced)
		d.reloadCertificates(ctx, forced)
	}
}

// heedHangup takes SIGHUP from now on. It comes before the first address is served: until then the
// signal ends the process.
func (d *daemon) heedHangup() {
	d.hangup = make(chan os.Signal, 1)
	signal.Notify(d.hangup, syscall.SIGHUP)
}

func (d *daemon) reloadKeys(ctx context.Context, forced bool) {
	if d.cfg.Auth.KeysFile == "" || !d.keysFile.Changed() && !forced {
		return
	}
	keys, err := loadKeys(d.cfg)
	if err != nil {
		d.log.ErrorContext(ctx, "keys file refused; the keys of its last version stay",
			"error", err)
		return
	}
	if added, revoked := d.api.SetKeys(keys); forced || added+revoked > 0 {
		d.log.InfoContext(ctx, "keys file read again", "added", added, "revoked", revoked)
	}
}

func (d *daemon) reloadCertificates(ctx context.Context, forced bool) {
	if d.certificates == nil {
		return
	}
	reloaded, err := d.certificates.Reload(forced)
	if err != nil {
		d.log.ErrorContext(ctx, "certificate files refused; the last version stays", "error", err)
	}
	if reloaded {
		d.log.InfoContext(ctx, "certificate files read again")
	}
}
