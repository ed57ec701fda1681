package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tidefill/tidefill/simulator"
)

// simulation is a result with where its engine's law comes from.
type simulation struct {
	Profile provenance `json:"profile"`
	simulator.Result
}

// provenance says how far a profile can be believed.
type provenance struct {
	Name       string   `json:"name"`
	Calibrated bool     `json:"calibrated"`               // fitted to iterations of a real server
	MeanError  *float64 `json:"mean_error_pct,omitempty"` // of an iteration; absent: not stated
}

func (s *story) provenance() provenance {
	p := provenance{Name: s.profile.Name, Calibrated: s.profile.Measured}
	if fit := s.profile.Fit; fit != nil {
		percent := 100 * fit.Error.Mean
		p.MeanError = &percent
	}
	return p
}

func (p provenance) String() string {
	switch {
	case !p.Calibrated:
		return p.Name + ", not calibrated"
	case p.MeanError == nil:
		return p.Name + ", measured"
	}
	return fmt.Sprintf("%s, measured, mean error of an iteration %.1f%%", p.Name, *p.MeanError)
}

// writeReport prints a result for people: nothing but results, so that a hash shows whether two runs agree.
func writeReport(out io.Writer, s story, r simulator.Result, further bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if further {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s: %.4g h, %s of %s; flow control %s, order %s, seed %d\n\n",
		r.Scenario, r.Hours, counted(r.Replicas, "replica"), s.provenance(), r.Flow, r.Order, r.Seed)

	quiet, busy := r.NoBatch, r.Interactive
	row := func(name, format string, without, with any) {
		fmt.Fprintf(w, "%s\t"+format+"\t"+format+"\n", name, without, with)
	}
	fmt.Fprintln(w, "INTERACTIVE\tNO BATCH\tWITH BATCH")
	row("requests judged", "%d", quiet.Requests, busy.Requests)
	row("attainment %", "%.2f", 100*quiet.Attainment, 100*busy.Attainment)
	row("worst 5 minutes %", "%.2f", 100*quiet.Worst5Minutes, 100*busy.Worst5Minutes)
	row("  from minute", "%.0f", quiet.Worst5MinutesAt/60, busy.Worst5MinutesAt/60)
	row("TTFT p50 ms", "%.0f", quiet.TTFT.P50, busy.TTFT.P50)
	row("TTFT p99 ms", "%.0f", quiet.TTFT.P99, busy.TTFT.P99)
	row("TPOT p50 ms", "%.1f", quiet.TPOT.P50, busy.TPOT.P50)
	row("TPOT p99 ms", "%.1f", quiet.TPOT.P99, busy.TPOT.P99)
	row("missed TTFT", "%d", quiet.MissedTTFT, busy.MissedTTFT)
	row("missed TPOT", "%d", quiet.MissedTPOT, busy.MissedTPOT)
	row("too long", "%d", quiet.Refused, busy.Refused)
	row("undecided at the end", "%d", quiet.Undecided, busy.Undecided)
	fmt.Fprintf(w, "loss, points\t\t%.2f\n\n", r.Loss)

	b := r.Batch
	fmt.Fprintln(w, "BATCH")
	fmt.Fprintf(w, "useful tokens\t%s\t%.2f M an hour\n", thousands(b.Useful), float64(b.Useful)/1e6/r.Hours)
	fmt.Fprintf(w, "  input, output\t%s\t%s\n", thousands(b.Input), thousands(b.Output))
	fmt.Fprintf(w, "wasted tokens, at most\t%s\t%s\n", thousands(b.Wasted), counted(b.Preemptions, "preemption"))
	fmt.Fprintf(w, "work, engine seconds\t%.0f\n", b.Work)
	fmt.Fprintf(w, "lines answered\t%s\n", thousands(int64(b.Lines)))
	fmt.Fprintf(w, "lines refused\t%s\n", thousands(int64(b.Failed)))
	fmt.Fprintf(w, "sheds\t%s\n", thousands(int64(b.Sheds)))
	if b.Deadlines > 0 {
		fmt.Fprintf(w, "deadlines met\t%d of %d\n", b.Met, b.Deadlines)
	}
	if len(r.Jobs) > 0 {
		fmt.Fprintln(w, "\nJOB\tKIND\tLINES\tANSWERED\tREFUSED\tUNDER WAY\tFATE\tFINISHED\tDEADLINE")
	}
	for _, j := range r.Jobs {
		lines, finished, deadline := "endless", "-", "-"
		if j.Lines > 0 {
			lines = thousands(int64(j.Lines))
		}
		if j.Finished > 0 {
			finished = fmt.Sprintf("%.1f min", j.Finished/60)
		}
		if j.Deadline > 0 {
			deadline = fmt.Sprintf("%.1f min", j.Deadline/60)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", j.Name, j.Kind, lines, thousands(int64(j.Done)), thousands(int64(j.Failed)), j.InFlight, j.Fate, finished, deadline)
	}
	return w.Flush()
}
