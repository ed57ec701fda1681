package app

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/registry"
)

var (
	registryItems = prometheus.NewDesc("tidefill_registry_items",
		"Items in force, by kind (template, profile, usecase, pool or objective) and status "+
			"(active, deprecated or draft; others are active; sets of use cases are active or, "+
			"while a pool of theirs does not exist, waiting).",
		[]string{"kind", "status"}, nil)
	registryRefused = prometheus.NewDesc("tidefill_registry_refused",
		"Items of the registry that are not in force as they stand, by kind: template, profile, "+
			"usecase, pool, objective or, for a document as a whole, document. GET "+
			"/admin/registry says why.",
		[]string{"kind"}, nil)
	registryWarnings = prometheus.NewDesc("tidefill_registry_warnings",
		"Fields of items of the registry in force that are set and have no effect.", nil, nil)
	registryLastRead = prometheus.NewDesc("tidefill_registry_last_read_timestamp_seconds",
		"Time of the last look at the documents of the registry at which all sources could "+
			"be read; NaN: never, or there is no source.", nil, nil)
	registryAway = prometheus.NewDesc("tidefill_registry_sources_away",
		"Sources of the registry that can't be read now. What was read last stays in "+
			"force.", nil, nil)
)

// registryCollector collects the metrics of a feed.
type registryCollector struct {
	feed  *registryFeed
	pools func() *registry.Snapshot
}

// Describe implements prometheus.Collector.
func (c registryCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{registryItems, registryRefused, registryWarnings,
		registryLastRead, registryAway} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Every series has a value from the start, so that an
// alert sees a change.
func (c registryCollector) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	all, seen, away := c.feed.state()
	templates := map[registry.Status]float64{}
	warnings := 0
	for _, e := range all.Templates() {
		templates[e.Item.Status]++
		warnings += len(e.Warnings)
	}
	for _, e := range all.Profiles() {
		warnings += len(e.Warnings)
	}
	accepted := map[bool]float64{}
	pools := c.pools()
	for _, e := range all.UseCases() {
		accepted[e.Item.Accepted(pools.HasPool).Status]++
		warnings += len(e.Warnings)
	}
	for _, status := range []registry.Status{registry.Active, registry.Deprecated,
		registry.Draft} {
		send(registryItems, templates[status], string(registry.Templates), string(status))
	}
	send(registryItems, float64(len(all.Profiles())), string(registry.Profiles),
		string(registry.Active))
	send(registryItems, accepted[true], string(registry.UseCases), string(registry.Active))
	send(registryItems, accepted[false], string(registry.UseCases), "waiting")
	send(registryItems, float64(len(all.Pools())), string(registry.Pools), string(registry.Active))
	send(registryItems, float64(len(all.Objectives())), string(registry.Objectives),
		string(registry.Active))
	refused := map[registry.Kind]float64{}
	for _, r := range all.Refused() {
		refused[r.Kind]++
	}
	send(registryRefused, refused[""], "document")
	for _, kind := range registry.Kinds() {
		send(registryRefused, refused[kind], string(kind))
	}
	send(registryWarnings, float64(warnings))
	lastRead := math.NaN()
	if !seen.IsZero() {
		lastRead = float64(seen.UnixMilli()) / 1000
	}
	send(registryLastRead, lastRead)
	send(registryAway, float64(away))
}

// state returns what is in force, and the number of sources that can't be read now. seen is the
// time of the last look at which all could be read; zero: never, or there is no source.
func (f *registryFeed) state() (all *registry.Catalogs, seen time.Time, away int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.states {
		if s.Err != nil {
			away++
		}
	}
	if len(f.states) > 0 {
		seen = f.seen
	}
	return f.current, seen, away
}
