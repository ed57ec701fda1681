package app

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/filewatch"
)

// retryInterval is the time after which a refused file is tried again although it has not changed:
// the reason may be another file, which may come later, as a Secret after a ConfigMap. Tests
// shorten it.
var retryInterval = 10 * time.Second

// source is what one part of the reload reads. The zero value is in use and was never refused.
type source struct {
	refused string    // why its last version can't be used; empty: it is in use
	tried   time.Time // when it was refused last
}

// retry reports whether a refused source is to be tried again.
func (s *source) retry(now time.Time) bool {
	return s.refused != "" && now.Sub(s.tried) >= retryInterval
}

// reloads notices when the configuration is to be loaded again, and publishes how all reloads went.
// Only reload uses it, except for its metrics and notApplied.
type reloads struct {
	file    *filewatch.Files
	changed bool // since the file was loaded

	config, keys, certificates, signals source
	blocked                             source // refused while a read doesn't return

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
			"Whether the configuration and the files of keys, certificates and signals were "+
				"valid when they were last read (1), or one was refused or can't be read (0)."),
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
// twice in a row, so that nobody is writing it, or the load is forced. retried reports that it is
// only because the last one was refused.
func (r *reloads) due(forced bool, now time.Time) (due, retried bool) {
	if changes := r.file.Changed(); changes && !forced {
		r.changed = true
		return false, false
	}
	due = r.changed || forced
	retried = !due && r.config.retry(now)
	r.changed = false
	return due || retried, retried
}

// refuse notes why a source can't be used, and reports whether that differs from before.
func (r *reloads) refuse(s *source, why string, now time.Time) (differs bool) {
	differs = s.refused != why
	s.refused, s.tried = why, now
	r.publish()
	return differs
}

// accept notes that a source is in use, and reports whether it was refused before.
func (r *reloads) accept(s *source) (repaired bool) {
	repaired = s.refused != ""
	*s = source{}
	r.publish()
	return repaired
}

func (r *reloads) publish() {
	for _, s := range []*source{&r.config, &r.keys, &r.certificates, &r.signals, &r.blocked} {
		if s.refused != "" {
			r.successful.Set(0)
			return
		}
	}
	r.successful.Set(1)
}

// succeeded notes a configuration that is in use, and reports whether one was refused before.
func (r *reloads) succeeded(changes config.Changes) (repaired bool) {
	r.timestamp.SetToCurrentTime()
	r.pending.Set(float64(len(changes.Restart)))
	r.notApplied.Store(&changes.Restart)
	return r.accept(&r.config)
}
