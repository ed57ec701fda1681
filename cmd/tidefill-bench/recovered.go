package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/cmd/tidefill-bench/live"
	"github.com/tidefill/tidefill/simulator"
)

// recovered is how a policy came through a fault, and what simulations say.
type recovered struct {
	live.Recovery
	// Predicted are the recovery times of the simulations. Nil: lines were not back in time.
	Predicted []*float64 `json:"predicted_recovery_s,omitempty"`
}

// recoveries returns a row for each fault of a run.
func recoveries(faults []live.Fault, run liveRun, alone live.Outcome) (all []recovered) {
	for _, r := range live.Recoveries(faults, run.Live.Trace, alone.Trace) {
		all = append(all, recovered{Recovery: r})
	}
	for _, simulated := range run.Predicted {
		trace := traceOf(simulated, run.Live.Trace.End)
		for i, r := range live.Recoveries(faults, trace, live.Trace{}) {
			all[i].Predicted = append(all[i].Predicted, r.Seconds)
		}
	}
	return all
}

// traceOf returns the lines in flight of a simulation. Its timeline does not count requests by
// their arrival, so there is no loss of a fault.
func traceOf(r *simulator.Result, end time.Duration) live.Trace {
	t := live.Trace{End: end}
	for i, lines := range r.Timeline.InFlight {
		at := time.Duration(r.Timeline.At[i] * float64(time.Second))
		t.Levels = append(t.Levels, live.Level{At: at, Lines: lines})
	}
	return t
}

// predicted returns the median of the simulations, and in how many lines were back in time.
func (r recovered) predicted() string {
	if len(r.Predicted) == 0 {
		return ""
	}
	times, back := []float64{}, 0
	for _, s := range r.Predicted {
		if s != nil {
			back++
		}
		times = append(times, *cmp.Or(s, new(math.Inf(1))))
	}
	slices.Sort(times)
	middle := times[len(times)/2]
	if math.IsInf(middle, 1) {
		return fmt.Sprintf("late in %d of %d", len(times)-back, len(times))
	}
	return fmt.Sprintf("%.0f s", middle)
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
