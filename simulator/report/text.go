package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tidefill/tidefill/internal/humanize"
)

// Text writes the report for a terminal: its conclusion in sentences, then tables.
func (r *Report) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range r.Scenarios {
		for _, sentence := range s.Conclusion {
			if len(r.Scenarios) > 1 {
				sentence = s.Name + ": " + sentence
			}
			fmt.Fprintln(w, sentence)
		}
	}
	for i := range r.Scenarios {
		fmt.Fprintln(w)
		r.Scenarios[i].text(w)
	}
	if len(r.Scenarios) > 1 {
		r.overallText(w)
	}
	return w.Flush()
}

func (s *Scenario) text(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, %s of %s, %s; %s\n", s.Name, hours(s.Hours),
		humanize.Count(s.Replicas, "replica"), s.Profile.Name, s.Profile.Error(),
		seedsText(s.Seeds))
	if s.About != "" {
		fmt.Fprintln(w, s.About)
	}
	for _, line := range s.Traffic.sentences() {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	asked := s.asked()
	s.figuresText(w, asked)
	s.goalsText(w, asked)
	s.baselinesText(w)
	for _, t := range s.Additions.Tables {
		t.text(w)
	}
	if len(asked) > 0 {
		flowsText(w, asked[0])
		jobsText(w, asked[0])
	}
	for _, line := range s.Warnings {
		fmt.Fprintln(w, "\n"+line)
	}
}

// asked returns the policies that were asked for by name.
func (s *Scenario) asked() []*Policy {
	var asked []*Policy
	for i := range s.Policies {
		if !s.Policies[i].Baseline {
			asked = append(asked, &s.Policies[i])
		}
	}
	return asked
}

func seedsText(seeds []Seed) string {
	if len(seeds) == 1 {
		return fmt.Sprintf("seed %d", seeds[0].Seed)
	}
	names := make([]string, 0, len(seeds))
	for _, s := range seeds {
		names = append(names, strconv.FormatUint(s.Seed, 10))
	}
	return "seeds " + strings.Join(names, ", ") + ": mean (worst)"
}

// figuresText has a column for the run without batch work and one for each policy.
func (s *Scenario) figuresText(w io.Writer, asked []*Policy) {
	head := "\tNO BATCH"
	for _, p := range asked {
		head += "\t" + p.Name
	}
	fmt.Fprintln(w, head)
	for _, row := range append(s.interactiveRows(asked), s.batchRows(asked)...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
}

func (s *Scenario) goalsText(w io.Writer, asked []*Policy) {
	if len(asked) == 0 || len(asked[0].Goals) == 0 {
		return
	}
	head := "\nGOALS\t"
	for _, p := range asked {
		head += "\t" + p.Name
	}
	fmt.Fprintln(w, head)
	for i, g := range asked[0].Goals {
		line := g.Name + "\t" + g.BoundText()
		for _, p := range asked {
			line += "\t" + p.Goals[i].Text()
		}
		fmt.Fprintln(w, line)
	}
	for _, note := range unjudged(asked) {
		fmt.Fprintln(w, note)
	}
}

// unjudged says why goals were not judged. It names policies where goals of others were.
func unjudged(asked []*Policy) (notes []string) {
	type reason struct{ note, policies string }
	var reasons []reason
	goals := map[reason][]string{}
	for i, g := range asked[0].Goals {
		policies := map[string][]string{} // by note
		for _, p := range asked {
			if g := p.Goals[i]; !g.Figure.Known() {
				policies[g.Note] = append(policies[g.Note], p.Name)
			}
		}
		for _, note := range slices.Sorted(maps.Keys(policies)) {
			why := reason{note: note}
			if len(policies[note]) < len(asked) {
				why.policies = " of " + strings.Join(policies[note], ", ")
			}
			if goals[why] == nil {
				reasons = append(reasons, why)
			}
			goals[why] = append(goals[why], g.Name)
		}
	}
	for _, why := range reasons {
		notes = append(notes, fmt.Sprintf("not judged%s: %s: %s", why.policies,
			strings.Join(goals[why], "; "), why.note))
	}
	return notes
}

// Text is the figure with its verdict, met or NOT met, or that there is none.
func (g Goal) Text() string {
	verdict := " NOT met"
	switch {
	case !g.Figure.Known():
		return "not judged"
	case g.Met:
		verdict = " met"
	}
	return fixed(float64(g.Figure), 3) + verdict
}

// BoundText is ≤ or ≥ and the bound.
func (g Goal) BoundText() string {
	sign := "≤ "
	if g.AtLeast {
		sign = "≥ "
	}
	return sign + strconv.FormatFloat(float64(g.Bound), 'g', 4, 64)
}

func (s *Scenario) baselinesText(w io.Writer) {
	if len(s.baselineFlows()) == 0 {
		return
	}
	fmt.Fprintln(w, "\nBASELINES\tHARVEST, M AN HOUR\tLOSS, POINTS\tSCORE\tDEADLINES\tGPU HOURS\t")
	for _, p := range s.Policies {
		if !p.Baseline {
			continue
		}
		fmt.Fprintln(w, strings.Join(s.baselineRow(p), "\t"))
	}
}

// maxJobs is the greatest number of jobs that are printed.
const maxJobs = 30

// jobsText lists the jobs of a policy's first seed.
func jobsText(w io.Writer, p *Policy) {
	if len(p.Runs) == 0 || len(p.Runs[0].Jobs) == 0 {
		return
	}
	fmt.Fprintf(
		w, "\nJOB (%s, seed %d)\tKIND\tLINES\tANSWERED\tREFUSED\tIN FLIGHT\tOUTCOME\tFINISHED\t"+
			"DEADLINE\n", p.Name, p.Runs[0].Seed)
	for i, j := range p.Runs[0].Jobs {
		if i == maxJobs {
			fmt.Fprintf(w, "and %d more, in result.json\n", len(p.Runs[0].Jobs)-i)
			break
		}
		fmt.Fprintln(w, strings.Join(jobRow(j), "\t"))
	}
}

func (r *Report) overallText(w io.Writer) {
	fmt.Fprintln(
		w, "\nOVER ALL SCENARIOS\tSCORE\tWORST LOSS, POINTS\tUNSAFE IN\tOF THE BEST CAPS\t"+
			"OF THE BEST SINGLE CAP\tDEADLINES MISSED\tGOALS MET\tSCENARIOS")
	for _, o := range r.Overall {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%d\n", o.Name, fixed(float64(o.Score),
			3), fixed(float64(o.WorstLoss), 2), o.Unsafe, fixed(float64(o.OfCaps), 2),
			fixed(float64(o.OfCap), 2), o.Missed, o.GoalsText(), o.Scenarios)
	}
}

// GoalsText is the number of the judged goals that were met, and of those that were not judged.
func (o Overall) GoalsText() string {
	text := fmt.Sprintf("%d of %d", o.GoalsMet, o.Goals)
	if o.Unjudged > 0 {
		text += fmt.Sprintf(", %d not judged", o.Unjudged)
	}
	return text
}
