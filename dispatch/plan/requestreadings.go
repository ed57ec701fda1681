package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func (k useCaseKey) compare(other useCaseKey) int {
	return cmp.Or(strings.Compare(k.name, other.name), strings.Compare(k.class, other.class))
}

// requested is what the requests and lines of a runner show of its engine: the counters of a
// reading that needs no metrics.
type requested struct {
	running      int
	prompts      float64
	cached       float64
	output       float64
	gaps         float64
	gapTime      float64 // seconds
	metricsUntil time.Time
	reported     time.Time
}

const (
	// requestsEvery is the time between two readings made of requests, and idleEvery that while
	// there are none.
	requestsEvery = 250 * time.Millisecond
	idleEvery     = time.Second
	// metricsHold is the time for which an engine's own reading counts rather than one made here.
	metricsHold = 10 * time.Second
)

func (q *requested) add(_ time.Time, _ *request) { q.running++ }

func (q *requested) spoke(x *request) { q.prompts += float64(x.PromptTokens) }

func (q *requested) decoded(ev RequestsDecoded) {
	q.output += float64(ev.Tokens)
	q.gaps += float64(ev.Gaps)
	q.gapTime += ev.Time.Seconds()
}

func (q *requested) ended(x *request, ev *RequestEnded) {
	q.running--
	q.cached += float64(ev.CachedTokens)
	if x.first.IsZero() {
		q.prompts += float64(x.PromptTokens)
	}
}

// reading returns the reading of the runner that its requests make.
func (r *runner) reading(now time.Time) *flowcontrol.Reading {
	made := flowcontrol.NoReading(flowcontrol.Metrics, now)
	made.Running = float64(r.requested.running + r.inFlight)
	made.Waiting = 0
	made.TokenGaps, made.TokenGapTime = r.requested.gaps, r.requested.gapTime
	return &made
}

// felt is what the users of a pool's requests have felt: the counters of a gateway's reading.
type felt struct {
	requests        float64
	promptTokens    float64
	outputTokens    float64
	ttft, tpot      histogramOf
	prompts, answer histogramOf
	// late of each were later than the objective at that time
	ttftCount, tpotCount flowcontrol.Attainment
}

func (f *felt) firstToken(latency time.Duration, slo flowcontrol.SLO) {
	f.ttft.add(timeEdges, latency.Seconds())
	countTime(&f.ttftCount, latency, slo.TTFT)
}

// countTime counts a time and, if it exceeds the objective, that it is late.
func countTime(of *flowcontrol.Attainment, took, objective time.Duration) {
	of.Requests++
	if took > objective {
		of.Late++
	}
}

func (f *felt) ended(x *request, ev *RequestEnded, slo flowcontrol.SLO) {
	f.requests++
	prompt := ev.PromptTokens
	if prompt == 0 {
		prompt = x.PromptTokens
	}
	f.promptTokens += float64(prompt)
	f.outputTokens += float64(ev.OutputTokens)
	f.prompts.add(lengthEdges, float64(prompt))
	if ev.OutputTokens > 0 {
		f.answer.add(lengthEdges, float64(ev.OutputTokens))
	}
	if ev.OutputTokens > 1 && !x.first.IsZero() {
		decoding := ev.Latency - x.first.Sub(x.started)
		each := decoding / time.Duration(ev.OutputTokens-1)
		f.tpot.add(timeEdges, each.Seconds())
		countTime(&f.tpotCount, each, slo.TPOT)
	}
}

// reading returns the reading of the gateway that the requests make. Where there is an objective,
// late requests are counted exactly rather than by the edges of histograms.
func (f *felt) reading(now time.Time, slo flowcontrol.SLO) *flowcontrol.Reading {
	made := flowcontrol.NoReading(flowcontrol.Gateway, now)
	made.Requests = f.requests
	made.PromptTokens, made.OutputTokens = f.promptTokens, f.outputTokens
	made.FirstTokenTimes, made.TokenTimes = f.ttft.buckets(timeEdges), f.tpot.buckets(timeEdges)
	made.PromptLengths, made.AnswerLengths = f.prompts.buckets(lengthEdges),
		f.answer.buckets(lengthEdges)
	if slo.TTFT > 0 {
		made.TTFT = f.ttftCount
	}
	if slo.TPOT > 0 {
		made.TPOT = f.tpotCount
	}
	return &made
}

// histogramOf counts values by edges; the last count is of those beyond.
type histogramOf []float64

func (h *histogramOf) add(edges []float64, value float64) {
	if *h == nil {
		*h = make([]float64, len(edges)+1)
	}
	i, _ := slices.BinarySearch(edges, value)
	(*h)[i]++
}

func (h histogramOf) buckets(edges []float64) []flowcontrol.Bucket {
	all := make([]flowcontrol.Bucket, 0, len(edges)+1)
	sum := 0.0
	for i := range len(edges) + 1 {
		edge := math.Inf(1)
		if i < len(edges) {
			edge = edges[i]
		}
		if h != nil {
			sum += h[i]
		}
		all = append(all, flowcontrol.Bucket{Upper: edge, Count: sum})
	}
	return all
}

// timeEdges are a twentieth apart, so that an objective lies near one. lengthEdges double.
var timeEdges, lengthEdges = edges(0.001, 1.05, 100), edges(1, 2, 1<<20)

func edges(from, factor, to float64) (all []float64) {
	for edge := from; edge <= to; edge *= factor {
		all = append(all, edge)
	}
	return all
}

// watchRequests reports what requests show of the runners and their users to flow control, and
// adjusts the guard.
func (p *Planner) watchRequests(now time.Time, pool *pool) {
	if !p.cfg.Inline.Enabled || len(pool.runners) == 0 || pool.instead != "" {
		return
	}
	pool.guard.look(now, pool.requestsRunning+pool.inFlight)
	if now.Before(pool.watchAt) {
		return
	}
	every := idleEvery
	if pool.requestsRunning > 0 {
		every = requestsEvery
	}
	pool.watchAt = now.Add(every)
	made := false
	for _, r := range pool.runners {
		if r.requested.metricsUntil.After(now) {
			continue
		}
		made = true
		pool.read(now, r.id, r.reading(now))
	}
	users := pool.felt.reading(now, pool.controlled.SLO)
	pool.outcomes.read(now, users, pool.inFlight)
	if made {
		pool.read(now, "", users)
	}
}
