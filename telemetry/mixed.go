package telemetry

import (
	"errors"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// errMixed comes instead of readings of a page that several engines serve in turn.
var errMixed = errors.New("several engines answer there")

// mixed recognises a URL behind which several engines serve their pages in turn, such as that of a
// Kubernetes Service. Their counters jump back and forth: one falls, and in a single step it is
// back where it was. An engine that restarts begins at nothing, and takes long to be back.
type mixed struct {
	counters [len(mixedCounters)]jumps
	newest   time.Time // Sampled of the last reading that was compared
	until    time.Time // as long as the page counts as mixed
}

// jumps is what one counter has shown.
type jumps struct {
	last         float64
	peak, trough float64   // before and after the last fall
	fellAt       time.Time // zero: it has not fallen
}

const (
	// mixedFor is the time for which a page counts as mixed after a jump back: a kept connection
	// shows one engine for a while.
	mixedFor = 10 * time.Minute
	// freshEvery is the number of reads of a page that use one connection. A Service chooses an
	// engine for each connection, so one that is kept would show the same engine for ever.
	freshEvery = 8
	// restarted is the share of its value to which the counter of a restarted engine falls at most
	// within a reading.
	restarted = 0.1
)

// mixedCounters are compared. They grow in every engine that serves.
var mixedCounters = [...]func(*flowcontrol.Reading) float64{
	func(r *flowcontrol.Reading) float64 { return r.PromptTokens },
	func(r *flowcontrol.Reading) float64 { return r.OutputTokens },
	func(r *flowcontrol.Reading) float64 { return r.TokenGaps },
}

// check returns errMixed if a page is served by several engines, by this reading and those before.
// A reading that is not newer is not compared: replicas of Prometheus scrape an engine at different
// times, so its counters fall where one answers that has scraped before the other.
func (m *mixed) check(r *flowcontrol.Reading) error {
	if r.Sampled.After(m.newest) {
		m.newest = r.Sampled
		m.compare(r)
	}
	if r.Sampled.Before(m.until) {
		return errMixed
	}
	return nil
}

// compare notes a jump back in the counters of a reading.
func (m *mixed) compare(r *flowcontrol.Reading) {
	for i, of := range mixedCounters {
		if value := of(r); value >= 0 && m.counters[i].add(value, r.Sampled) {
			m.until = r.Sampled.Add(mixedFor)
		}
	}
}

// add takes over a value. It reports whether the counter has jumped back to where it was before it
// fell.
func (j *jumps) add(value float64, at time.Time) (back bool) {
	before := j.last
	j.last = value
	switch {
	case value < before && value > restarted*before:
		j.peak, j.trough, j.fellAt = before, value, at
	case value < before: // a restart
		j.fellAt = time.Time{}
	case !j.fellAt.IsZero() && at.Sub(j.fellAt) <= mixedFor && value >= j.peak &&
		before < (j.peak+j.trough)/2:
		return true
	}
	return false
}
