package app

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/filewatch"
)

// reloads notices when the configuration is to be loaded again, and publishes how that went.
type reloads struct {
	file    *filewatch.Files
	changed bool // since the file was loaded

	successful, timestamp, pending prometheus.Gauge
	// notApplied are the changes that need a restart.
	notApplied atomic.Pointer[[]config.Change]
}

func newReloads(options Options) (*reloads, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	r := &reloads{
		file: filewatch.New(options.ConfigFile),
		successful: gauge("tidefill_config_last_reload_successful",
			"Whether the configuration was valid when it was last read (1) or refused (0)."),
		timestamp: gauge("tidefill_config_last_reload_success_timestamp_seconds",
			"Time when the configuration was last read and valid."),
		pending: gauge("tidefill_config_changes_pending_restart",
			"Changes of the configuration that are not applied because they need a restart."),
	}
	r.succeeded(config.Changes{})
	return r, errors.Join(options.Registry.Register(r.successful),
		options.Registry.Register(r.timestamp), options.Registry.Register(r.pending))
}

// due reports whether the configuration is to be loaded: its file has changed and was the same
// twice in a row, so that nobody is writing it, or the load is forced.
func (r *reloads) due(forced bool) bool {
	if changes := r.file.Changed(); changes && !forced {
		r.changed = true
		return false
	}
	due := r.changed || forced
	r.changed = false
	return due
}

func (r *reloads) failed() { r.successful.Set(0) }

func (r *reloads) succeeded(changes config.Changes) {
	r.successful.Set(1)
	r.timestamp.SetToCurrentTime()
	r.pending.Set(float64(len(changes.Restart)))
	r.notApplied.Store(&changes.Restart)
}
