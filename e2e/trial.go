package e2e

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Trial counts the faults and their effects in one scenario of the fault suite. It is added to the
// table "reliability" when its test ends.
type Trial struct {
	Scenario string
	Tried    int   // faults: kills, freezes, answers, connections
	Survived int   // faults without a failure of the test
	Lost     int   // acknowledged lines and objects that no longer exist
	Doubled  int   // lines and files that exist twice
	Resent   int   // lines that were sent again because of a fault
	Peak     int64 // bytes

	daemons []*Daemon
}

// Trials holds the trials that have ended, one for each scenario.
type Trials struct {
	mu     sync.Mutex
	trials []*Trial
}

// Begin starts the trial of a scenario. The test must create its daemons afterwards. maxPeak limits
// the memory of each daemon, in bytes; 0: the peak is reported and not limited.
func (ts *Trials) Begin(t testing.TB, scenario string, maxPeak int64) *Trial {
	tr := &Trial{Scenario: scenario}
	t.Cleanup(func() {
		for _, d := range tr.daemons {
			tr.Peak = max(tr.Peak, d.Peak())
		}
		if maxPeak > 0 && tr.Peak > maxPeak {
			t.Errorf("%s: the daemon used %.1f MiB at its peak, want at most %d", scenario, float64(
				tr.Peak)/MiB, maxPeak/MiB)
		}
		if !t.Failed() {
			tr.Survived = tr.Tried
		}
		ts.add(tr)
	})
	return tr
}

// Watch includes the daemon's memory in the trial.
func (tr *Trial) Watch(d *Daemon) *Daemon {
	tr.daemons = append(tr.daemons, d)
	return d
}

func (ts *Trials) add(tr *Trial) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, known := range ts.trials {
		if known.Scenario == tr.Scenario {
			known.Tried += tr.Tried
			known.Survived += tr.Survived
			known.Lost += tr.Lost
			known.Doubled += tr.Doubled
			known.Resent += tr.Resent
			known.Peak = max(known.Peak, tr.Peak)
			return
		}
	}
	ts.trials = append(ts.trials, tr)
}

// Write prints the table in Markdown, aligned for reading as text.
func (ts *Trials) Write(w io.Writer) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	rows := [][]string{{"Scenario", "Tried", "Survived", "Lost", "Doubled", "Re-sent", "Peak MiB"}}
	for _, tr := range ts.trials {
		rows = append(rows, []string{tr.Scenario, fmt.Sprint(tr.Tried), fmt.Sprint(tr.Survived),
			fmt.Sprint(tr.Lost),
			fmt.Sprint(tr.Doubled), fmt.Sprint(tr.Resent),
			fmt.Sprintf("%.1f", float64(tr.Peak)/MiB)})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	for _, row := range slices.Insert(rows, 1, rule) {
		for i, cell := range row {
			row[i] = fmt.Sprintf("%-*s", widths[i], cell)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}
