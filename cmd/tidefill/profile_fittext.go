package main

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator/fit"
)

// text writes the coefficients, their errors and the quality of the fit as tables.
func (f fittedProfile) text(out io.Writer) error {
	r := f.result
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s: %s with a known time, %s, %d to %d decoding requests\n", f.file.Name,
		humanize.Count(r.Error.Points, "iteration"), humanize.Count(f.observations.Runs, "run"),
		r.Requests[0],
		r.Requests[1])
	fmt.Fprintf(w, "%s left without weight; context: %s; scheduler ahead by %d\n",
		humanize.Count(r.Outliers, "outlier"), f.observations.Context, f.observations.Ahead)
	if r.Wide > 0 {
		fmt.Fprintf(w, "%s used for the prefill in them\n", humanize.Count(r.Wide, "wider gap"))
	}
	if f.observations.Dropped > 0 {
		fmt.Fprintf(w, "%s beyond what a fit needs left out\n",
			humanize.Count(f.observations.Dropped, "iteration"))
	}
	if err := f.coefficientsText(w); err != nil {
		return err
	}
	if err := f.rangesText(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nOn iterations not fitted:")
	for _, h := range f.held {
		if h.Fault != "" {
			fmt.Fprintf(w, "  %s: no figure: %s\n", h.Split, h.Fault)
			continue
		}
		fmt.Fprintf(w, "  %s: mean error %.1f %%, p90 %.1f %%, bias %+.1f %% (%s)\n",
			h.Split, 100*h.Error.Mean, 100*h.Error.P90, 100*h.Error.Bias,
			humanize.Count(h.Error.Points, "iteration"))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "\nwarning: %s\n", warning)
	}
	return w.Flush()
}

func (f fittedProfile) coefficientsText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\n\tvalue\terror\t5 %\t95 %\tfrom\tinflation\t")
	for _, c := range f.result.Coefficients {
		spread := "-\t-\t-"
		inflation := "-"
		if c.Origin == fit.FromData {
			spread = fmt.Sprintf("%.2g\t%.4g\t%.4g", c.Error, c.Low, c.High)
		}
		if c.Inflation > 0 {
			inflation = fmt.Sprintf("%.1f", c.Inflation)
		}
		fmt.Fprintf(t, "%s\t%.5g\t%s\t%s\t%s\t\n", c.Name, c.Value, spread, c.Origin, inflation)
	}
	fmt.Fprintf(t, "noise\t%.2f %%\t\t\t\t\t\t\n", 100*f.result.Noise)
	return t.Flush()
}

func (f fittedProfile) rangesText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ndecoding\tpoints\tmeasured\tlaw\terror\tp90\tbias\t")
	for _, g := range f.result.Ranges {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%s\n", g.Text(), g.Error.Points, g.Measured,
			g.Predicted,
			errorText(g.Error))
	}
	fmt.Fprintf(t, "all\t%d\t\t\t%s\n", f.result.Error.Points, errorText(f.result.Error))
	return t.Flush()
}

func errorText(e fit.Error) string {
	return fmt.Sprintf("%.1f %%\t%.1f %%\t%+.1f %%\t", 100*e.Mean, 100*e.P90, 100*e.Bias)
}
