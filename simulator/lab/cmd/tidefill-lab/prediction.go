package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator"
)

// prediction is what simulations of a run say. They differ only in when metrics are read, which
// nobody knows of the run: a policy decides by what it reads, so a moment changes what follows.
type prediction []*simulator.Result

// simulations is their number. Another one is outside their range once in five times.
const simulations = 9

// predict simulates a run.
func predict(ctx context.Context, setup simulator.Setup) (all prediction, err error) {
	setup.Outputs.Timeline = true
	for range simulations {
		result, err := simulator.Run(setup, func(float64) error { return ctx.Err() })
		if err != nil {
			return nil, err
		}
		all = append(all, &result)
		setup.Scenario.Metrics.Delay += time.Millisecond
	}
	return all, nil
}

// dropTimelines leaves out what is only read to predict recoveries, and is long.
func (p prediction) dropTimelines() {
	for _, r := range p {
		r.Timeline = nil
	}
}

// of returns a figure of each simulation.
func (p prediction) of(figure func(*simulator.Result) float64) (all []float64) {
	for _, r := range p {
		all = append(all, figure(r))
	}
	return all
}

func (p prediction) median(figure func(*simulator.Result) float64) float64 {
	all := p.of(figure)
	slices.Sort(all)
	return all[len(all)/2] // their number is odd
}

func (p prediction) span(figure func(*simulator.Result) float64) (least, most float64) {
	all := p.of(figure)
	return slices.Min(all), slices.Max(all)
}

// write writes the medians as a row of the table of live runs, and the range of loss and tokens.
func (p prediction) write(w io.Writer) {
	loss := func(r *simulator.Result) float64 { return r.Loss }
	tokens := func(r *simulator.Result) float64 { return float64(r.Batch.Useful) / 1e6 }
	lines := func(r *simulator.Result) float64 { return float64(r.Batch.Lines) }
	of := func(figure func(*simulator.Interactive) float64) float64 {
		return p.median(func(r *simulator.Result) float64 { return figure(&r.Interactive) })
	}
	fmt.Fprintf(w, "  predicted\t%d\t%.2f\t%.2f\t%.0f, %.0f\t%.1f, %.1f\t%.3f\t%.0f\t\t\t\t\n",
		p[0].Interactive.Requests,
		of(func(i *simulator.Interactive) float64 { return 100 * i.Attainment }),
		p.median(loss),
		of(func(i *simulator.Interactive) float64 { return i.TTFT.P50 }),
		of(func(i *simulator.Interactive) float64 { return i.TTFT.P99 }),
		of(func(i *simulator.Interactive) float64 { return i.TPOT.P50 }),
		of(func(i *simulator.Interactive) float64 { return i.TPOT.P99 }),
		p.median(tokens), p.median(lines))
	least, most := p.span(loss)
	fewest, largest := p.span(tokens)
	fewestLines, maxLines := p.span(lines)
	fmt.Fprintf(w, "  from, to\t\t\t%.2f, %.2f\t\t\t%.3f, %.3f\t%.0f, %.0f\t\t\t\t\n", least,
		most, fewest, largest, fewestLines, maxLines)
}
