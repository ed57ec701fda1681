package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator"
)

// drawnRun is a run that charts draw.
type drawnRun struct {
	name, class string
	timeline    *simulator.Timeline
}

// drawnRuns returns the runs of the first seed that have a timeline: that without batch work first.
func (s *Scenario) drawnRuns(asked []*Policy) []drawnRun {
	var all []drawnRun
	if len(s.Seeds) > 0 && s.Seeds[0].Timeline != nil {
		all = append(all, drawnRun{"no batch", "quiet", s.Seeds[0].Timeline})
	}
	for i, p := range asked {
		if len(p.Runs) > 0 && p.Runs[0].Timeline != nil {
			all = append(all, drawnRun{p.Name, fmt.Sprintf("c%d", i%colours), p.Runs[0].Timeline})
		}
	}
	return all
}

// compared draws charts with a curve for each run, so that policies can be compared with each other
// and with the run without batch work.
func (s *Scenario) compared(id string, asked []*Policy) []figure {
	runs := s.drawnRuns(asked)
	if len(runs) == 0 {
		return nil
	}
	var all []figure
	draw := func(c chart, of func(t *simulator.Timeline) simulator.Series) {
		c.id, c.at = id+"-"+c.id, runs[0].timeline.At
		for _, r := range runs {
			if values := of(r.timeline); len(values) == len(c.at) {
				c.curves = append(c.curves, curve{r.name, r.class, values})
			}
		}
		if len(c.curves) > 0 {
			all = append(all, c.figure())
		}
	}
	type timeline = *simulator.Timeline
	draw(chart{id: "ttft", title: "Time to first token, p99 of all prompts", unit: "ms",
		limit: s.SLO.TTFT, limitName: "objective for short prompts"},
		func(t timeline) simulator.Series { return t.TTFT.P99 })
	draw(chart{id: "tpot", title: "Time per output token, p99", unit: "ms", limit: s.SLO.TPOT,
		limitName: "objective"}, func(t timeline) simulator.Series { return t.TPOT.P99 })
	draw(chart{id: "missed", title: "Requests that missed an objective", unit: "% of those " +
		"answered at the time"}, func(t timeline) simulator.Series { return missed(t.Attainment) })
	draw(chart{id: "harvest", title: "Batch harvest", unit: "useful tokens a second"},
		func(t timeline) simulator.Series { return t.Harvest })
	draw(chart{id: "inflight", title: "Batch lines in flight"},
		func(t timeline) simulator.Series { return t.InFlight })
	draw(chart{id: "running", title: "Requests that run in the engines"},
		func(t timeline) simulator.Series { return t.Running })
	draw(chart{id: "waiting", title: "Requests that wait in the engines"},
		func(t timeline) simulator.Series { return t.Waiting })
	draw(chart{id: "iteration", title: "Iteration time of the slowest replica", unit: "ms"},
		slowest)
	if slices.ContainsFunc(runs, drawnRun.scales) {
		draw(chart{id: "ready", title: "Replicas ready"},
			func(t timeline) simulator.Series { return t.Ready })
		draw(chart{id: "wanted", title: "Replicas wanted"},
			func(t timeline) simulator.Series { return t.Wanted })
	}
	return all
}

// scales reports whether the number of replicas changes in a run.
func (r drawnRun) scales() bool {
	low, high, _ := span(slices.Concat(r.timeline.Wanted, r.timeline.Ready))
	return low != high
}

// missed is the complement of attainment, in percent.
func missed(attained simulator.Series) simulator.Series {
	out := make(simulator.Series, len(attained))
	for i, v := range attained {
		out[i] = 100 * (1 - v)
	}
	return out
}

// slowest returns the longest iteration time of all replicas.
func slowest(t *simulator.Timeline) simulator.Series {
	if len(t.Iteration) == 0 {
		return nil
	}
	out := make(simulator.Series, len(t.At))
	for i := range out {
		out[i] = math.NaN()
		for _, r := range t.Iteration {
			if i < len(r.Values) && !(r.Values[i] <= out[i]) && !math.IsNaN(r.Values[i]) {
				out[i] = r.Values[i]
			}
		}
	}
	return out
}

// allowance draws lines in flight and allowed, above a band of what limits them.
func allowance(id string, t *simulator.Timeline) figure {
	id += "-allowance"
	const band = 18
	c := chart{id: id, title: "Batch lines in flight and allowed, and what limits them",
		at: t.At, curves: []curve{{"in flight", "c0", t.InFlight}, {"allowed", "c1",
			t.Allowance}}}
	f := c.figure()
	reasons := reasonsOf(t)
	about := "In order of the time they limited: "
	for i, r := range reasons {
		if i > 0 {
			about += ", "
		}
		about += r.share(t)
		f.Notes = append(f.Notes, legendKey{fmt.Sprintf("fill c%d", i%colours),
			r.share(t) + ": " + r.meaning()})
	}
	d := newDrawing(id+"-why", "What limits batch work", about, band)
	x := func(i int) float64 {
		const width = chartWidth - chartLeft - chartRight
		return chartLeft + float64(i)/float64(max(1, len(t.Reason)))*width
	}
	for i := 0; i < len(t.Reason); {
		end := i
		for end < len(t.Reason) && t.Reason[end] == t.Reason[i] {
			end++
		}
		place := slices.IndexFunc(reasons, func(r reason) bool { return r.why == t.Reason[i] })
		title := fmt.Sprintf("%s, minute %s to %s", words(t.Reason[i]),
			fixed((t.At[i]-t.Every)/60, 1), fixed(t.At[end-1]/60, 1))
		d.rect(x(i), 0, x(end)-x(i), band-2, fmt.Sprintf("fill c%d", place%colours), title)
		i = end
	}
	f.Drawing += d.end()
	f.Head = append(f.Head, "limited by")
	step := stride(len(t.At))
	for k := range f.Rows {
		if i := (k+1)*step - 1; i < len(t.Reason) {
			f.Rows[k] = append(f.Rows[k], words(t.Reason[i]))
		}
	}
	return f
}

// reason is a limiting reason and the number of samples that it limited.
type reason struct {
	why     plan.Reason
	samples int
}

// share is the reason and the share of the time that it limited.
func (r reason) share(t *simulator.Timeline) string {
	return words(r.why) + " " + percent(float64(r.samples)/float64(max(1, len(t.Reason))))
}

func (r reason) meaning() string {
	return plan.Explain(plan.Reason(cmp.Or(string(r.why), "flowing"))).Meaning
}

// reasonsOf lists the reasons, the most frequent first.
func reasonsOf(t *simulator.Timeline) []reason {
	var all []reason
	for _, why := range t.Reason {
		i := slices.IndexFunc(all, func(r reason) bool { return r.why == why })
		if i < 0 {
			i = len(all)
			all = append(all, reason{why: why})
		}
		all[i].samples++
	}
	slices.SortStableFunc(all, func(a, b reason) int { return cmp.Compare(b.samples, a.samples) })
	return all
}

func words(why plan.Reason) string { return cmp.Or(string(why), "nothing") }
