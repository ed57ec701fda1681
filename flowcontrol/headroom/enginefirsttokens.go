package headroom

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// engineFirstTokens counts first tokens of interactive requests where no gateway does it, or not
// without batch lines: those that the engines count, without those of batch lines.
type engineFirstTokens struct {
	times   firstTokenTimes // cumulative, as a gateway would count
	changed bool
	judged  firstTokenTimes // those that late was counted of
	late    float64
	shownAt time.Time // Sampled of the last histogram
}

// add adds what a runner's metrics counted between two readings, without its batch lines.
func (e *engineFirstTokens) add(before, now *flowcontrol.Reading, own *ownFirstTokens) {
	var fresh firstTokenTimes
	fresh.add(before.FirstTokenTimes, now.FirstTokenTimes)
	if fresh == nil || len(e.times) > 0 && !sameEdges(e.times, fresh) {
		*own = ownFirstTokens{} // the engine has started, or is new
		return
	}
	own.removeFrom(fresh, now.Sampled)
	if e.times == nil {
		e.times = slices.Clone(fresh)
	} else {
		for i := range e.times {
			e.times[i].Count += fresh[i].Count
		}
	}
	e.shownAt = now.Sampled
	e.changed = e.changed || fresh.count() > 0 // else there may be no users
}

// attained returns the number of first tokens, and the number of those that exceeded a limit.
func (e *engineFirstTokens) attained(limit, part float64) flowcontrol.Attainment {
	var fresh firstTokenTimes
	if e.judged == nil {
		fresh = e.times
	} else {
		fresh.add(e.judged, e.times)
	}
	e.judged = slices.Clone(e.times)
	if len(fresh) > 0 {
		e.late += attained(fresh, limit, part).Late
	}
	return flowcontrol.Attainment{Requests: e.times.count(), Late: e.late}
}

// readEngines takes over first tokens from the engines while they stand in for a gateway.
func (c *Controller) readEngines(now time.Time) {
	e := &c.engineFirst
	if !e.changed || !c.enginesStandIn(now) {
		return
	}
	e.changed = false
	r := flowcontrol.NoReading(flowcontrol.Metrics, now)
	r.FirstTokenTimes = slices.Clone(e.times)
	if c.slo.TTFT > 0 {
		limit := c.slo.TTFT.Seconds()
		r.TTFT = e.attained(limit, c.first.recent.lateInBucket(limit))
	}
	c.readGateway(now, &r)
}

// ownFirstTokens are first tokens of a runner's batch lines that were not taken yet from what its
// metrics count.
type ownFirstTokens struct {
	seen   []firstTokenTime // of streamed lines, the oldest first
	unseen float64          // lines that have started without a stream
}

type firstTokenTime struct {
	at      time.Time
	seconds float64
}

// maxSeen bounds them for a runner whose metrics are not read.
const maxSeen = 2000

func (f *ownFirstTokens) observe(now time.Time, o flowcontrol.Observation) {
	switch o := o.(type) {
	case *flowcontrol.Started:
		if !o.Streamed {
			f.unseen++
		}
	case *flowcontrol.Shed: // the engine counts no first token of it
		f.unseen = max(0, f.unseen-1)
	case *flowcontrol.FirstToken:
		if o.Latency > 0 && len(f.seen) < maxSeen {
			f.seen = append(f.seen, firstTokenTime{now, o.Latency.Seconds()})
		}
	}
}

// removeFrom removes the first tokens of batch lines from what an engine has counted until sampled.
// An engine counts them before they are seen, and with less time. Those of lines without a stream
// are supposed to take as long as the others.
func (f *ownFirstTokens) removeFrom(times firstTokenTimes, sampled time.Time) {
	counts := times.counts()
	counted := 0
	for counted < len(f.seen) && !f.seen[counted].at.After(sampled) {
		for i := times.bucket(f.seen[counted].seconds); i >= 0; i-- {
			if counts[i] >= 1 {
				counts[i]--
				break
			}
		}
		counted++
	}
	f.seen = slices.Delete(f.seen, 0, counted)
	all := 0.0
	for _, n := range counts {
		all += n
	}
	unseen := min(f.unseen, all)
	f.unseen -= unseen
	sum, part := 0.0, (all-unseen)/max(all, 1)
	for i, n := range counts {
		sum += n * part
		times[i].Count = sum
	}
}

// counts returns the number of first tokens in each bucket.
func (f firstTokenTimes) counts() []float64 {
	counts, below := make([]float64, len(f)), 0.0
	for i, b := range f {
		counts[i] = max(0, b.Count-below)
		below = max(below, b.Count)
	}
	return counts
}

// bucket returns the bucket that counts a time.
func (f firstTokenTimes) bucket(seconds float64) int {
	i := 0
	for i < len(f)-1 && seconds > f[i].Upper && !math.IsInf(f[i].Upper, 1) {
		i++
	}
	return i
}
