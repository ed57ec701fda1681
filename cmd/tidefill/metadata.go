package main

import (
	"context"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/internal/wallclock"
	"github.com/tidefill/tidefill/store/sqlite"
)

// openMetadata opens the database, and the clock that its files and uploads expire by.
func (d *daemon) openMetadata(ctx context.Context) (err error) {
	d.clock = wallclock.NewGuard(d.cfg.Clock, d.log)
	d.metadata, err = sqlite.Open(ctx, filepath.Join(d.cfg.Data, "tidefill.db"), sqlite.Options{
		Expiry: d.clock.Expiry, LockWait: d.cfg.Storage.LockWait, Space: d.files,
	})
	if err != nil {
		return err
	}
	d.closing("database", d.metadata.Close)
	newest, err := d.metadata.Newest(ctx)
	if err != nil {
		return err
	}
	d.clock.Resume(newest)
	d.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_expiry_lag_seconds",
		Help: "By how much the time that files, uploads and batches expire by is behind the clock; above 0 while a jump of the clock isn't confirmed.",
	}, func() float64 { return d.clock.Lag().Seconds() }))
	return nil
}
