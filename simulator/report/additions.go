package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Additions are what a caller knows of a scenario beyond its runs, such as bounds that no policy
// can exceed. The caller fills them in before Judge. The zero value is nothing.
type Additions struct {
	// Best is the harvest that scores are shares of, in useful tokens by seed, and BestName its
	// source. Empty: the best run.
	Best     []float64
	BestName string
	// Infeasible lists by seed the jobs whose deadlines no policy can meet. Nil: unknown.
	Infeasible [][]string
	// Figures are of goals that runs alone do not show, by the name of the policy.
	Figures map[string]GoalFigures
	// Limits are drawn into the chart of policies, in useful tokens by their names.
	Limits []Limit
	// Tables follow those of the report.
	Tables []Table
}

// GoalFigures are of the goals of one policy, by the goal's key in the scenario file.
type GoalFigures map[string]GoalFigure

// GoalFigure is a figure with a note on its source.
type GoalFigure struct {
	Figure float64 // NaN: unknown
	Note   string
}

// Limit is a harvest that the chart of policies shows as a line, in useful tokens.
type Limit struct {
	Name   string
	Useful float64
}

// Table is text in rows. The first cell of a row is its heading.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
}

// needsOracle is the note of a goal that runs alone do not show.
const needsOracle = "only oracles show it; use tidefill-lab simulate --oracles"

// figure returns the figure of a goal that runs alone do not show.
func (a *Additions) figure(policy, goal string) (figure float64, note string) {
	if f, known := a.Figures[policy][goal]; known {
		return f.Figure, f.Note
	}
	return math.NaN(), needsOracle
}

// infeasible reports whether no policy can meet the deadline of a job.
func (a *Additions) infeasible(seed int, job string) bool {
	return seed < len(a.Infeasible) && slices.Contains(a.Infeasible[seed], job)
}

// deadlines names the deadlines that Policy.Feasible counts.
func (a *Additions) deadlines() string {
	if a.Infeasible == nil {
		return "deadlines"
	}
	return "feasible deadlines"
}

// text writes the table for a terminal.
func (t *Table) text(w io.Writer) {
	if len(t.Rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", strings.ToUpper(strings.Join(t.Head, "\t")))
	for _, row := range t.Rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
}

// html returns the table as the page shows it.
func (t *Table) html() table {
	shown := table{Caption: t.Caption, Head: t.Head}
	for _, row := range t.Rows {
		shown.add(row...)
	}
	return shown
}
