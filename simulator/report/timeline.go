package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator"
)

// timeline draws the charts of one run, with the same axis of time.
func timeline(id string, slo SLO, run *simulator.Result) []figure {
	t := run.Timeline
	of := func(name, title, unit string, curves ...curve) chart {
		return chart{id: id + "-" + name, title: title, unit: unit, at: t.At, curves: curves}
	}
	ttft := of("ttft", "Interactive time to first token", "ms", curve{"p99", t.TTFT.P99},
		curve{"p50", t.TTFT.P50})
	ttft.limit, ttft.limitName = slo.TTFT, "objective for short prompts"
	tpot := of("tpot", "Interactive time per output token", "ms", curve{"p99", t.TPOT.P99},
		curve{"p50", t.TPOT.P50})
	tpot.limit, tpot.limitName = slo.TPOT, "objective"
	misses := of(
		"missed", "Interactive requests that missed an objective, by the time of their answer",
		"% of those answered", curve{"missed", missed(t.Attainment)})
	all := []figure{
		ttft.figure(), tpot.figure(), misses.figure(),
		of("harvest", "Batch harvest", "useful tokens a second",
			curve{"harvest", t.Harvest}).figure(),
		allowance(id, t),
		of("engines", "Requests in the engines", "requests", curve{"running", t.Running},
			curve{"waiting", t.Waiting}).figure(),
		of("replicas", "Replicas", "replicas", curve{"wanted", t.Wanted}, curve{"ready", t.Ready},
			curve{"starting", t.Starting}).figure(),
	}
	var iterations []curve
	for _, r := range t.Iteration {
		iterations = append(iterations, curve{r.Replica, r.Values})
	}
	const readable = 8
	if len(iterations) > readable {
		iterations = iterations[:readable]
	}
	if len(iterations) > 0 {
		title := "Iteration time by replica"
		if len(run.Timeline.Iteration) > readable {
			title = fmt.Sprintf("Iteration time of the first %d replicas", readable)
		}
		all = append(all, of("iteration", title, "ms", iterations...).figure())
	}
	return all
}

// missed is the complement of attainment, in percent.
func missed(attained simulator.Series) simulator.Series {
	out := make(simulator.Series, len(attained))
	for i, v := range attained {
		out[i] = 100 * (1 - v)
	}
	return out
}

// allowance draws lines in flight and allowed, above a band of what limits them.
func allowance(id string, t *simulator.Timeline) figure {
	id += "-allowance"
	const band = 22
	c := chart{id: id, title: "Batch lines in flight and allowed, and what limits them",
		unit: "lines", at: t.At,
		curves: []curve{{"in flight", t.InFlight}, {"allowed", t.Allowance}}}
	f := c.figure()
	reasons := reasonsOf(t)
	about := "In order of the time they limited: "
	for i, r := range reasons {
		if i > 0 {
			about += ", "
		}
		about += fmt.Sprintf("%s %s", r.name,
			percent(float64(r.samples)/float64(max(1, len(t.Reason)))))
	}
	d := newDrawing(id+"-why", "What limits batch work", about, 2*band+8)
	x := func(i int) float64 {
		const width = chartWidth - chartLeft - chartRight
		return chartLeft + float64(i)/float64(max(1, len(t.Reason)))*width
	}
	for i := 0; i < len(t.Reason); {
		end := i
		for end < len(t.Reason) && t.Reason[end] == t.Reason[i] {
			end++
		}
		place := slices.IndexFunc(reasons, func(r reason) bool {
			return r.name == words(t.Reason[i])
		})
		title := fmt.Sprintf("%s, minute %s to %s", words(t.Reason[i]),
			fixed((t.At[i]-t.Every)/60, 1), fixed(t.At[end-1]/60, 1))
		d.rect(x(i), 0, x(end)-x(i), band-4, fmt.Sprintf("fill c%d", place%colours), title)
		i = end
	}
	legend := float64(chartLeft)
	for i, r := range reasons {
		text := fmt.Sprintf("%s %s", r.name,
			percent(float64(r.samples)/float64(max(1, len(t.Reason)))))
		if width := 16 + 6.5*float64(len([]rune(text))) +
			14; legend+width <= chartWidth {
			d.rect(legend, band+6, 11, 11, fmt.Sprintf("fill c%d", i%colours), text)
			d.label(legend+16, band+16, "legend", "start", text)
			legend += width
		}
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

// reason is a limiting reason and how many samples it limited.
type reason struct {
	name    string
	samples int
}

// reasonsOf lists the reasons, the most frequent first.
func reasonsOf(t *simulator.Timeline) []reason {
	var all []reason
	for _, why := range t.Reason {
		i := slices.IndexFunc(all, func(r reason) bool { return r.name == words(why) })
		if i < 0 {
			i = len(all)
			all = append(all, reason{name: words(why)})
		}
		all[i].samples++
	}
	slices.SortStableFunc(all, func(a, b reason) int { return cmp.Compare(b.samples, a.samples) })
	return all
}

func words(why plan.Reason) string { return cmp.Or(string(why), "nothing") }
