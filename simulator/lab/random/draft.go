package random

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// draft is a scenario while it is drawn: its properties, before the rate and the objectives are
// known to be possible.
type draft struct {
	Distributions
	source   Source
	number   int
	attempt  int
	scenario scenario.Scenario
	profile  engine.Profile // with the scenario's limits
	trace    *workload.Trace

	arrivals    Arrivals
	utilization float64
	demand      demand
	longPrompt  float64 // the 99th percentile of prompts
	rate        float64 // requests a second, the mean
	capacity    float64 // of the pool
	cachedShare float64 // of prompts
	peak        float64 // of bursts and days, over the mean

	objectives Objectives
	slack      struct{ ttft, tpot float64 } // factors of the objectives
}

// random returns the sequence of one property.
func (d *draft) random(property string) *rand.Rand {
	return workload.Seed(d.source.Seed).Rand(fmt.Sprintf("random pool %d.%d/%s", d.number,
		d.attempt, property))
}

func (s Source) draft(number, attempt int) *draft {
	d := &draft{Distributions: s.Family.Distributions(), source: s, number: number,
		attempt: attempt, peak: 1}
	d.scenario = scenario.Default()
	d.scenario.Name = fmt.Sprintf("random-%s-%d-%d", s.Family.Name, s.Seed, number)
	d.scenario.Horizon = s.Horizon
	d.drawEngine()
	d.drawTraffic()
	d.drawRate()
	d.drawArrivals()
	d.drawObjectives()
	d.drawMetrics()
	d.drawJobs()
	return d
}

// minKV is the least KV capacity of an engine, in tokens.
const minKV = 8000

func (d *draft) drawEngine() {
	pool := &d.scenario.Pool
	pool.Replicas = int(math.Round(d.Runners.draw(d.random("runners"))))
	pool.Profile = pick(d.random("profile"), d.Profiles)
	d.profile, _ = engine.ProfileNamed(pool.Profile)
	rng := d.random("cost model")
	if known := chance(rng, d.KnownCostModel); !known {
		factor := func() float64 { return significant(d.CostModelError.draw(rng), 3) }
		pool.CostModelError = scenario.CostModelError{C0: factor(), KV: factor(), Prefill: factor()}
	}
	if pool.FactsWithheld = chance(d.random("facts"), d.FactsWithheld); pool.FactsWithheld {
		pool.CostModelError = scenario.CostModelError{}
	}
	pool.MaxBatchedTokens = pick(d.random("chunk budget"), d.ChunkBudgets)
	d.profile.MaxBatchedTokens = pool.MaxBatchedTokens
	if n := pick(d.random("max seqs"), d.MaxSeqs); n > 0 {
		d.profile.MaxSeqs = n
	}
	d.profile.MaxSeqs = min(d.profile.MaxSeqs, d.profile.MaxBatchedTokens)
	pool.MaxSeqs = d.profile.MaxSeqs
	rng = d.random("kv")
	if full := chance(rng, d.FullKV); !full {
		part := d.KVPart.draw(rng)
		d.profile.KVTokens = max(minKV, int(significant(part*float64(d.profile.KVTokens), 2)))
		pool.KVTokens = d.profile.KVTokens
	}
	if !chance(d.random("priority"), d.ByPriority) {
		pool.Scheduling = engine.FirstCome
	}
	pool.PrefixCaching = chance(d.random("prefix caching"), d.PrefixCaching)
	pool.ShedAbove = pick(d.random("shed"), d.Shed)
	rng = d.random("router")
	pool.Router = choose(rng, d.Routers)
	if current := chance(rng, d.CurrentView); !current && pool.Router != scenario.RoundRobin {
		pool.RouterView = seconds(d.RouterView.draw(rng))
	}
}

// Share of the KV cache that the longest prompt and the longest answer may take.
const (
	longestPrompt = 0.4
	longestAnswer = 0.2
)

// longRequests is the KV capacity that engines need for generated conversations, whose prompts have
// more than 100,000 tokens.
const longRequests = 200_000

func (d *draft) drawTraffic() {
	rng := d.random("arrivals")
	d.arrivals = choose(rng, d.Arrivals)
	var fitting []Trace
	for _, t := range d.source.Traces {
		if 2*t.longest() <= d.profile.KVTokens {
			fitting = append(fitting, t)
		}
	}
	if d.arrivals == Replay && len(fitting) == 0 {
		d.arrivals = Conversations
	}
	if d.arrivals == Conversations && d.profile.KVTokens < longRequests {
		d.arrivals = Poisson
	}
	in := &d.scenario.Interactive
	switch d.arrivals {
	case Replay:
		t := pick(rng, fitting)
		in.Trace, in.Format, d.trace = t.File, t.Format, t.Content
		s := t.Content.Statistics()
		d.demand = demand{prompt: s.MeanInput, computed: s.MeanInput, answer: s.MeanOutput}
		d.longPrompt = t.longPrompt()
		return
	case Conversations:
		in.Generator = workload.LongConversation().Name
		d.demand = demand{prompt: 12_000, computed: 12_000, answer: 340}
		d.longPrompt = 85_000
		return
	}
	in.Generator = workload.Conversation().Name
	kv := float64(d.profile.KVTokens)
	in.Input = drawLength(d.random("prompt"), d.Prompt, d.PromptSigma, longestPrompt*kv)
	in.Output = drawLength(d.random("answer"), d.Answer, d.AnswerSigma, longestAnswer*kv)
	d.demand = demand{prompt: meanLength(in.Input), answer: meanLength(in.Output)}
	d.longPrompt = in.Input.Median * portable.Exp(2.33*in.Input.Sigma)
	rng = d.random("prefix")
	if own := chance(rng, d.OwnPrompts); !own && d.arrivals != ClosedLoop {
		in.Prefix = scenario.Prefix{Share: significant(d.SharedPart.draw(rng), 2),
			Groups: int(math.Round(d.Groups.draw(rng)))}
		if d.scenario.Pool.PrefixCaching {
			d.cachedShare = in.Prefix.Share
		}
	}
	d.demand.computed = (1 - d.cachedShare) * d.demand.prompt
}

// drawLength draws a distribution of lengths whose longest fits into a number of tokens.
func drawLength(rng *rand.Rand, median, sigma Range, most float64) scenario.Length {
	l := scenario.Length{Median: significant(median.draw(rng), 2),
		Sigma: significant(sigma.draw(rng), 2)}
	l.Median = min(l.Median, significant(most/3, 2))
	l.Max = int(min(significant(l.Median*portable.Exp(3*l.Sigma), 2), most))
	return l
}

// meanLength returns the mean of the log-normal distribution, without its bound.
func meanLength(l scenario.Length) float64 {
	return l.Median * portable.Exp(l.Sigma*l.Sigma/2)
}

// These bound the requests of a run: with too few of them a single one is a large part of a point
// of loss, and too many take long to simulate. A pool that would get more than maxRate has fewer
// runners instead; a single runner that carries more has a lower load than was drawn.
const (
	minRequests = 500
	maxRate     = 25 // a second
)

// lasting is the length from which a burst cannot be queued, so that the pool must carry it.
const lasting = 5 * time.Second

func (d *draft) drawRate() {
	d.utilization = d.Utilization.draw(d.random("utilization"))
	one := d.demand.capacity(d.profile)
	pool := &d.scenario.Pool
	if most := maxRate / (d.utilization * one); float64(pool.Replicas) > most {
		pool.Replicas = max(1, int(most))
	}
	d.capacity = one * float64(pool.Replicas)
	lasts := false // the pool must carry the peak
	switch d.arrivals {
	case Bursts:
		lasts = d.drawBursts()
	case Days:
		d.peak, lasts = significant(d.DayOverMean.draw(d.random("days")), 2), true
	}
	d.rate = d.utilization * d.capacity
	if lasts {
		d.rate /= d.peak
	}
	d.setRate(min(max(d.rate, d.minRate()), maxRate))
}

// minRate is the rate at which a run has enough requests to measure a loss.
func (d *draft) minRate() float64 {
	return minRequests / (d.scenario.Horizon - 2*scenario.Edge).Seconds()
}

// setRate sets the mean rate, and the arrivals that depend on it.
func (d *draft) setRate(rate float64) {
	d.rate = significant(rate, 3)
	in := &d.scenario.Interactive
	in.Rate = d.rate
	switch d.arrivals {
	case Poisson:
		in.Dispersion = scenario.Dispersion{VarMean: 1, Window: 10 * time.Second}
	case Days:
		in.Dispersion = scenario.Dispersion{VarMean: 1, Window: 10 * time.Second}
		d.setDay()
	case ClosedLoop:
		in.Rate = 0
		answer := time.Duration(0)
		if t, ok := d.demand.iteration(d.profile, d.rate/float64(d.scenario.Pool.Replicas)); ok {
			answer = time.Duration(t * d.demand.answer * float64(time.Millisecond))
		}
		cycle := in.Users.Think + answer
		in.Users.Count = max(2, int(d.rate*cycle.Seconds()))
	}
}

// drawBursts draws bursts, of which a run has two or more in the mean. It reports whether they last
// so long that the pool must carry them.
func (d *draft) drawBursts() (last bool) {
	rng := d.random("bursts")
	d.peak = significant(d.PeakOverMean.draw(rng), 3)
	requests := min(d.InBursts.draw(rng), 0.5*(1+1/d.peak)) // in bursts, as a share of all
	time := requests / d.peak                               // in bursts, as a share of the run
	quiet := (1 - requests) / (1 - time)                    // rate between bursts over the mean
	length := min(d.BurstScale.draw(rng), time*d.scenario.Horizon.Seconds()/2)
	d.scenario.Interactive.Bursts = scenario.Bursts{
		Factor: significant(min(d.peak/quiet, maxFactor), 3),
		Length: max(seconds(length), shortest), Gap: seconds(length * (1 - time) / time)}
	return d.scenario.Interactive.Bursts.Length >= lasting
}

// The limits of bursts in scenarios.
const (
	maxFactor = 64
	shortest  = 100 * time.Millisecond
)

// levelHalfWidths are half the time that a cosine spends above each of six levels, as shares of its
// period: acos(2l-1)/2π for the levels l of 1/12, 3/12 and so on.
var levelHalfWidths = [6]float64{0.4068, 0.3333, 0.2766, 0.2234, 0.1667, 0.0932}

// setDay makes the rate a day and a night within the run: a cosine in six steps, highest in the
// middle. Bundled shapes take 24 hours; most runs are shorter.
func (d *draft) setDay() {
	in := &d.scenario.Interactive
	in.Surges = nil
	// With a mean of 1 and this peak, the night has the rest. Where that would be too little, the
	// day is shorter; it takes half of the run otherwise.
	night := max(0.1, 2-d.peak)
	length := 2 * (1 - night) / (d.peak - night)
	in.Rate = significant(d.rate*night, 3)
	for _, half := range levelHalfWidths {
		half = half * length
		in.Surges = append(in.Surges, scenario.Surge{
			At:     part(d.scenario.Horizon, 0.5-half),
			For:    part(d.scenario.Horizon, 2*half),
			Factor: significant(1+(d.peak-night)/night/float64(len(levelHalfWidths)), 4)})
	}
}

func (d *draft) drawArrivals() {
	if d.arrivals == ClosedLoop {
		d.scenario.Interactive.Users.Think = seconds(d.Think.draw(d.random("think")))
		d.setRate(d.rate)
	}
}

func (d *draft) drawObjectives() {
	rng := d.random("objectives")
	d.objectives = choose(rng, d.Distributions.Objectives)
	d.scenario.Interactive.SLOWithheld = chance(d.random("withheld"), d.Withheld)
	d.slack.ttft, d.slack.tpot = d.TTFT.draw(rng), d.TPOT.draw(rng)
	loose, tight := [2]float64{d.MisfitTTFT.draw(rng), d.MisfitTPOT.draw(rng)},
		[2]float64{d.TTFT.Low, d.TPOT.Low}
	if d.objectives == Misfit {
		d.slack.ttft, d.slack.tpot = tight[0], tight[1]
		which := rng.IntN(3) // both, or one of them
		if which != 1 {
			d.slack.ttft = loose[0]
		}
		if which != 2 {
			d.slack.tpot = loose[1]
		}
	}
}

func (d *draft) drawMetrics() {
	m := &d.scenario.Metrics
	rng := d.random("metrics")
	period := d.source.Metrics.period(d.Period.draw(rng))
	m.Period, m.Jitter = seconds(period), seconds(period*rng.Float64()/5)
	m.Jitter = min(m.Jitter, m.Period)
	m.Gateway = choose(d.random("gateway"), d.Gateways)
	m.Engine = chance(d.random("engine metrics"), d.EngineMetrics)
	d.source.Metrics.replace(m)
}

func (d *draft) drawJobs() {
	rng := d.random("jobs")
	if chance(rng, d.SingleJob) {
		d.scenario.Jobs = []scenario.Job{d.drawJob(rng, "backlog")}
		return
	}
	n := int(math.Round(d.Jobs.draw(rng)))
	at := time.Duration(0)
	for i := range n {
		j := d.drawJob(rng, "job "+strconv.Itoa(i+1))
		j.At, j.Tenant = at, pick(rng, d.Tenants)
		gap := part(d.scenario.Horizon, rng.Float64()/float64(n))
		if busy := gap.Seconds() * d.JobSize.draw(rng); i < n-1 {
			j.Lines = d.linesFor(j, busy)
		}
		at += gap
		d.scenario.Jobs = append(d.scenario.Jobs, j)
	}
}

// drawJob draws the lines of a job, whose longest an engine can hold.
func (d *draft) drawJob(rng *rand.Rand, name string) scenario.Job {
	j := scenario.Job{Name: name}
	if bundled := chance(rng, d.BundledKind); bundled {
		j.Kind = pick(rng, d.Kinds)
		return j
	}
	kv := float64(d.profile.KVTokens)
	j.Input = drawLength(rng, d.LinePrompt, d.LineSigma, longestPrompt*kv)
	j.Output = drawLength(rng, d.LineAnswer, d.LineSigma, longestAnswer*kv)
	if own := chance(rng, d.OwnLines); !own {
		j.Shared = significant(d.LineShared.draw(rng), 2)
	}
	return j
}

// linesFor returns the number of lines of a job that take a third of the engines' time for some
// seconds.
func (d *draft) linesFor(j scenario.Job, busy float64) int {
	k, err := j.LineKind()
	if err != nil {
		panic(err) // the kinds are ours
	}
	work, weights := 0.0, 0.0
	for _, p := range k.Parts {
		work += p.Weight *
			d.profile.CostModel.LineWork(int(p.Input.Median), int(p.Output.Median))
		weights += p.Weight
	}
	lines := 1000 * busy / 3 * float64(d.scenario.Pool.Replicas) * weights / work
	return min(max(10, int(significant(lines, 2))), 50_000)
}

// significant returns a number with some significant digits, so that a scenario can be read.
func significant(x float64, digits int) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return y
}

// seconds returns a duration with three significant digits.
func seconds(s float64) time.Duration {
	return time.Duration(math.Round(significant(s, 3)*1000)) * time.Millisecond
}

// part returns a share of a time, to the second.
func part(of time.Duration, share float64) time.Duration {
	return time.Duration(share * float64(of)).Round(time.Second)
}
