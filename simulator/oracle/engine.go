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
	exhausted          bool // all there was to do is done
}

func (t trial) allowed() bool { return t.loss <= MaxLoss }

// Budget bounds a search and tells how it goes on.
type Budget struct {
	// Runs is how many times the scenario may be told.
	Runs int
	// Progress is told the share that is done; its error ends the search. nil: nobody is told.
	Progress func(share float64) error
}

func (b Budget) spent(runs int) error {
	if b.Progress == nil {
		return nil
	}
	return b.Progress(min(1, float64(runs)/float64(max(1, b.Runs))))
}

// Engine is oracle E: what batch work an engine could carry that schedules it itself, iteration by
// iteration, knows how long every answer will be and drops lines at no loss. It searches for the
// tempo that harvests most at an allowed loss.
func Engine(s simulator.Setup, quiet simulator.NoBatch, budget Budget) (Finding, error) {
	if scaledByPolicy(s) {
		return Finding{
			Bound: Bound{
				Name: "E", Note: "none: how many replicas there are follows what a policy asks for"}}, nil
	}
	runs := 0
	tell := func(t Pacing) (trial, error) {
		runs++
		got, err := runFilled(s, quiet, t)
		if err != nil {
			return got, err
		}
		return got, budget.spent(runs)
	}
	tpot := s.Scenario.Interactive.SLO.TPOT.Seconds() * 1000
	best, found, err := searchPacing(tell, tpot, budget.Runs)
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

// tellInside runs the scenario with a stoker in every engine.
func runFilled(s simulator.Setup, quiet simulator.NoBatch, t Pacing) (trial, error) {
	lines, err := newBacklog(s)
	if err != nil {
		return trial{}, err
	}
	users, err := simulator.RunWithFiller(s, func(h simulator.Host) engine.Filler {
		law := h.Engine.Profile.CostModel
		return &lineFiller{
			pacing: t, model: law, slo: h.Objective, epoch: simulator.Epoch(), backlog: lines,
			pace: time.Duration(law.C0 * float64(time.Millisecond)), cached: map[engine.Hash]bool{},
		}
	}, func(float64) error { return nil })
	return trial{
		useful: lines.useful, work: lines.work / 1000,
		loss: 100 * (quiet.Interactive.Attainment - users.Attainment), exhausted: lines.exhausted(),
	}, err
}

// follows says whether the number of replicas is a policy's to choose.
func scaledByPolicy(s simulator.Setup) bool {
	return s.Scenario.Pool.Max > 0 || slices.ContainsFunc(s.Scenario.BatchPools,
		func(p scenario.BatchPool) bool { return p.Max > 0 })
}

// searchTempo closes in on the margin at which the loss is just allowed, with several bounds on the
// time of an iteration, and on the fixed time at which it is. Loss grows with either but for noise,
// so halving finds the place; a margin of 0 runs nothing.
func searchPacing(tell func(Pacing) (trial, error), tpot float64, runs int) (Pacing, trial, error) {
	var best Pacing
	var found trial // none is allowed: no batch work at all
	bounded := func(most float64) func(float64) Pacing {
		return func(m float64) Pacing { return Pacing{m, 0, most * tpot} }
	}
	told := 0
	for _, family := range []func(float64) Pacing{
		bounded(0.95), bounded(10), func(m float64) Pacing {
			return Pacing{0, m * tpot, m * tpot}
		}, bounded(1), bounded(0.9),
	} {
		const fine = 0.005
		for low, high := 0.0, 1.1; high-low > fine && told < runs; told++ {
			m := (low + high) / 2
			got, err := tell(family(m))
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
