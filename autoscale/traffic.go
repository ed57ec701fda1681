package autoscale

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// Traffic measures the interactive traffic of a pool: what its runners count, less what they have
// computed for batch lines. The zero value has seen nothing.
//
// The counters of a runner and those of its batch lines are read at different times, so the latter
// are interpolated between two readings.
type Traffic struct {
	runners map[string]*runnerTraffic
	mix     meanMix
	// further requests, of some time, are not part of mix yet
	further increment
	since   time.Time
}

// Counters are what a runner has counted at a time: since its engine started for all its requests,
// or since any moment for batch lines alone. They only grow, unless they begin again.
type Counters struct {
	At time.Time
	// Requests counts those answered. NaN: unknown, as are NaN tokens.
	Requests float64
	// PromptTokens counts the tokens computed, which leaves out those found in a prefix cache.
	PromptTokens float64
	OutputTokens float64
}

const (
	// trafficWindow is the time over which the rate is taken. minTraffic is the least part of it
	// in which a runner must have been seen, because less is too noisy.
	trafficWindow = time.Minute
	minTraffic    = 10 * time.Second
	// staleTraffic is the age of the last sample from which on a runner counts as unknown.
	staleTraffic = 30 * time.Second
	// newRunner is the time for which a runner is not missed that has not been seen for
	// minTraffic.
	newRunner = 2 * minTraffic
	// trafficSamples limits the samples that are kept of a runner.
	trafficSamples = 256
)

// runnerTraffic is what is known of a runner. Both series are sorted by time.
type runnerTraffic struct {
	listed  time.Time // when it was first asked for; zero: never
	all     []Counters
	own     []Counters
	counted time.Time // up to when its requests are part of the mean mix
}

func (t *Traffic) runner(id string) *runnerTraffic {
	if t.runners == nil {
		t.runners = map[string]*runnerTraffic{}
	}
	r := t.runners[id]
	if r == nil {
		r = &runnerTraffic{}
		t.runners[id] = r
	}
	return r
}

// Sampled takes over what the metrics of a runner show of all its requests. A sample that is not
// newer than the last one is ignored.
func (t *Traffic) Sampled(runner string, c Counters) {
	r := t.runner(runner)
	r.all = appended(r.all, c)
}

// Computed takes over what a runner has computed for batch lines. Without it nothing is known of
// the runner's interactive requests.
func (t *Traffic) Computed(runner string, c Counters) {
	r := t.runner(runner)
	r.own = appended(r.own, c)
}

func appended(series []Counters, c Counters) []Counters {
	if n := len(series); n > 0 && !c.At.After(series[n-1].At) {
		return series
	}
	if len(series) >= trafficSamples {
		series = slices.Delete(series, 0, trafficSamples/4)
	}
	return append(series, c)
}

// Interactive returns the rate and the mean request of the last minute in a pool of these runners,
// each of which is listed once. What is known of others is dropped. The rate is NaN while most of
// the runners are unknown; otherwise the unknown ones count as the mean of the known.
func (t *Traffic) Interactive(now time.Time, runners []string) Interactive {
	rate, known, missing := 0.0, 0, 0
	for _, id := range runners {
		r := t.runner(id)
		if r.listed.IsZero() {
			r.listed = now
		}
		r.prune(now)
		last := r.increments(now.Add(-trafficWindow))
		switch {
		case last.over >= minTraffic && now.Sub(last.until) < staleTraffic:
			known++
			rate += last.requests / last.over.Seconds()
		case now.Sub(r.listed) >= newRunner:
			missing++
		}
		t.count(r)
	}
	t.drop(runners)
	t.updateMix(now)
	result := Interactive{Served: true, Rate: math.NaN(),
		Mix: costmodel.Mix{Prompt: t.mix.prompt, Output: t.mix.output}}
	if known > 0 && missing <= known {
		result.Rate = max(0, rate*float64(known+missing)/float64(known))
	}
	if result.Rate > 0 && t.mix.requests == 0 {
		result.Rate = math.NaN() // the number of replicas that it takes is unknown
	}
	return result
}

// count adds the runner's requests that have not been counted for the mean request.
func (t *Traffic) count(r *runnerTraffic) {
	more := r.increments(r.counted)
	if more.until.After(r.counted) {
		r.counted = more.until
	}
	if !math.IsNaN(more.prompt) && !math.IsNaN(more.output) {
		t.further = t.further.plus(more)
	}
}

// updateMix makes the further requests part of the mean. It waits for some of them, because tokens
// are counted before their requests are.
func (t *Traffic) updateMix(now time.Time) {
	if t.since.IsZero() {
		t.since = now
	}
	m := &t.further
	if m.requests >= mixStep || m.requests >= 1 && now.Sub(t.since) >= trafficWindow {
		t.mix.add(m.requests, max(0, m.prompt)/m.requests, max(0, m.output)/m.requests)
		t.further, t.since = increment{}, now
	}
}

// drop forgets all runners but these.
func (t *Traffic) drop(but []string) {
	for id := range t.runners {
		if !slices.Contains(but, id) {
			delete(t.runners, id)
		}
	}
}

// increment is what counters of interactive requests have grown by.
type increment struct {
	requests, prompt, output float64
	over                     time.Duration
	until                    time.Time
}

func (i increment) plus(j increment) increment {
	i.requests, i.prompt, i.output = i.requests+j.requests, i.prompt+j.prompt, i.output+j.output
	i.over += j.over
	if j.until.After(i.until) {
		i.until = j.until
	}
	return i
}

// increments returns the growth of the counters of the runner's interactive requests since a time.
// It leaves out the times in which counters began again, or of which too little is known.
func (r *runnerTraffic) increments(from time.Time) (sum increment) {
	for i := 1; i < len(r.all); i++ {
		a, b := r.all[i-1], r.all[i]
		if !b.At.After(from) {
			continue
		}
		ownA, knownA := at(r.own, a.At)
		ownB, knownB := at(r.own, b.At)
		grown, own := b.since(a), ownB.since(ownA)
		if !knownA || !knownB || !grown.counted() || !own.counted() {
			continue
		}
		sum = sum.plus(increment{grown.requests - own.requests, grown.prompt - own.prompt,
			grown.output - own.output, grown.over, b.At})
	}
	return sum
}

func (c Counters) since(before Counters) increment {
	return increment{c.Requests - before.Requests, c.PromptTokens - before.PromptTokens,
		c.OutputTokens - before.OutputTokens, c.At.Sub(before.At), c.At}
}

// counted reports whether the counters did not begin again, and the requests are known.
func (i increment) counted() bool {
	return i.requests >= 0 && !(i.prompt < 0) && !(i.output < 0)
}

// at interpolates a series at a time. known is false outside of the series.
func at(series []Counters, when time.Time) (c Counters, known bool) {
	i, found := slices.BinarySearchFunc(series, when, func(c Counters, when time.Time) int {
		return c.At.Compare(when)
	})
	switch {
	case found:
		return series[i], true
	case i == 0 || i == len(series):
		return Counters{}, false
	}
	a, b := series[i-1], series[i]
	share := float64(when.Sub(a.At)) / float64(b.At.Sub(a.At))
	between := func(x, y float64) float64 { return x + share*(y-x) }
	return Counters{when, between(a.Requests, b.Requests),
		between(a.PromptTokens, b.PromptTokens), between(a.OutputTokens, b.OutputTokens)}, true
}

// prune drops what is too old to be of use.
func (r *runnerTraffic) prune(now time.Time) {
	from := now.Add(-trafficWindow)
	r.all = since(r.all, from)
	if len(r.all) > 0 && r.all[0].At.Before(from) {
		from = r.all[0].At
	}
	r.own = since(r.own, from)
}

// since returns the part of a series from a time on, and the one before.
func since(series []Counters, from time.Time) []Counters {
	i, _ := slices.BinarySearchFunc(series, from, func(c Counters, from time.Time) int {
		return c.At.Compare(from)
	})
	return series[max(0, i-1):]
}

// meanMix is the exponential mean of the lengths of requests.
type meanMix struct {
	requests       float64 // that it is of
	prompt, output float64
}

const (
	// mixMemory is the number of requests that the mean is taken over.
	mixMemory = 1000
	// mixStep is the number of requests that are added at a time, unless few come in a minute.
	mixStep = 20
)

// add adds requests with mean lengths.
func (m *meanMix) add(requests, prompt, output float64) {
	m.requests = min(m.requests+requests, mixMemory)
	weight := min(1, requests/m.requests)
	m.prompt += weight * (prompt - m.prompt)
	m.output += weight * (output - m.output)
}
