package dispatch

import (
	"math"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// statusMetrics shows the state of pools, runners and batches as gauges, and what pools have
// counted. A scrape reads what was published last, so all values are of one moment and nothing
// remains of runners that have left.
type statusMetrics struct {
	pools   atomic.Pointer[poolStates]
	batches atomic.Pointer[batchStates]
}

type poolStates struct {
	pools []plan.PoolStatus
	terms [][]flowcontrol.Term // in the order of pools
}

type batchStates struct {
	counts batchCounts
	leads  int
}

func (s *statusMetrics) setPools(pools []plan.PoolStatus, terms [][]flowcontrol.Term) {
	s.pools.Store(&poolStates{pools, terms})
}

func (s *statusMetrics) setBatches(counts batchCounts, leads int) {
	s.batches.Store(&batchStates{counts, leads})
}

// gauges collects the descriptions of all gauges of statusMetrics.
var gauges []*prometheus.Desc

func gauge(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	gauges = append(gauges, d)
	return d
}

// countedGauges holds the descriptions of those of gauges that are counters.
var countedGauges = map[*prometheus.Desc]bool{}

func counted(name, help string, labels ...string) *prometheus.Desc {
	d := gauge(name, help, labels...)
	countedGauges[d] = true
	return d
}

var (
	livingBatches = gauge("tidefill_batches",
		"Batches that have not ended, by state; paused ones count as paused.", "state")
	batchesAtRisk = gauge("tidefill_batches_at_risk", "Batches in progress that will probably "+
		"miss the deadline of their completion window: their verdict is at_risk or infeasible "+
		"or, without a verdict, neither at their mean rate so far nor at the present rate are "+
		"they done by then. Of batches without a result, those that have used half of the time.")
	batchVerdicts = gauge("tidefill_batches_by_verdict", "Batches that have not ended, by "+
		"whether they will meet their deadline: ok; at_risk, if nothing goes worse than "+
		"expected; infeasible, not even with every allowed replica. Batches without a forecast "+
		"are in none.", "verdict")
	leadCount = gauge("tidefill_leads",
		"Runners and models that this process leads; 0 while it stands by.")

	poolLimited = gauge("tidefill_pool_limited", "1 for the reason why a pool starts no more "+
		"lines now; flowing: lines start as others end; nothing_ready: no line waits.",
		"pool", "reason")
	poolWarned = gauge("tidefill_pool_warning", "1 for what flow control warns of now: what is "+
		"probably wrong with the pool or its configuration. The log has the text. "+
		"implausible_objective: flowcontrol.slo.tpot is below what iterations take without batch "+
		"lines, or more than five times that though no answer needs it; implausible_ttft: "+
		"flowcontrol.slo.ttft is missed without batch lines, or more than ten times what nearly "+
		"all first tokens take then; streams_buffered, "+
		"streams_in_intervals: streams are not trusted.", "pool", "warning")
	poolInFlight = gauge("tidefill_pool_in_flight_lines", "Batch lines in flight on all runners "+
		"of the pool. An autoscaler for interactive traffic should subtract them from the "+
		"requests that it counts.", "pool")
	poolAllowance = gauge("tidefill_pool_allowance_lines", "Batch lines that may be in flight on "+
		"all runners of the pool.", "pool")

	runnerInFlight = gauge("tidefill_runner_in_flight_lines", "Batch lines in flight.", "pool",
		"runner")
	runnerAllowance = gauge("tidefill_runner_allowance_lines",
		"Batch lines that may be in flight.", "pool", "runner")
	runnerLimited = gauge("tidefill_runner_limited", "1 for the reason why the runner gets no "+
		"more lines; none: it carries fewer than flow control allows.", "pool", "runner", "reason")
	runnerPrompts = gauge("tidefill_runner_waiting_prompt_tokens",
		"Prompt tokens of batch lines that wait to be computed, as far as is known.", "pool",
		"runner")
	breakerOpen = gauge("tidefill_runner_breaker_open", "1 while the circuit breaker of the "+
		"runner is open: only trial lines are sent to it.", "pool", "runner")
	runnerFailing = gauge("tidefill_runner_failing", "1 while a runner gets single lines only, "+
		"because it answers nearly all with errors, with 401 or 403, or with what is no answer.",
		"pool", "runner")
	interactiveRequests = gauge("tidefill_runner_interactive_requests", "Requests of others than "+
		"Tidefill that run or wait on the runner, as its metrics show them. Absent without such "+
		"readings.", "pool", "runner", "state")
)

// termGauge is a gauge that shows a term of the policy's explanation. Policies that do not control
// token times have none of these terms, and no series.
type termGauge struct {
	desc  *prometheus.Desc
	unit  float64 // that a term of 1 has in the unit of the gauge
	zeros bool    // whether 0 is a value, or else means unknown
}

const millisecond = 1e-3 // in seconds

// poolTerms and runnerTerms are the gauges by term.
var (
	poolTerms = map[string]termGauge{
		flowcontrol.TermObjective: {desc: gauge("tidefill_pool_token_time_objective_seconds",
			"Time of an iteration, and so of each token that users get, that batch work must not "+
				"exceed: flowcontrol.slo.tpot, or flowcontrol.slo.slowdown times the time without "+
				"batch lines.", "pool"), unit: millisecond},
		flowcontrol.TermTarget: {desc: gauge("tidefill_pool_token_time_target_seconds",
			"Time of an iteration that flow control aims at; below the objective, because not all "+
				"iterations are alike.", "pool"), unit: millisecond},
		flowcontrol.TermAlone: {desc: gauge("tidefill_pool_token_time_alone_seconds",
			"Time of an iteration without batch lines: measured while there are none, or what "+
				"remains without their cost. A mean of minutes.", "pool"), unit: millisecond},
		flowcontrol.TermTargetShare: {desc: gauge("tidefill_pool_target_share_ratio", "Share of "+
			"the time between an iteration without batch lines and the objective that batch "+
			"lines may take.", "pool"), unit: 1, zeros: true},
		flowcontrol.TermLate: {desc: gauge("tidefill_pool_interactive_late_ratio", "Share of the "+
			"interactive requests of about 20 minutes that got their tokens later than "+
			"flowcontrol.slo.tpot, for whatever reason, as the gateway counts them. Absent "+
			"without a gateway's histograms.", "pool"), unit: 1, zeros: true},
		flowcontrol.TermLateBudget: {desc: gauge("tidefill_pool_late_budget_ratio", "Part of the "+
			"lines that may run, by how many interactive requests batch work has made late within "+
			"half an hour; 1: all.", "pool"), unit: 1, zeros: true},
	}
	runnerTerms = map[string]termGauge{
		flowcontrol.TermTokenTime: {desc: gauge("tidefill_runner_token_time_seconds",
			"Time of an iteration, and so of each token that users get, batch lines included: a "+
				"mean of seconds.", "pool", "runner"), unit: millisecond},
	}
)

// Describe implements prometheus.Collector.
func (*statusMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range gauges {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *statusMetrics) Collect(ch chan<- prometheus.Metric) {
	show := func(d *prometheus.Desc, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if countedGauges[d] {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	if b := s.batches.Load(); b != nil {
		b.show(show)
	}
	if states := s.pools.Load(); states != nil {
		for i := range states.pools {
			showPool(&states.pools[i], states.terms[i], show)
		}
	}
}

// showGauge shows one value of a gauge.
type showGauge func(d *prometheus.Desc, value float64, labels ...string)

func (b *batchStates) show(show showGauge) {
	for _, state := range livingStates {
		show(livingBatches, float64(b.counts.states[state]), state)
	}
	show(batchesAtRisk, float64(b.counts.atRisk))
	for _, verdict := range store.Verdicts {
		show(batchVerdicts, float64(b.counts.verdicts[verdict]), string(verdict))
	}
	show(leadCount, float64(b.leads))
}

func showPool(p *plan.PoolStatus, terms []flowcontrol.Term, show showGauge) {
	pool := p.ID
	why := string(p.Reason)
	if p.Reason == plan.Flowing {
		why = "flowing"
	}
	show(poolLimited, 1, pool, why)
	shown := map[string]bool{} // a policy may give one code twice
	for _, w := range p.Warnings {
		if !shown[w.Code] {
			show(poolWarned, 1, pool, w.Code)
		}
		shown[w.Code] = true
	}
	show(poolInFlight, float64(p.InFlight), pool)
	show(poolAllowance, float64(p.Limit), pool)
	showShadow(pool, p, show)
	showRequests(pool, p.Requests, show)
	showFallback(p.Fallback, show)
	byRunner := showPoolTerms(pool, terms, show)
	for i := range p.Runners {
		showRunner(pool, &p.Runners[i], byRunner[p.Runners[i].ID], show)
	}
}

// showPoolTerms shows the pool's terms and returns those of each runner by name.
func showPoolTerms(
	pool string, terms []flowcontrol.Term, show showGauge,
) (byRunner map[string]map[string]float64) {
	ofPool := map[string]float64{}
	byRunner = map[string]map[string]float64{"": ofPool}
	for _, t := range terms {
		of := byRunner[t.Runner]
		if of == nil {
			of = map[string]float64{}
			byRunner[t.Runner] = of
		}
		of[t.Name] = t.Value
	}
	if ofPool[flowcontrol.TermRequests] == 0 { // then none of them was counted
		delete(ofPool, flowcontrol.TermLate)
	}
	showTerms(poolTerms, ofPool, show, pool)
	return byRunner
}

// interactiveStates has the term of each state of interactive requests.
var interactiveStates = map[string]string{
	"running": flowcontrol.TermInteractiveRunning,
	"waiting": flowcontrol.TermInteractiveWaiting,
}

func showRunner(
	pool string, r *plan.RunnerStatus, terms map[string]float64, show showGauge,
) {
	show(runnerInFlight, float64(r.InFlight), pool, r.ID)
	show(runnerAllowance, float64(r.Limit), pool, r.ID)
	why := "none"
	if limited := r.Limited(); limited != flowcontrol.ReasonNone {
		why = string(limited)
	}
	show(runnerLimited, 1, pool, r.ID, why)
	show(runnerPrompts, float64(r.Prefilling), pool, r.ID)
	open := 0.0
	if r.Open {
		open = 1
	}
	show(breakerOpen, open, pool, r.ID)
	failing := 0.0
	if r.Failing {
		failing = 1
	}
	show(runnerFailing, failing, pool, r.ID)
	showTerms(runnerTerms, terms, show, pool, r.ID)
	if age, known := terms[flowcontrol.TermLoadAge]; known && !math.IsInf(age, 0) {
		for state, term := range interactiveStates {
			if n := terms[term]; !math.IsNaN(n) {
				show(interactiveRequests, n, pool, r.ID, state)
			}
		}
	}
}

// showTerms shows the terms that have a gauge and a known value.
func showTerms(
	gauges map[string]termGauge, terms map[string]float64, show showGauge, labels ...string,
) {
	for name, g := range gauges {
		value, known := terms[name]
		if known && !math.IsNaN(value) && !math.IsInf(value, 0) && (g.zeros || value != 0) {
			show(g.desc, value*g.unit, labels...)
		}
	}
}
