package report

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"io"
	"strconv"

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
	Goals       table
	Baselines   table
	Flows, Jobs table
	Tables      []table
	PolicyChart *figure
	Runs        []runView
}

// runView holds a run's charts.
type runView struct {
	ID, Name  string
	Seed      uint64
	Charts    []figure
	Deadlines *figure
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
		Scenario: s, ID: id, Figures: s.summaryTable(asked), Goals: s.goalsTable(asked),
		Baselines: s.baselinesTable(), Traffic: s.Traffic.sentences(),
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
			rv.Charts = timeline(rv.ID, s.SLO, run)
		}
		if f, ok := deadlines(rv.ID, run); ok {
			rv.Deadlines = &f
		}
		v.Runs = append(v.Runs, rv)
		if k == 0 {
			v.Flows, v.Jobs = flowsTable(p), jobsTable(p)
		}
	}
	return v
}

// summaryTable has the same rows as the terminal's table.
func (s *Scenario) summaryTable(asked []*Policy) table {
	t := table{Caption: "Figures, " + seedsText(s.Seeds), Head: []string{"", "no batch"}}
	for _, p := range asked {
		t.Head = append(t.Head, p.Name)
	}
	for _, row := range s.rows(asked) {
		t.add(row...)
	}
	return t
}

func (s *Scenario) goalsTable(asked []*Policy) table {
	t := table{Caption: "Goals", Head: []string{"goal", "asked"}}
	if len(asked) == 0 {
		return t
	}
	for _, p := range asked {
		t.Head = append(t.Head, p.Name)
	}
	for i, g := range asked[0].Goals {
		row := tableRow{Cells: []tableCell{{Text: g.Name}, {Text: g.BoundText()}}}
		for _, p := range asked {
			g := p.Goals[i]
			cell := tableCell{Text: g.Text(), Class: "missed"}
			switch {
			case !g.Figure.Known():
				cell.Class = "unjudged"
			case g.Met:
				cell.Class = "met"
			}
			if g.Note != "" {
				cell.Text += " (" + g.Note + ")"
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
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
		humanize.Thousands(int64(j.Failed)), strconv.Itoa(j.InFlight), outcome, moment(j.Finished), moment(j.Deadline),
	}
}
