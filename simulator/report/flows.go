package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidefill/tidefill/simulator"
)

// flowsHead heads the columns of flowRows.
var flowsHead = []string{"USE CASE", "CLASS", "REQUESTS", "REFUSED", "OBJECTIVE MS", "WITHIN %",
	"ALONE %", "SLO %", "ALONE %", "MS A TOKEN P95", "WAIT P50 MS", "WAIT P99 MS", "WORK S"}

// flowRows describes the classes of traffic of a run whose requests passed through Tidefill.
func flowRows(r simulator.Result) (rows [][]string) {
	if r.Interactive.Flow != nil {
		only := simulator.Class{Interactive: r.Interactive}
		return [][]string{flowRow(only, nil)}
	}
	for i, c := range r.Interactive.Classes {
		if c.Flow == nil || c.Requests == 0 {
			continue
		}
		var alone *simulator.Interactive
		if r.Alone != nil && r.Alone.Classes[i].Requests > 0 {
			alone = &r.Alone.Classes[i].Interactive
		}
		rows = append(rows, flowRow(c, alone))
	}
	return rows
}

func flowRow(c simulator.Class, alone *simulator.Interactive) []string {
	const none = "–"
	f := c.Flow
	objective, within, withinAlone, sloAlone := none, none, none, none
	if f.Objective > 0 {
		objective, within = fixed(f.Objective, 0), fixed(100*f.Attainment, 2)
		if alone != nil {
			withinAlone = fixed(100*alone.Flow.Attainment, 2)
		}
	}
	if alone != nil {
		sloAlone = fixed(100*alone.Attainment, 2)
	}
	class := f.Class
	if f.Weight > 0 {
		class += " x" + strconv.FormatFloat(f.Weight, 'g', -1, 64)
	}
	return []string{cmp.Or(c.Name, "without a name"), class, strconv.Itoa(c.Requests),
		strconv.Itoa(f.Refused), objective, within, withinAlone, fixed(100*c.Attainment, 2),
		sloAlone, fixed(f.PerTokenP95, 1), fixed(f.Waited.P50, 0), fixed(f.Waited.P99, 0),
		fixed(f.Work, 0)}
}

// flowsText lists the classes of traffic of a policy's first seed, if their requests passed through
// Tidefill.
func flowsText(w io.Writer, p *Policy) {
	if len(p.Runs) == 0 {
		return
	}
	rows := flowRows(p.Runs[0])
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\nREQUESTS THROUGH TIDEFILL (%s, seed %d)\n", p.Name, p.Runs[0].Seed)
	fmt.Fprintln(w, strings.Join(flowsHead, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
}

// flowsTable is flowsText for the page.
func flowsTable(p *Policy) table {
	var t table
	if len(p.Runs) == 0 {
		return t
	}
	t.Caption = fmt.Sprintf("Requests through Tidefill with %s, seed %d", p.Name, p.Runs[0].Seed)
	t.Head = []string{"use case", "class", "requests", "refused", "objective, ms",
		"within it, %", "alone, %", "SLO, %", "alone, %", "ms a token, p95", "wait p50, ms",
		"wait p99, ms", "work, s"}
	for _, row := range flowRows(p.Runs[0]) {
		t.add(row...)
	}
	return t
}
