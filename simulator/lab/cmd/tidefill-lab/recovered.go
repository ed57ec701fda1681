package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/live"
)

// recovered is how a policy came through a fault, and what simulations say.
type recovered struct {
	live.Recovery
	// Predicted is what the simulations say.
	Predicted []simulatedRecovery `json:"predicted,omitempty"`
}

// simulatedRecovery is what a simulation says of a fault. Its timeline does not count requests by
// their arrival, so there is no loss.
type simulatedRecovery struct {
	Before  float64  `json:"in_flight_before"`
	Seconds *float64 `json:"recovery_s"` // nil: as in live.Recovery
}

// recoveries returns a row for each fault of a run.
func recoveries(faults []live.Fault, run liveRun, alone live.Outcome) (all []recovered) {
	for _, r := range live.Recoveries(faults, run.Live.Trace, alone.Trace) {
		all = append(all, recovered{Recovery: r})
	}
	for _, simulated := range run.Predicted {
		trace := traceOf(simulated, run.Live.Trace.End)
		for i, r := range live.Recoveries(faults, trace, live.Trace{}) {
			all[i].Predicted = append(all[i].Predicted, simulatedRecovery{r.Before, r.Seconds})
		}
	}
	return all
}

// traceOf returns the lines in flight of a simulation.
func traceOf(r *simulator.Result, end time.Duration) live.Trace {
	t := live.Trace{End: end}
	for i, lines := range r.Timeline.InFlight {
		at := time.Duration(r.Timeline.At[i] * float64(time.Second))
		t.Levels = append(t.Levels, live.Level{At: at, Lines: lines})
	}
	return t
}

// predicted returns the text of the simulation in the middle: where lines were not back in time
// counts as the longest, and a simulation without lines before does not count.
func (r recovered) predicted() string {
	var counted []live.Recovery
	for _, s := range r.Predicted {
		one := r.Recovery
		if one.Before, one.Seconds = s.Before, s.Seconds; one.HadLines() {
			counted = append(counted, one)
		}
	}
	switch {
	case len(r.Predicted) == 0:
		return ""
	case len(counted) == 0:
		return live.Recovery{}.Text()
	}
	seconds := func(r live.Recovery) float64 { return *cmp.Or(r.Seconds, new(math.Inf(1))) }
	slices.SortFunc(counted, func(a, b live.Recovery) int {
		return cmp.Compare(seconds(a), seconds(b))
	})
	return counted[len(counted)/2].Text()
}

// writeRecoveries prints a table for each policy, if there are faults.
func writeRecoveries(out io.Writer, results []liveRun) error {
	for _, r := range results {
		if len(r.Recoveries) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nRecovery of %s\n", r.Policy)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "fault\tfrom, to\trequests\tloss during\trequests\tloss after\t"+
			"lines before, fewest\trecovery\tpredicted")
		for _, f := range r.Recoveries {
			fmt.Fprintf(w, "%s\t%v, %v\t%s\t%s\t%.1f, %.0f\t%s\t%s\n", f.Fault,
				wholeSeconds(f.From), wholeSeconds(f.To), lossText(f.During), lossText(f.After),
				f.Before, f.Fewest, f.Text(), f.predicted())
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func wholeSeconds(s float64) time.Duration {
	return (time.Duration(s*1000) * time.Millisecond).Round(time.Second)
}

// lossText has two columns. No request has no loss.
func lossText(l live.Loss) string {
	if l.Requests == 0 {
		return "0\t"
	}
	return fmt.Sprintf("%d\t%.2f", l.Requests, l.Points)
}
