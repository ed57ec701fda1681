package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Metrics configures what a policy can observe of the pool beside its own lines, and the delay of
// that.
type Metrics struct {
	// Period is the scrape interval of the engines' and the gateway's metrics.
	Period time.Duration `yaml:"period"`
	// GatewayPeriod is that of the gateway's, where another one reads them, as Prometheus does. 0:
	// period.
	GatewayPeriod time.Duration `yaml:"gateway_period"`
	// Jitter is the largest random delay of a scrape.
	Jitter time.Duration `yaml:"jitter"`
	// Delay is the time until a sample reaches the policy.
	Delay time.Duration `yaml:"delay"`
	// Engine reports whether the policy observes the engines' metrics.
	Engine bool `yaml:"engine"`
	// Gateway is what the gateway before the pool shows of interactive requests: histogram (what is
	// above the last edge within the SLO counts as late), contaminated (a histogram that counts
	// batch lines too), counters (of requests later than their own objective) or off.
	Gateway Gateway `yaml:"gateway"`
	// TTFTBuckets and TPOTBuckets are the upper bounds of the histograms' buckets. Empty: those of
	// the endpoint picker of the Gateway API inference extension, and the SLO.
	TTFTBuckets []time.Duration `yaml:"ttft_buckets"`
	TPOTBuckets []time.Duration `yaml:"tpot_buckets"`
	// Capabilities is the time for which runners cache an answer of GET /v1/capabilities, which the
	// policy then observes too. 0: they have none.
	Capabilities time.Duration `yaml:"capabilities"`
	// Faults are periods in which samples are wrong.
	Faults []MetricsFault `yaml:"faults"`
}

// The limits of Metrics.Period.
const (
	ShortestPeriod = 100 * time.Millisecond
	LongestPeriod  = time.Hour
)

// Gateway is how the gateway shows interactive latencies.
type Gateway string

// The kinds of gateways.
const (
	GatewayHistogram    Gateway = "histogram"
	GatewayContaminated Gateway = "contaminated"
	GatewayCounters     Gateway = "counters"
	GatewayOff          Gateway = "off"
)

// HasBuckets reports whether it shows a histogram.
func (g Gateway) HasBuckets() bool { return g == GatewayHistogram || g == GatewayContaminated }

// PeriodOf returns the scrape interval of a source.
func (m Metrics) PeriodOf(source MetricsSource) time.Duration {
	if source == GatewaySource && m.GatewayPeriod > 0 {
		return m.GatewayPeriod
	}
	return m.Period
}

// MetricsFault is a source that fails for a while.
type MetricsFault struct {
	Kind MetricsFaultKind `yaml:"kind"`
	// Source is what fails. Empty: all sources.
	Source MetricsSource `yaml:"source"`
	// Replicas whose engine or capabilities source fails, by number, from 0. Empty: all.
	Replicas []int `yaml:"replicas"`
	// From and To bound the fault; To is not given for a reset, which takes no time.
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to"`
}

// MetricsFaultKind is how a source fails.
type MetricsFaultKind string

// The kinds of faults.
const (
	Absent    MetricsFaultKind = "absent"    // no sample
	Frozen    MetricsFaultKind = "frozen"    // the last sample is repeated, with its time
	Restamped MetricsFaultKind = "restamped" // the last sample is repeated, with the present time
	Reset     MetricsFaultKind = "reset"     // counters start again from 0
)

// MetricsSource is what the daemon reads.
type MetricsSource string

// The sources.
const (
	EngineSource       MetricsSource = "engine"
	GatewaySource      MetricsSource = "gateway"
	CapabilitiesSource MetricsSource = "capabilities"
)

// Affects reports whether a fault applies to a source; the replica's number is -1 for the gateway.
func (f MetricsFault) Affects(source MetricsSource, replica int) bool {
	return (f.Source == "" || f.Source == source) && (len(f.Replicas) == 0 ||
		slices.Contains(f.Replicas, replica))
}

func defaultMetrics() Metrics {
	return Metrics{Period: 5 * time.Second, Jitter: time.Second, Delay: 20 * time.Millisecond,
		Engine: true, Gateway: GatewayHistogram}
}

var (
	faultsOfMetrics  = []MetricsFaultKind{Absent, Frozen, Restamped, Reset}
	sourcesOfMetrics = []MetricsSource{"", EngineSource, GatewaySource, CapabilitiesSource}
	gateways         = []Gateway{GatewayHistogram, GatewayContaminated, GatewayCounters, GatewayOff}
)

func (m Metrics) validate(horizon time.Duration, replicas int) error {
	var all problems
	all.check(m.Period >= ShortestPeriod && m.Period <= LongestPeriod,
		"metrics.period is %s, want 100ms to 1h", m.Period)
	all.check(m.GatewayPeriod == 0 || m.GatewayPeriod >= m.Period && m.GatewayPeriod <= time.Hour,
		"metrics.gateway_period is %s, want 0 for the period, or from the period, %s, to 1h",
		m.GatewayPeriod, m.Period)
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
		all.check(len(h.edges) == 0 || m.Gateway.HasBuckets(),
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
		all.check(f.Source != EngineSource || m.Engine,
			"%s.source is engine, but metrics.engine is off; remove one of them", path)
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
