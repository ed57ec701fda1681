package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

// Difference compares a scenario with a changed one: the same policies and seeds.
type Difference struct {
	Scenario string `json:"scenario"`
	// Change says in words what is changed.
	Change string `json:"change"`
	// Sentences has one for each policy.
	Sentences []string           `json:"sentences"`
	Policies  []PolicyDifference `json:"policies"`
	// Notes are what to know of both.
	Notes []string `json:"notes,omitempty"`
}

// PolicyDifference is the figures of a policy in both scenarios, as means over seeds.
type PolicyDifference struct {
	Name    string        `json:"name"`
	Figures []Differences `json:"figures"`
}

// Differences is one figure in both scenarios.
type Differences struct {
	Name    string `json:"name"`
	Given   Number `json:"given"`
	Changed Number `json:"changed"`

	digits int
}

// Differ compares the policies that were asked for of two judged scenarios.
func Differ(change string, given, changed *Scenario) Difference {
	d := Difference{Scenario: given.Name, Change: change}
	for _, p := range given.asked() {
		q := changed.policy(p.Name)
		if q == nil {
			continue
		}
		d.Sentences = append(d.Sentences, changed.whatIf(change, given, p, q))
		d.Policies = append(d.Policies, PolicyDifference{p.Name, figuresOf(given, p, changed, q)})
	}
	return d
}

// whatIf says what a change does to users, harvest and deadlines. p is the policy in the given
// scenario and q in this one.
func (s *Scenario) whatIf(change string, given *Scenario, p, q *Policy) string {
	harvest := insteadOf(tokens(float64(q.Useful.Mean)/s.Hours),
		tokens(float64(p.Useful.Mean)/given.Hours), " useful batch tokens an hour")
	text := fmt.Sprintf("With %s, %s would harvest %s", change, q.Name, harvest)
	if s.users() {
		was, is := percentOf(p, interactiveShare), percentOf(q, interactiveShare)
		text = fmt.Sprintf("With %s, %s of interactive requests would be within their objectives; "+
			"batch work with %s would cost users %s (%s allowed), and harvest %s",
			change, insteadOf(is, was, ""), q.Name,
			insteadOf(points(q.Loss.Mean), points(p.Loss.Mean), " points"),
			strconv.FormatFloat(s.allowedLoss(), 'g', 4, 64),
			harvest)
	}
	if p.Feasible+q.Feasible > 0 {
		text += "; " + metText(p, q)
	}
	if quiet := percentOf(q, quietShare); s.unfit() {
		text += fmt.Sprintf("; even without batch work only %s of requests would be within their "+
			"objectives, and the scenario asks for %s", quiet, percent(s.SLO.Attainment))
	}
	return text + "."
}

// metText says how many deadlines would be met with a policy instead of how many are.
func metText(was, is *Policy) string {
	of := " of " + humanize.Count(is.Feasible, "deadline") + " would be met"
	switch {
	case was.Feasible != is.Feasible:
		return fmt.Sprintf("%d%s instead of %d of %d", is.Met, of, was.Met, was.Feasible)
	case was.Met != is.Met:
		return fmt.Sprintf("%d instead of %d%s", is.Met, was.Met, of)
	}
	return fmt.Sprintf("%d%s, as now", is.Met, of)
}

// unfit reports whether the pool misses its objective even without batch work.
func (s *Scenario) unfit() bool {
	for _, seed := range s.Seeds {
		if seed.NoBatch.Requests > 0 && seed.NoBatch.Attainment < s.SLO.Attainment {
			return true
		}
	}
	return false
}

// insteadOf compares two figures in words.
func insteadOf(is, was, unit string) string {
	if is == was {
		return is + unit + ", as now"
	}
	return is + unit + " instead of " + was
}

func interactiveShare(r *simulator.Result) float64 { return 100 * r.Interactive.Attainment }

func quietShare(r *simulator.Result) float64 { return 100 * r.NoBatch.Attainment }

func percentOf(p *Policy, share func(r *simulator.Result) float64) string {
	return fixed(mean(p, share), 2) + " %"
}

// mean is that of a value over the seeds.
func mean(p *Policy, value func(r *simulator.Result) float64) float64 {
	return float64(p.over(math.Max, func(i int) float64 { return value(&p.Runs[i]) }).Mean)
}

// figuresOf lists the figures of a policy in both scenarios. What is unknown or 0 in both, such as
// deadlines where there are none, is left out.
func figuresOf(given *Scenario, p *Policy, changed *Scenario, q *Policy) []Differences {
	var all []Differences
	add := func(name string, digits int, always bool, was, is float64) {
		if always || was != 0 && !math.IsNaN(was) || is != 0 && !math.IsNaN(is) {
			all = append(all, Differences{name, Number(was), Number(is), digits})
		}
	}
	of := func(name string, digits int, value func(r *simulator.Result) float64) {
		add(name, digits, false, mean(p, value), mean(q, value))
	}
	of("within objectives without batch work, %", 2, quietShare)
	of("within objectives, %", 2, interactiveShare)
	add("loss, points", 2, true, float64(p.Loss.Mean), float64(q.Loss.Mean))
	add("loss in the worst 5 minutes, points", 2, true, float64(p.WorstLoss.Mean),
		float64(q.WorstLoss.Mean))
	of("TTFT p99, ms", 0, func(r *simulator.Result) float64 { return r.Interactive.TTFT.P99 })
	of("TPOT p99, ms", 1, func(r *simulator.Result) float64 { return r.Interactive.TPOT.P99 })
	add("useful batch tokens, M an hour", 2, true, float64(p.Useful.Mean)/1e6/given.Hours,
		float64(q.Useful.Mean)/1e6/changed.Hours)
	of("deadlines", 1, func(r *simulator.Result) float64 { return float64(r.Batch.Deadlines) })
	of("deadlines met", 1, func(r *simulator.Result) float64 { return float64(r.Batch.Met) })
	add("replica hours", 1, true, float64(p.GPUHours.Mean), float64(q.GPUHours.Mean))
	of("cost", 2, func(r *simulator.Result) float64 {
		sum := 0.0
		for _, pool := range r.Pools {
			sum += pool.Cost
		}
		return sum
	})
	return all
}

// row is the figure as cells of a table.
func (d Differences) row() []string {
	difference := fixed(float64(d.Changed-d.Given), d.digits)
	if d.Changed > d.Given && difference != fixed(0, d.digits) {
		difference = "+" + difference
	}
	if difference == fixed(0, d.digits) {
		difference = "="
	}
	return []string{d.Name, fixed(float64(d.Given), d.digits),
		fixed(float64(d.Changed), d.digits), difference}
}

// Table is the figures of a policy for a page.
func (d PolicyDifference) Table(change string) Table {
	t := Table{Caption: fmt.Sprintf("%s with %s", d.Name, change),
		Head: []string{d.Name, "as given", "changed", "difference"}}
	for _, f := range d.Figures {
		t.Rows = append(t.Rows, f.row())
	}
	return t
}

// Text writes the sentences, and a table for each policy.
func (d *Difference) Text(out io.Writer) error {
	for _, sentence := range d.Sentences {
		fmt.Fprintln(out, sentence)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, p := range d.Policies {
		t := p.Table(d.Change)
		fmt.Fprintln(w, "\n"+strings.ToUpper(strings.Join(append([]string{"figure"},
			t.Head[1:]...), "\t"))+"\t"+p.Name)
		for _, row := range t.Rows {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range d.Notes {
		if _, err := fmt.Fprintf(out, "\nnote: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}
