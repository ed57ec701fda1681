package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Metrics is what a policy can see of the pool beside its own lines, and how late.
type Metrics struct {
	// Period is the time from one look at the engines' metrics, and at the gateway's, to the next.
	Period time.Duration `yaml:"period"`
	// Jitter is how much later than that a look may come, at random.
	Jitter time.Duration `yaml:"jitter"`
	// Delay is how long what was seen takes to reach the policy.
	Delay time.Duration `yaml:"delay"`
	// Gateway says what the gateway before the pool shows of interactive requests: histogram (its
	// own, read by a linear share of the bucket), counters (it knows each request's promise and
	// counts those that were late) or off.
	Gateway Gateway `yaml:"gateway"`
	// TTFTEdges and TPOTEdges are the histograms' buckets. None given: those of the endpoint picker
	// of the Gateway API's inference extension, and the SLO's times.
	TTFTBuckets []time.Duration `yaml:"ttft_buckets"`
	TPOTBuckets []time.Duration `yaml:"tpot_buckets"`
	// Capabilities is how long runners keep an answer of GET /v1/capabilities, which the policy
	// then sees too. 0: they have none.
	Capabilities time.Duration `yaml:"capabilities"`
	// Faults are spans of time in which what is seen is not to be trusted.
	Faults []MetricsFault `yaml:"faults"`
}

// Gateway is what shows interactive latencies.
type Gateway string

// The kinds of gateways.
const (
	GatewayHistogram Gateway = "histogram"
	GatewayCounters  Gateway = "counters"
	GatewayOff       Gateway = "off"
)

// MetricsFault is a source that fails for a while.
type MetricsFault struct {
	Kind MetricsFaultKind `yaml:"kind"`
	// Source is what fails. Empty: all of them.
	Source MetricsSource `yaml:"source"`
	// Replicas whose engines or capabilities fail, by number, from 0. None given: all.
	Replicas []int `yaml:"replicas"`
	// From and To bound it; To is not given for a reset, which takes no time.
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to"`
}

// MetricsFaultKind is how a source fails.
type MetricsFaultKind string

// The kinds of faults.
const (
	Absent    MetricsFaultKind = "absent"    // there is nothing to be seen
	Frozen    MetricsFaultKind = "frozen"    // the last look is repeated, with its time
	Restamped MetricsFaultKind = "restamped" // the last look is repeated as if it were new
	Reset     MetricsFaultKind = "reset"     // counters begin anew
)

// MetricsSource is what can be looked at.
type MetricsSource string

// The sources.
const (
	EngineSource       MetricsSource = "engine"
	GatewaySource      MetricsSource = "gateway"
	CapabilitiesSource MetricsSource = "capabilities"
)

// Strikes tells whether a fault is about a source; the replica's number is -1 for
// the gateway.
func (f MetricsFault) Affects(source MetricsSource, replica int) bool {
	return (f.Source == "" || f.Source == source) && (len(f.Replicas) == 0 ||
		slices.Contains(f.Replicas, replica))
}

func defaultMetrics() Metrics {
	return Metrics{Period: 5 * time.Second, Jitter: time.Second, Delay: 20 * time.Millisecond,
		Gateway: GatewayHistogram}
}

var (
	faultsOfMetrics  = []MetricsFaultKind{Absent, Frozen, Restamped, Reset}
	sourcesOfMetrics = []MetricsSource{"", EngineSource, GatewaySource, CapabilitiesSource}
	gateways         = []Gateway{GatewayHistogram, GatewayCounters, GatewayOff}
)

func (m Metrics) validate(horizon time.Duration, replicas int) error {
	var all problems
	all.check(m.Period >= 100*time.Millisecond && m.Period <= time.Hour,
		"metrics.period is %s, want 100ms to 1h", m.Period)
	all.check(m.Jitter >= 0 && m.Jitter <= m.Period,
		"metrics.jitter is %s, want 0 to the period, %s", m.Jitter, m.Period)
	all.check(m.Delay >= 0 && m.Delay <= time.Hour, "metrics.delay is %s, want 0 to 1h", m.Delay)
	all.check(slices.Contains(gateways, m.Gateway), "metrics.gateway is %q, want one of %q",
		m.Gateway, gateways)
	all.check(m.Capabilities >= 0 && m.Capabilities <= time.Hour,
		"metrics.capabilities is %s, want 0 for none or up to 1h", m.Capabilities)
	for _, h := range []struct {
		key   string
		edges []time.Duration
	}{{"ttft_buckets", m.TTFTBuckets}, {"tpot_buckets", m.TPOTBuckets}} {
		all.check(len(h.edges) == 0 || m.Gateway == GatewayHistogram,
			"metrics.%s is of a histogram, and metrics.gateway is %s; remove it", h.key, m.Gateway)
		for i, e := range h.edges {
			all.check(e > 0 && e <= 24*time.Hour && (i == 0 || e > h.edges[i-1]),
				"metrics.%s[%d] is %s, want above 0 and above the one before", h.key, i, e)
		}
	}
	for i, f := range m.Faults {
		path := fmt.Sprintf("metrics.faults[%d]", i)
		all.check(slices.Contains(faultsOfMetrics, f.Kind), "%s.kind is %q, want one of %q", path,
			f.Kind, faultsOfMetrics)
		all.check(slices.Contains(sourcesOfMetrics, f.Source),
			"%s.source is %q, want nothing for all or one of %q", path, f.Source,
			sourcesOfMetrics[1:])
		all.check(f.Source != GatewaySource || len(f.Replicas) == 0,
			"%s.replicas is given, but the gateway has none; remove it", path)
		for _, n := range f.Replicas {
			all.check(n >= 0 && n < replicas, "%s.replicas holds %d; the pool has replicas 0 to %d",
				path, n, replicas-1)
		}
		all.check(f.From >= 0 && f.From < horizon, "%s.from is %s, want 0 to below the horizon, %s",
			path, f.From, horizon)
		all.check(f.Kind != Reset || f.To == 0, "%s.to is %s, but a reset takes no time; remove it",
			path, f.To)
		all.check(f.Kind == Reset || f.To > f.From, "%s.to is %s, want later than from, %s", path,
			f.To, f.From)
	}
	return errors.Join(all...)
}

// until leaves out what lies beyond a horizon.
func (m Metrics) until(horizon time.Duration) Metrics {
	m.Faults = slices.DeleteFunc(slices.Clone(m.Faults), func(f MetricsFault) bool {
		return f.From >= horizon
	})
	return m
}
