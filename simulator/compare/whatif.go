package compare

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tidefill/tidefill/simulator/report"
)

// WhatIf compares scenarios as given with the same scenarios changed, with the same policies and
// seeds.
type WhatIf struct {
	// Comparison is of the scenarios as given. Those that miss their objectives without batch work
	// are compared, too.
	*Comparison
	Changes []Change
	Notes   []string // what to know of the scenarios
}

// WhatIfReport is the result of a WhatIf.
type WhatIfReport struct {
	Applied     []Applied           `json:"what_if"`
	Differences []report.Difference `json:"differences"`
	// Report is of the scenarios as given, each followed by the changed one.
	Report report.Report `json:"report"`
}

// Run simulates the scenarios as given and changed.
func (w *WhatIf) Run(ctx context.Context) (WhatIfReport, error) {
	both := *w.Comparison
	both.Scenarios, both.Unfit = nil, true
	var words []string
	var result WhatIfReport
	for _, s := range w.Scenarios {
		changed, err := s.Changed(w.Changes)
		if err != nil {
			return WhatIfReport{}, err
		}
		result.Applied = changed.Applied
		words = append(words, inWords(changed.Applied))
		changed.Scenario.Scenario.Name += " with " + inWords(changed.Applied)
		changed.Name += "-what-if"
		both.Scenarios = append(both.Scenarios, s, changed.Scenario)
	}
	var err error
	if result.Report, err = both.Run(ctx); err != nil {
		return WhatIfReport{}, err
	}
	for i := range w.Scenarios {
		given, changed := &result.Report.Scenarios[2*i], &result.Report.Scenarios[2*i+1]
		d := report.Differ(words[i], given, changed)
		d.Notes = w.Notes
		for _, p := range d.Policies {
			changed.Additions.Tables = append(changed.Additions.Tables, p.Table(d.Change))
		}
		changed.Conclusion = append(d.Sentences, changed.Conclusion...)
		result.Differences = append(result.Differences, d)
	}
	return result, nil
}

func inWords(applied []Applied) string {
	var parts []string
	for _, a := range applied {
		parts = append(parts, a.String())
	}
	return strings.Join(parts, " and ")
}

// Text writes the differences: a sentence for each policy first, then the figures.
func (r *WhatIfReport) Text(out io.Writer) error {
	for i := range r.Differences {
		d := &r.Differences[i]
		if i > 0 {
			fmt.Fprintln(out)
		}
		if len(r.Differences) > 1 {
			fmt.Fprintf(out, "%s\n", d.Scenario)
		}
		if err := d.Text(out); err != nil {
			return err
		}
	}
	return nil
}

// HTML writes the report with both scenarios.
func (r *WhatIfReport) HTML(out io.Writer) error { return r.Report.HTML(out) }
