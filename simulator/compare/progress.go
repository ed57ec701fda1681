package compare

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

// Progress adds up the simulated hours of all runs and reports them every few seconds. Runs may use
// it concurrently.
type Progress struct {
	out   io.Writer
	total hours        // of all runs that are known
	done  hours        // simulated
	saved hours        // hours of runs that are not needed
	name  atomic.Value // string: the run that began last
	// Stop ends the reports. It may be called twice.
	Stop func()
}

// hours is a sum of simulated time, in nanohours.
type hours struct{ atomic.Int64 }

func (h *hours) add(hours float64) { h.Add(int64(hours * 1e9)) }

func (h *hours) sum() float64 { return float64(h.Load()) / 1e9 }

// NewProgress begins to report runs that take total in simulated time; a nil out reports nothing.
// The caller calls Stop.
func NewProgress(out io.Writer, total time.Duration) *Progress {
	if out == nil {
		out = io.Discard
	}
	p := &Progress{out: out}
	p.total.add(total.Hours())
	p.name.Store("")
	p.Stop = ReportProgress(out, p.text)
	return p
}

// share returns the share of the work that is done.
func (p *Progress) share() float64 { return (p.done.sum() + p.saved.sum()) / p.total.sum() }

func (p *Progress) text(elapsed time.Duration) string {
	share := min(max(p.share(), 0), 1)
	left := ""
	if share > 0.02 && share < 1 {
		left = ", about " + humanize.Duration(time.Duration(float64(elapsed)*(1/share-1))) +
			" to go"
	}
	return fmt.Sprintf("%.0f%%%s (%s)", 100*share, left, p.name.Load())
}

// Summarize ends the reports with the speed of the simulation.
func (p *Progress) Summarize(elapsed time.Duration) error {
	p.Stop()
	_, err := fmt.Fprintf(p.out, "%.3g simulated hours in %s, %.2g hours a second\n", p.done.sum(),
		elapsed.Round(10*time.Millisecond), p.done.sum()/elapsed.Seconds())
	return err
}

// Run follows one run. The returned function ends the run when ctx ends.
func (p *Progress) Run(ctx context.Context, s *Scenario, name string) simulator.Progress {
	reported := 0.0
	horizon := s.Scenario.Horizon.Hours()
	p.name.Store(s.Scenario.Name + ", " + name)
	return func(share float64) error {
		p.done.add((share - reported) * horizon)
		reported = share
		return ctx.Err()
	}
}

// expect adds runs that were not known at first.
func (p *Progress) expect(s *Scenario, runs int) {
	p.total.add(float64(runs) * s.Scenario.Horizon.Hours())
}

// Skip counts runs that are not needed.
func (p *Progress) Skip(s *Scenario, runs int) {
	p.saved.add(float64(runs) * s.Scenario.Horizon.Hours())
}
