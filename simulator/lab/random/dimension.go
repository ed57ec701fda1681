package random

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// dimensions returns the properties by which results are grouped, each in a few classes.
func (d *draft) dimensions() []Dimension {
	pool, in, m := d.scenario.Pool, d.scenario.Interactive, d.scenario.Metrics
	view := "current"
	if pool.RouterView > 0 {
		view = class(pool.RouterView.Seconds(), "", " s", 1, 5)
	}
	arrivals := string(d.arrivals)
	if d.arrivals == Bursts {
		arrivals = "bursts " + class(in.Bursts.Length.Seconds(), "", " s", 5, 60)
	}
	model := "known"
	switch {
	case pool.FactsWithheld:
		model = "not configured"
	case pool.CostModelError.C0 > 0:
		model = "wrong"
	}
	cached := "none"
	if d.cachedShare > 0 {
		cached = class(d.cachedShare, "", "", 0.5)
	}
	prompt, answer := d.demand.prompt, d.demand.answer
	if in.Input.Median > 0 {
		prompt, answer = in.Input.Median, in.Output.Median
	}
	queue := "priority"
	if pool.Scheduling == engine.FirstCome {
		queue = "fcfs"
	}
	kinds := "several"
	if len(d.scenario.Jobs) == 1 {
		kinds = cmp.Or(d.scenario.Jobs[0].Kind, "own lengths")
	}
	gateway := string(m.Gateway)
	if !m.Engine {
		gateway += ", no engine"
	}
	return []Dimension{
		{"runners", class(float64(pool.Replicas), "", "", 1, 4, 16)},
		{"profile", pool.Profile},
		{"cost model", model},
		{"chunk budget", fmt.Sprint(pool.MaxBatchedTokens)},
		{"queue", queue},
		{"router", string(pool.Router)},
		{"router view", view},
		{"arrivals", arrivals},
		{"load", class(d.rate/d.capacity, "", "", 0.05, 0.15, 0.4)},
		{"requests/s", class(d.rate, "", "", 1, 5)},
		{"prompt", class(prompt, "", "", 200, 1000, 5000)},
		{"answer", class(answer, "", "", 50, 200)},
		{"cached", cached},
		{"objectives", string(d.objectives)},
		{"metrics", class(m.Period.Seconds(), "", " s", 1, 5)},
		{"gateway", gateway},
		{"jobs", kinds},
	}
}

// class returns the interval between the edges that a number lies in.
func class(x float64, prefix, suffix string, edges ...float64) string {
	low := math.Inf(-1)
	for _, edge := range edges {
		if x <= edge {
			if math.IsInf(low, -1) {
				return fmt.Sprintf("%s≤ %v%s", prefix, edge, suffix)
			}
			return fmt.Sprintf("%s%v-%v%s", prefix, low, edge, suffix)
		}
		low = edge
	}
	return fmt.Sprintf("%s> %v%s", prefix, low, suffix)
}

// about describes the scenario in a sentence.
func (d *draft) about() string {
	in := d.scenario.Interactive
	return fmt.Sprintf("%d runners, %.2g requests a second (%s) at a load of %.2g, prompts of "+
		"%.0f and answers of %.0f tokens, objectives of %s and %s", d.scenario.Pool.Replicas,
		d.rate, d.arrivals, d.rate/d.capacity, d.demand.prompt, d.demand.answer,
		in.SLO.TTFT.Round(time.Millisecond), in.SLO.TPOT)
}
