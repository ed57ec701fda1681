package flowcontrol

import (
	"math"
	"time"
)

// Reading is one look at a runner, or at the gateway before a pool, by whatever shows its metrics.
// A value that the source does not have, or did not show this time, is NaN: absent is not zero.
// Start from NoReading.
type Reading struct {
	Source Source
	// Sampled is when the values were true, by the source's own word; it may lie well before the
	// time they are observed. A source that is stuck repeats it.
	Sampled time.Time

	// Running and Waiting count the engine's requests, ours among them.
	Running, Waiting float64
	// KVUsed is the share of the KV cache in use, 0 to 1; KVTokens how many tokens the whole holds.
	KVUsed, KVTokens float64

	// These only grow, unless the source is restarted and they begin anew.

	// PromptTokens of requests that have begun to be answered, CachedTokens of them that were found
	// in the prefix cache.
	PromptTokens, CachedTokens float64
	OutputTokens               float64
	Preemptions                float64

	// TTFT and TPOT are about interactive requests alone. Engines' own histograms mix them with
	// ours and are not for these fields.
	TTFT, TPOT Attainment
}

// Attainment counts the requests that had a time measured, and those of them for which it was
// longer than promised. Both only grow.
type Attainment struct{ Requests, Late float64 }

// Source is where a reading comes from.
type Source uint8

const (
	Metrics      Source = iota + 1 // of one engine, its /metrics
	Capabilities                   // of one runner, GET /v1/capabilities
	// of the router before the pool, or of Prometheus: interactive latencies
	Gateway
)

// NoReading is a reading that shows nothing.
func NoReading(source Source, sampled time.Time) Reading {
	nan := math.NaN()
	unknown := Attainment{nan, nan}
	return Reading{
		Source: source, Sampled: sampled, Running: nan, Waiting: nan, KVUsed: nan, KVTokens: nan,
		PromptTokens: nan, CachedTokens: nan, OutputTokens: nan, Preemptions: nan, TTFT: unknown,
		TPOT: unknown,
	}
}
