package flowcontrol

import (
	"math"
	"time"
)

// Reading is one sample of the metrics of a runner, or of the gateway in front of a pool. A value
// that the source does not have, or did not show this time, is NaN: absent is not zero. Start from
// NoReading.
type Reading struct {
	Source Source
	// Sampled is when the values were true, according to the source. It may be well before the time
	// at which they are observed. A source that hangs repeats it.
	Sampled time.Time

	// Running and Waiting count the engine's requests, batch lines included.
	Running, Waiting float64
	// KVUsed is the share of the KV cache in use, 0 to 1; KVTokens is the capacity of all of it in
	// tokens.
	KVUsed, KVTokens float64

	// The counters below only grow, unless the source restarts and they start again.

	// Requests counts those that have been answered. A gateway counts interactive requests alone.
	Requests float64
	// PromptTokens counts those of requests that have begun to be answered, and CachedTokens those
	// of them that were found in the prefix cache.
	PromptTokens, CachedTokens float64
	OutputTokens               float64
	Preemptions                float64
	// TokenGaps counts the gaps between consecutive tokens of all requests. TokenGapTime is the sum
	// of these gaps, in seconds. Each request that decodes has one gap in each iteration.
	TokenGaps, TokenGapTime float64
	// GapTimes is the histogram of these gaps, in seconds; empty: absent.
	GapTimes []Bucket

	// PromptLengths and AnswerLengths are histograms of the tokens of requests that have been
	// answered; empty: absent. Those of an engine include batch lines, those of a gateway do not.
	PromptLengths, AnswerLengths []Bucket

	// TTFT and TPOT are about interactive requests alone. Engines' own histograms mix them with
	// batch lines and are not for these fields.
	// They are unknown without an absolute objective to count late requests against: see Against.
	TTFT, TPOT Attainment
	// FirstTokenTimes and TokenTimes are the histograms of TTFT and TPOT, in seconds; empty: the
	// source only counts. An engine shows the former only, batch lines included.
	FirstTokenTimes, TokenTimes []Bucket
}

// Attainment counts the requests that had a time measured, and those of them for which it exceeded
// the objective. Both only grow.
type Attainment struct{ Requests, Late float64 }

// Source is where a reading comes from.
type Source uint8

// The sources.
const (
	Metrics      Source = iota + 1 // of one engine, its /metrics
	Capabilities                   // of one runner, GET /v1/capabilities
	// Gateway is the router in front of the pool, or Prometheus: interactive latencies.
	Gateway
)

// NoReading returns a reading that shows nothing.
func NoReading(source Source, sampled time.Time) Reading {
	nan := math.NaN()
	unknown := Attainment{nan, nan}
	return Reading{
		Source: source, Sampled: sampled, Running: nan, Waiting: nan, KVUsed: nan, KVTokens: nan,
		Requests: nan, PromptTokens: nan, CachedTokens: nan, OutputTokens: nan, Preemptions: nan,
		TokenGaps: nan, TokenGapTime: nan, TTFT: unknown, TPOT: unknown,
	}
}

// Against returns the reading of a gateway with the late requests of its histograms counted against
// a pool's objectives. What the gateway counts itself stays. Other sources count no late requests:
// their histograms have batch lines among the requests.
func (r *Reading) Against(slo SLO) *Reading {
	if r.Source != Gateway {
		return r
	}
	judged := *r
	for _, of := range []struct {
		counts  *Attainment
		times   []Bucket
		longest time.Duration
	}{
		{&judged.TTFT, r.FirstTokenTimes, slo.TTFT},
		{&judged.TPOT, r.TokenTimes, slo.TPOT},
	} {
		if math.IsNaN(of.counts.Requests) && of.longest > 0 {
			*of.counts = Attained(of.times, of.longest.Seconds())
		}
	}
	return &judged
}
