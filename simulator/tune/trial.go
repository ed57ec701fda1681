package tune

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

// trial is a setting that the search has tried, with the results on the seeds of the search.
type trial struct {
	point   []float64
	name    string // the values as the configuration takes them
	value   float64
	results map[runKey]simulator.Result
}

// tried adds a trial, unless rounding makes it one that was tried before.
func (t *Tuning) tried(point []float64, value float64, results map[runKey]simulator.Result) {
	name := t.name(point)
	if slices.ContainsFunc(t.trials, func(o trial) bool { return o.name == name }) {
		return
	}
	t.trials = append(t.trials, trial{slices.Clone(point), name, value, results})
}

// allowed returns the loss that a scenario allows, in points.
func (t *Tuning) allowed(scenario int) float64 {
	return cmp.Or(t.Scenarios[scenario].Scenario.Goals.Loss, simulator.MaxLoss)
}

// excess returns the loss of the run on some seeds that exceeds what its scenario allows by most,
// and what that is; kept: no run exceeds it.
func (t *Tuning) excess(
	results map[runKey]simulator.Result, seeds []uint64,
) (loss, allowed float64, kept bool) {
	most := math.Inf(-1)
	for i := range t.Scenarios {
		for _, seed := range seeds {
			r, ran := results[runKey{i, seed}]
			if over := r.Loss - t.allowed(i); ran && over > most {
				most, loss, allowed = over, r.Loss, t.allowed(i)
			}
		}
	}
	return loss, allowed, most <= 0
}

// maxShown is the number of trials that are listed.
const maxShown = 5

// writeTrials lists the best trials with their figures: the means over runs, and the worst loss.
func (t *Tuning) writeTrials(out io.Writer) error {
	best := slices.Clone(t.trials)
	slices.SortStableFunc(best, func(a, b trial) int { return cmp.Compare(b.value, a.value) })
	best = best[:min(maxShown, len(best))]
	fmt.Fprintf(out, "\nthe best of %s, on the seeds that were searched\n",
		humanize.Count(len(t.trials), "setting"))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, p := range t.Parameters {
		fmt.Fprintf(w, "%s\t", strings.ToUpper(p.Key[strings.LastIndex(p.Key, ".")+1:]))
	}
	fmt.Fprintln(w, "OBJECTIVE\tHARVEST, M\tWORST LOSS, POINTS\tDEADLINES\tGPU HOURS")
	for _, tr := range best {
		for i, p := range t.Parameters {
			fmt.Fprintf(w, "%s\t", p.text(tr.point[i]))
		}
		harvest, hours, met, deadlines := 0.0, 0.0, 0, 0
		loss := math.Inf(-1)
		for i := range t.Scenarios {
			for _, seed := range t.SearchSeeds {
				if r, ran := tr.results[runKey{i, seed}]; ran {
					harvest, hours = harvest+float64(r.Batch.Useful)/1e6, hours+r.GPUHours
					met, deadlines = met+r.Batch.Met, deadlines+r.Batch.Deadlines
					loss = max(loss, r.Loss)
				}
			}
		}
		runs := float64(max(1, len(tr.results)))
		fmt.Fprintf(w, "%.4f\t%.2f\t%.2f\t%d/%d\t%.1f\n", tr.value, harvest/runs, loss, met,
			deadlines, hours/runs)
	}
	return w.Flush()
}

// unaffected are the values from low to high of a parameter that give the same figures.
type unaffected struct{ low, high float64 }

// withoutEffect returns the parameters that made no difference, by their index: those whose first
// other value gave the figures of the configuration's. Of a single parameter, all values must have.
func (t *Tuning) withoutEffect() map[int]unaffected {
	found := map[int]unaffected{}
	for i := range t.Parameters {
		if i+1 >= len(t.trials) {
			break
		}
		others := t.trials[i+1 : i+2]
		if len(t.Parameters) == 1 {
			others = t.trials[1:]
		}
		if slices.ContainsFunc(others, func(o trial) bool { return !same(t.trials[0], o) }) {
			continue
		}
		u := unaffected{t.trials[0].point[i], t.trials[0].point[i]}
		for _, o := range others {
			u.low, u.high = min(u.low, o.point[i]), max(u.high, o.point[i])
		}
		found[i] = u
	}
	return found
}

// same reports whether two trials have the same figures in every run.
func same(a, b trial) bool {
	for key, r := range a.results {
		other, ran := b.results[key]
		if !ran || r.Loss != other.Loss || r.WorstLoss != other.WorstLoss ||
			r.Batch != other.Batch || r.GPUHours != other.GPUHours {
			return false
		}
	}
	return true
}

// verdict says in sentences what to do.
func (t Tuned) verdict() []string {
	var all []string
	idle := t.tuning.withoutEffect()
	for i, p := range t.tuning.Parameters {
		if u, is := idle[i]; is {
			all = append(all, fmt.Sprintf("%s makes no difference: all figures are the same from "+
				"%s to %s.", p.Key, p.text(u.low), p.text(u.high)))
		}
	}
	return append(all, t.advice())
}

func (t Tuned) advice() string {
	loss, allowed, kept := t.tuning.excess(t.after, t.tuning.seeds())
	_, goal, was := t.tuning.excess(t.tuning.before, t.tuning.seeds())
	_, _, found := t.tuning.excess(t.after, t.tuning.SearchSeeds)
	number := humanize.Count(len(t.tuning.trials), "setting")
	switch {
	case t.Better() && kept:
		return "The setting below is better, on the seeds held back too."
	case t.Better():
		return fmt.Sprintf("The setting below is better, on the seeds held back too, but users "+
			"still lose %.2f points, more than the goal of %s. %s", loss, points(allowed),
			t.beyond())
	case was:
		return "No setting is better on the seeds held back too. Keep the configuration as it is."
	case kept:
		return fmt.Sprintf("The configuration loses more than the goal of %s. %s keeps the goal, "+
			"but is not better on the seeds held back. Search with more --seeds.", points(goal),
			t.bestText())
	case found:
		return fmt.Sprintf("The configuration loses more than the goal of %s. %s keeps the goal "+
			"on the seeds that were searched, and loses %.2f points on one held back. Search with "+
			"more --seeds. %s", points(goal), t.bestText(), loss, t.beyond())
	}
	return fmt.Sprintf("All of the %s tried, the configuration's too, lose more than the goal of "+
		"%s. The best is %s with %.2f points. %s", number, points(allowed), t.bestText(), loss,
		t.beyond())
}

func points(n float64) string {
	if n == 1 {
		return "1 point"
	}
	return strconv.FormatFloat(n, 'g', 4, 64) + " points"
}

// bestText names the values of the best point.
func (t Tuned) bestText() string {
	var parts []string
	for i, p := range t.tuning.Parameters {
		parts = append(parts, p.Key+"="+p.text(t.best.Point[i]))
	}
	return strings.Join(parts, " ")
}

// beyond says where to search where no setting keeps the goal.
func (t Tuned) beyond() string {
	var ends []string
	idle := t.tuning.withoutEffect()
	for i, p := range t.tuning.Parameters {
		if _, is := idle[i]; is {
			continue
		}
		switch p.text(t.best.Point[i]) {
		case p.text(p.Low):
			ends = append(ends, fmt.Sprintf("below %s of %s", p.text(p.Low), p.Key))
		case p.text(p.High):
			ends = append(ends, fmt.Sprintf("above %s of %s", p.text(p.High), p.Key))
		}
	}
	text := "Search other keys"
	if len(ends) > 0 {
		text = "Search " + strings.Join(ends, " and ")
	}
	if t.policy != headroom {
		text += ", or use flowcontrol.policy=" + headroom
	}
	return text + "."
}

// headroom is the policy that is made to keep the goal.
const headroom = "headroom"
