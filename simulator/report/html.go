package report

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var page = template.Must(template.New("page").Parse(pageText))

func escape(text string) string { return html.EscapeString(text) }

// HTML writes the report as one page without scripts, fonts or pictures from elsewhere.
func (r *Report) HTML(out io.Writer) error {
	style := template.CSS(pageStyle) //nolint:gosec // it is a constant
	view := pageView{Style: style, Overall: r.Overall,
		Several: len(r.Scenarios) > 1}
	for i := range r.Scenarios {
		view.Scenarios = append(view.Scenarios, r.Scenarios[i].view("s"+strconv.Itoa(i+1)))
	}
	return page.Execute(out, view)
}

// pageView is the data of the template.
type pageView struct {
	Style     template.CSS
	Several   bool
	Overall   []Overall
	Scenarios []scenarioView
}

// Number formats a number with three digits, for the template.
func (pageView) Number(n Number) string { return fixed(float64(n), 3) }

type scenarioView struct {
	*Scenario
	ID          string
	Summary     string // in a sentence
	Traffic     []string
	Figures     table
	Unjudged    []string // goals
	Baselines   table
	Flows, Jobs table
	Tables      []table
	PolicyChart *figure
	Charts      []figure // of all policies
	Runs        []runView
}

// runView holds a run's charts.
type runView struct {
	ID, Name string
	Seed     uint64
	Charts   []figure
}

// table is text in rows. The first cell of a row is its heading.
type table struct {
	Caption string
	Head    []string
	Rows    []tableRow
}

type tableRow struct {
	Cells []tableCell
}

type tableCell struct {
	Text, Class string
}

// heading adds a row that heads those below it.
func (t *table) heading(text string) {
	row := tableRow{Cells: []tableCell{{Text: text, Class: "heading"}}}
	for range t.Head[1:] {
		row.Cells = append(row.Cells, tableCell{})
	}
	t.Rows = append(t.Rows, row)
}

func (t *table) add(cells ...string) {
	var row tableRow
	for _, text := range cells {
		row.Cells = append(row.Cells, tableCell{Text: text})
	}
	t.Rows = append(t.Rows, row)
}

func (s *Scenario) view(id string) scenarioView {
	asked := s.asked()
	v := scenarioView{
		Scenario: s, ID: id, Figures: s.sideBySide(asked), Unjudged: unjudged(asked),
		Charts: s.compared(id, asked), Baselines: s.baselinesTable(),
		Traffic: s.Traffic.sentences(),
		Summary: fmt.Sprintf("%s, %s of %s, cost model %s; %s.", hours(s.Hours),
			humanize.Count(s.Replicas, "replica"),
			s.Profile.Name, s.Profile.Error(), seedsText(s.Seeds)),
	}
	for _, t := range s.Additions.Tables {
		v.Tables = append(v.Tables, t.html())
	}
	if f, ok := s.policyChart(id); ok {
		v.PolicyChart = &f
	}
	for k, p := range asked {
		if len(p.Runs) == 0 {
			continue
		}
		run := &p.Runs[0]
		rv := runView{ID: fmt.Sprintf("%s-p%d", id, k+1), Name: p.Name, Seed: run.Seed}
		if run.Timeline != nil {
			rv.Charts = append(rv.Charts, allowance(rv.ID, run.Timeline))
		}
		if f, ok := deadlines(rv.ID, run); ok {
			rv.Charts = append(rv.Charts, f)
		}
		v.Runs = append(v.Runs, rv)
		if k == 0 {
			v.Flows, v.Jobs = flowsTable(p), jobsTable(p)
		}
	}
	return v
}

// sideBySide has a column for each policy: its goals, and the rows of the terminal's table.
func (s *Scenario) sideBySide(asked []*Policy) table {
	t := table{Caption: "Policies side by side, " + seedsText(s.Seeds),
		Head: []string{"", "goal", "no batch"}}
	for _, p := range asked {
		t.Head = append(t.Head, p.Name)
	}
	if len(asked) > 0 && len(asked[0].Goals) > 0 {
		t.heading("Goals")
		for i := range asked[0].Goals {
			t.Rows = append(t.Rows, goalRow(asked, i))
		}
	}
	for _, group := range []struct {
		name string
		rows [][]string
	}{{"Interactive users", s.interactiveRows(asked)}, {"Batch work", s.batchRows(asked)}} {
		t.heading(group.name)
		for _, row := range group.rows {
			t.add(slices.Insert(row, 1, "")...)
			if first := &t.Rows[len(t.Rows)-1].Cells[0]; strings.HasPrefix(first.Text, "  ") {
				first.Class = "detail"
			}
		}
	}
	return t
}

// goalRow has a goal of all policies.
func goalRow(asked []*Policy, goal int) tableRow {
	g := asked[0].Goals[goal]
	row := tableRow{Cells: []tableCell{{Text: g.Name}, {Text: g.BoundText()}, {}}}
	for _, p := range asked {
		g := p.Goals[goal]
		cell := tableCell{Text: g.Text(), Class: "missed"}
		switch {
		case !g.Figure.Known():
			cell.Class = "unjudged"
		case g.Met:
			cell.Class = "met"
		}
		if g.Note != "" && g.Figure.Known() {
			cell.Text += " (" + g.Note + ")"
		}
		row.Cells = append(row.Cells, cell)
	}
	return row
}

func (s *Scenario) baselinesTable() table {
	t := table{Caption: "Baselines", Head: []string{"policy", "harvest, M an hour", "loss, points",
		"score", "deadlines", "GPU hours", ""}}
	for _, p := range s.Policies {
		if p.Baseline {
			t.add(s.baselineRow(p)...)
		}
	}
	return t
}

func jobsTable(p *Policy) table {
	if len(p.Runs) == 0 || len(p.Runs[0].Jobs) == 0 {
		return table{}
	}
	t := table{
		Caption: fmt.Sprintf("Jobs with %s, seed %d", p.Name, p.Runs[0].Seed),
		Head: []string{"job", "kind", "lines", "answered", "refused", "in flight", "outcome",
			"finished", "deadline"},
	}
	for _, j := range p.Runs[0].Jobs {
		t.add(jobRow(j)...)
	}
	return t
}

// jobRow describes a job in the cells of a table.
func jobRow(j simulator.Job) []string {
	lines := "unlimited"
	if j.Lines > 0 {
		lines = humanize.Thousands(int64(j.Lines))
	}
	outcome := string(j.Outcome)
	if j.Flagged > 0 {
		outcome += ", flagged at " + moment(j.Flagged)
	}
	return []string{
		j.Name, j.Kind, lines, humanize.Thousands(int64(j.Done)),
		humanize.Thousands(int64(j.Failed)), strconv.Itoa(j.InFlight), outcome,
		moment(j.Finished), moment(j.Deadline),
	}
}
