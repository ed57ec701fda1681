package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// trial is one run of a search.
type trial struct {
	useful, work, loss float64
	exhausted          bool // all work is done
}

func (t trial) allowed() bool { return t.loss <= MaxLoss }

// Budget bounds a search and reports its progress.
type Budget struct {
	// Runs is the number of times that the scenario may be simulated.
	Runs int
	// Progress is called with the share that is done; an error that it returns ends the search.
	// nil: not called.
	Progress func(share float64) error
}

func (b Budget) spent(runs int) error {
	if b.Progress == nil {
		return nil
	}
	return b.Progress(min(1, float64(runs)/float64(max(1, b.Runs))))
}

// Engine is oracle E: the batch work of engines that schedule it themselves, iteration by
// iteration. They know the length of every answer, and stop lines without losing what they have
// computed. It searches for the pacing with the largest harvest at an allowed loss.
func Engine(s simulator.Setup, noBatch simulator.NoBatch, budget Budget) (Finding, error) {
	if scaledByPolicy(s) {
		return Finding{
			Bound: Bound{
				Name: "E", Note: "none: the number of replicas depends on the policy"}}, nil
	}
	runs := 0
	run := func(t Pacing) (trial, error) {
		runs++
		got, err := runFilled(s, noBatch, t)
		if err != nil {
			return got, err
		}
		return got, budget.spent(runs)
	}
	tpot := s.Scenario.Interactive.SLO.TPOT.Seconds() * 1000
	best, found, err := searchPacing(run, tpot, budget.Runs)
	if err != nil {
		return Finding{}, fmt.Errorf("oracle E of %s: %w", s.Scenario.Name, err)
	}
	return Finding{Pacing: &best, Bound: Bound{
		Name: "E", Useful: found.useful, Work: found.work, Loss: found.loss,
		Note: fmt.Sprintf(
			"margin %.3f, at least %.0f and at most %.0f ms for an iteration, best of %d runs",
			best.Margin, best.Min, best.Max, runs),
	}}, nil
}

// runFilled simulates the scenario with a filler in every engine.
func runFilled(s simulator.Setup, noBatch simulator.NoBatch, t Pacing) (trial, error) {
	lines, err := newBacklog(s)
	if err != nil {
		return trial{}, err
	}
	users, err := simulator.RunWithFiller(s, func(h simulator.Host) engine.Filler {
		model := h.Engine.Profile.CostModel
		filler := &lineFiller{
			pacing: t, model: model, slo: h.Objective, epoch: simulator.Epoch(), backlog: lines,
			pace: time.Duration(model.C0 * float64(time.Millisecond)),
		}
		if h.Engine.PrefixCaching {
			filler.cached = map[engine.Hash]bool{}
		}
		return filler
	}, func(float64) error { return nil })
	return trial{
		useful: lines.useful, work: lines.work / 1000,
		loss:      simulator.Loss(noBatch.Interactive.Attainment, users.Attainment),
		exhausted: lines.exhausted(),
	}, err
}

// scaledByPolicy reports whether a policy chooses the number of replicas.
func scaledByPolicy(s simulator.Setup) bool {
	return s.Scenario.Pool.Max > 0 || slices.ContainsFunc(s.Scenario.BatchPools,
		func(p scenario.BatchPool) bool { return p.Max > 0 })
}

// searchPacing searches for the margin at which the loss is just allowed, with several bounds on
// the time of an iteration, and for the fixed time at which it is. Apart from noise, loss increases
// with either, so bisection finds the place; a margin of 0 runs nothing.
func searchPacing(run func(Pacing) (trial, error), tpot float64, runs int) (Pacing, trial, error) {
	var best Pacing
	var found trial // none is allowed: no batch work at all
	bounded := func(most float64) func(float64) Pacing {
		return func(m float64) Pacing { return Pacing{m, 0, most * tpot} }
	}
	runsDone := 0
	for _, family := range []func(float64) Pacing{
		bounded(0.95), bounded(10), func(m float64) Pacing {
			return Pacing{0, m * tpot, m * tpot}
		}, bounded(1), bounded(0.9),
	} {
		const fine = 0.005
		for low, high := 0.0, 1.1; high-low > fine && runsDone < runs; runsDone++ {
			m := (low + high) / 2
			got, err := run(family(m))
			switch {
			case err != nil:
				return best, found, err
			case !got.allowed():
				high = m
				continue
			case got.useful > found.useful:
				best, found = family(m), got
			}
			if got.exhausted {
				return best, found, nil
			}
			low = m
		}
	}
	return best, found, nil
}
