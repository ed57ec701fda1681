package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle/gpuhours"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// feasibleShare is the share of the capacity with which a deadline must be met to count as
// feasible.
const feasibleShare = 0.97

// GPUHours is oracle LP: the fewest replica-hours that meet every feasible deadline within the run,
// if the replicas that the interactive scaler pays for without batch work are paid for in any case,
// and the engines do as much batch work as oracle F computes. It knows all of the future, and its
// replicas start and end at once. It determines which deadlines are feasible for any pool; it
// counts hours only where a policy decides about them.
func GPUHours(s simulator.Setup, noBatch simulator.NoBatch) (Bound, error) {
	b := Bound{Name: "LP", Margin: fluidMargin}
	p, names, err := newProblem(s, noBatch)
	if err != nil || len(p.Jobs) == 0 {
		return b, err
	}
	can, err := gpuhours.Feasible(p, feasibleShare)
	if err != nil {
		return b, fmt.Errorf("oracle LP of %s: %w", s.Scenario.Name, err)
	}
	i := -1
	p.Jobs = slices.DeleteFunc(p.Jobs, func(gpuhours.Job) bool { i++; return !can[i] })
	for i, name := range names {
		if !can[i] {
			b.Infeasible = append(b.Infeasible, name)
		}
	}
	b.Note = fmt.Sprintf("%d deadlines, %d feasible, in slots of %v", len(names), len(p.Jobs),
		simulator.PaidSlot)
	if s.Scenario.Pool.Max == 0 && !slices.ContainsFunc(s.Scenario.BatchPools,
		func(p scenario.BatchPool) bool { return p.Max > 0 }) {
		return b, nil
	}
	least, err := gpuhours.Solve(p)
	if err != nil && !errors.Is(err, gpuhours.ErrInfeasible) {
		return b, fmt.Errorf("oracle LP of %s: %w", s.Scenario.Name, err)
	}
	if err == nil {
		b.GPUHours, b.BatchGPUHours = least.Hours, least.Bought
	}
	return b, nil
}

// newProblem states a scenario for the LP. Work is in seconds of a replica of the first pool
// without interactive traffic.
func newProblem(
	s simulator.Setup, noBatch simulator.NoBatch,
) (p gpuhours.Problem, names []string, err error) {
	fault := func(err error) (gpuhours.Problem, []string, error) {
		return p, nil, fmt.Errorf("oracle LP of %s: %w", s.Scenario.Name, err)
	}
	mix, _, err := jobMix(s)
	if err != nil {
		return fault(err)
	}
	loads, err := interactive(s)
	if err != nil {
		return fault(err)
	}
	pool := s.Scenario.Pool
	shared := fluid{cfg: s.Engine(), mix: mix, tpot: s.Scenario.Interactive.SLO.TPOT.Seconds() *
		1000}
	alone := shared.lines(load{})
	if alone == 0 {
		return p, nil, nil
	}
	most := max(pool.Replicas, pool.Max)
	for i := range int((s.Scenario.Horizon + simulator.PaidSlot - 1) / simulator.PaidSlot) {
		begin := time.Duration(i) * simulator.PaidSlot
		span := min(simulator.PaidSlot, s.Scenario.Horizon-begin)
		traffic := mean(loads, begin, span)
		c := gpuhours.Cell{Seconds: span.Seconds(), Need: min(noBatch.Paid[i], float64(most)),
			Rates: []float64{0}}
		for n := 1; n <= most; n++ {
			c.Rates = append(c.Rates, float64(n)*shared.lines(traffic.dividedBy(float64(n)))/alone)
		}
		if pool.Max == 0 {
			c.Need = float64(most)
		}
		for _, b := range s.Scenario.BatchPools {
			beside := fluid{cfg: s.BatchEngine(b), mix: mix, tpot: math.Inf(1)}
			c = c.WithPool(max(b.Replicas, b.Max), beside.lines(load{})/alone)
		}
		p.Cells = append(p.Cells, c)
	}
	jobs, err := s.Jobs()
	if err != nil {
		return fault(err)
	}
	for {
		j, ok := jobs.Next()
		if !ok {
			return p, names, nil
		}
		due, dated := j.Deadline()
		if !dated || due > s.Scenario.Horizon {
			continue
		}
		work := float64(j.Lines) / (fluid{cfg: s.Engine(), mix: kindMix(s, j),
			tpot: shared.tpot}).lines(load{})
		p.Jobs = append(p.Jobs, gpuhours.Job{Release: j.At.Seconds(), Due: due.Seconds(),
			Work: work})
		names = append(names, j.Name)
	}
}

// mean returns the load a second over a period.
func mean(loads []load, begin, span time.Duration) load {
	var sum load
	from, to := int(begin/fluidWindow), min(int((begin+span)/fluidWindow), len(loads))
	for _, l := range loads[from:to] {
		sum.requests += l.requests
		sum.computed += l.computed
		sum.output += l.output
		sum.held += l.held
	}
	return sum.dividedBy(span.Seconds())
}

// kindMix returns the mean line of a job.
func kindMix(s simulator.Setup, j *workload.Job) meanLine {
	var m meanLine
	n := min(j.Lines, sampledLines)
	known := map[uint64]bool{}
	for i := range n {
		r := j.Line(i)
		in, out := float64(r.Input), float64(r.Output)
		m.input += in
		m.output += out
		m.context += portable.Rounded(out * (in + portable.Rounded(out/2)))
		m.computed += float64(uncached(r, s.Scenario.Pool.PrefixCaching, known))
	}
	m.context /= m.output
	m.input, m.output, m.computed = m.input/float64(n), m.output/float64(n), m.computed/float64(n)
	return m
}
