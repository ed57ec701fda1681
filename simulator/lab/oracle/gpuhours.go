package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/oracle/gpuhours"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// feasibleShare is the share of the pool's capacity that must suffice for a deadline to count as
// feasible.
const feasibleShare = 0.97

// GPUHours is oracle LP, a linear program. It computes the fewest replica-hours that meet every
// feasible deadline within the run.
//
// It knows the future, and its replicas start and end at once. The replicas that the interactive
// scaler pays for without batch work are paid for in any case. Engines do as much batch work as
// oracle F computes. Which deadlines are feasible is determined for any pool; hours are computed
// only if the number of replicas of a pool is not fixed.
func GPUHours(s simulator.Setup, noBatch simulator.NoBatch) (Bound, error) {
	b := Bound{Name: "LP", Margin: fluidMargin}
	p, names, err := newProblem(s, noBatch)
	if err != nil {
		return b, fmt.Errorf("oracle LP of %s: %w", s.Scenario.Name, err)
	}
	if len(p.Jobs) == 0 {
		return b, nil
	}
	feasible, err := gpuhours.Feasible(p, feasibleShare)
	if err != nil {
		return b, fmt.Errorf("oracle LP of %s: %w", s.Scenario.Name, err)
	}
	jobs := p.Jobs
	p.Jobs = nil
	for i, job := range jobs {
		if feasible[i] {
			p.Jobs = append(p.Jobs, job)
		} else {
			b.Infeasible = append(b.Infeasible, names[i])
		}
	}
	b.Note = fmt.Sprintf("%d deadlines, %d feasible, in slots of %v", len(names), len(p.Jobs),
		simulator.PaidSlot)
	if !isScaled(s.Scenario) {
		return b, nil
	}
	solution, err := gpuhours.Solve(p)
	if err != nil && !errors.Is(err, gpuhours.ErrInfeasible) {
		return b, fmt.Errorf("oracle LP of %s: %w", s.Scenario.Name, err)
	}
	if err == nil {
		b.GPUHours, b.BatchGPUHours = solution.Hours, solution.Bought
	}
	return b, nil
}

// isScaled reports whether the number of replicas of any pool may change.
func isScaled(s scenario.Scenario) bool {
	return s.Pool.Max > 0 || slices.ContainsFunc(s.BatchPools,
		func(p scenario.BatchPool) bool { return p.Max > 0 })
}

// newProblem returns the linear program of a scenario, and the name of each job in it. Work is in
// seconds of a replica of the first pool without interactive traffic. The problem is empty if such
// a replica can do no batch work.
func newProblem(
	s simulator.Setup, noBatch simulator.NoBatch,
) (p gpuhours.Problem, names []string, err error) {
	mix, _, err := jobMix(s)
	if err != nil {
		return p, nil, err
	}
	loads, err := interactive(s)
	if err != nil {
		return p, nil, err
	}
	shared := fluid{cfg: s.Engine(), mix: mix,
		tpot: s.Scenario.Interactive.SLO.TPOT.Seconds() * 1000}
	unloaded := shared.lines(load{})
	if unloaded == 0 {
		return p, nil, nil
	}
	p.Periods = newPeriods(s, noBatch, loads, shared, unloaded)
	p.Jobs, names, err = newJobs(s, shared.tpot)
	return p, names, err
}

// newPeriods returns a period for each slot of noBatch.Paid. shared computes the lines per second
// of a replica of the first pool; unloaded is that number without interactive traffic.
func newPeriods(
	s simulator.Setup, noBatch simulator.NoBatch, loads []load, shared fluid, unloaded float64,
) (periods []gpuhours.Period) {
	pool := s.Scenario.Pool
	most := max(pool.Replicas, pool.Max)
	for i := range int((s.Scenario.Horizon + simulator.PaidSlot - 1) / simulator.PaidSlot) {
		begin := time.Duration(i) * simulator.PaidSlot
		span := min(simulator.PaidSlot, s.Scenario.Horizon-begin)
		traffic := meanLoad(loads, begin, span)
		p := gpuhours.Period{Seconds: span.Seconds(), Need: min(noBatch.Paid[i], float64(most)),
			Rates: []float64{0}}
		for n := 1; n <= most; n++ {
			p.Rates = append(p.Rates,
				float64(n)*shared.lines(traffic.dividedBy(float64(n)))/unloaded)
		}
		if pool.Max == 0 {
			p.Need = float64(most)
		}
		for _, b := range s.Scenario.BatchPools {
			engine := fluid{cfg: s.BatchEngine(b), mix: shared.mix, tpot: math.Inf(1)}
			p = p.WithPool(max(b.Replicas, b.Max), engine.lines(load{})/unloaded)
		}
		periods = append(periods, p)
	}
	return periods
}

// newJobs returns the jobs with a deadline within the run, and their names. tpot is the objective
// in milliseconds.
func newJobs(s simulator.Setup, tpot float64) (jobs []gpuhours.Job, names []string, err error) {
	arrivals, err := s.Jobs()
	if err != nil {
		return nil, nil, err
	}
	for {
		j, ok := arrivals.Next()
		if !ok {
			return jobs, names, nil
		}
		due, hasDeadline := j.Deadline()
		if !hasDeadline || due > s.Scenario.Horizon {
			continue
		}
		unloaded := fluid{cfg: s.Engine(), mix: jobMeanLine(s, j), tpot: tpot}
		jobs = append(jobs, gpuhours.Job{Release: j.At.Seconds(), Due: due.Seconds(),
			Work: float64(j.Lines) / unloaded.lines(load{})})
		names = append(names, j.Name)
	}
}

// meanLoad returns the mean load per second from begin on, over span.
func meanLoad(loads []load, begin, span time.Duration) load {
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

// jobMeanLine returns the mean line of a job.
func jobMeanLine(s simulator.Setup, j *workload.Job) meanLine {
	var m meanLine
	n := min(j.Lines, sampledLines)
	known := map[uint64]bool{}
	for i := range n {
		r := j.Line(i)
		in, out := float64(r.Input), float64(r.Output)
		m.input += in
		m.output += out
		m.context += out * (in + out/2)
		m.computed += float64(uncached(r, s.Scenario.Pool.PrefixCaching, known))
	}
	m.context /= m.output
	m.input, m.output, m.computed = m.input/float64(n), m.output/float64(n), m.computed/float64(n)
	return m
}
