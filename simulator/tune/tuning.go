package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/search"
)

// Tuning searches values of configuration keys by simulation. The objective is that of
// runObjective.
type Tuning struct {
	Scenarios     []compare.Scenario
	Configuration compare.Configuration // the start of the search
	Parameters    []Parameter
	// Budget is how many times all scenarios may run, each time with one setting and one seed.
	Budget int
	// SearchSeeds are the seeds that the search uses.
	SearchSeeds []uint64
	// ConfirmSeeds are seeds that the search does not use. A result must be better on them too.
	ConfirmSeeds []uint64
	Log          io.Writer // takes progress; nil: none

	start    []float64 // the configuration's values of the parameters
	progress *compare.Progress
	quiet    map[runKey]simulator.NoBatch
	before   map[runKey]simulator.Result // with the configuration unchanged
	trials   []trial                     // the configuration's values first
}

// runKey identifies a run of one policy.
type runKey struct {
	scenario int
	seed     uint64
}

// Check reports parameters that the configuration does not accept.
func (t *Tuning) Check() error {
	var errs []error
	for i, p := range t.Parameters {
		if slices.ContainsFunc(t.Parameters[:i], func(o Parameter) bool { return o.Key == p.Key }) {
			errs = append(errs, &compare.RequestError{
				Err: fmt.Errorf("parameter %s is given twice", p.Key)})
			continue
		}
		if err := p.check(t.Configuration); err != nil {
			errs = append(errs, fmt.Errorf("parameter %s: %w", p.Key, err))
		}
	}
	return errors.Join(errs...)
}

// Run searches the parameters and confirms the result. The parameters must have passed Check.
func (t *Tuning) Run(ctx context.Context) (Tuned, error) {
	// The total is an upper bound: the search ends when no step helps.
	var total time.Duration
	for _, s := range t.Scenarios {
		total += s.Scenario.Horizon * time.Duration(t.Budget+5*len(t.SearchSeeds))
	}
	t.progress = compare.NewProgress(t.Log, total)
	defer t.progress.Stop()
	if err := t.runUnchanged(ctx); err != nil {
		return Tuned{}, err
	}
	var space []search.Dimension
	t.start, t.trials = nil, nil
	for _, p := range t.Parameters {
		value, err := p.current(t.Configuration)
		if err != nil {
			return Tuned{}, err
		}
		space, t.start = append(space, p.Dimension), append(t.start, value)
	}
	best, err := search.Maximize(space, t.start, search.Options{Budget: t.Budget,
		Seeds: len(t.SearchSeeds)}, func(points [][]float64, seeds int) ([]float64, error) {
		return t.evaluate(ctx, points, t.SearchSeeds[:seeds])
	})
	if err != nil {
		return Tuned{}, err
	}
	return t.confirm(ctx, best)
}

func (t *Tuning) seeds() []uint64 { return slices.Concat(t.SearchSeeds, t.ConfirmSeeds) }

// policy returns the configuration's policies with values of the parameters.
func (t *Tuning) policy(values []float64) (simulator.Policy, error) {
	var settings []string
	for i, v := range values {
		settings = append(settings, t.Parameters[i].Key+"="+t.Parameters[i].text(v))
	}
	policy, err := t.Configuration.Policy(settings...)
	if err != nil {
		return simulator.Policy{}, fmt.Errorf("a value within a parameter's range is refused: %w",
			err)
	}
	return policy, nil
}

// runUnchanged runs all scenarios and seeds without batch work, and with the configuration
// unchanged.
func (t *Tuning) runUnchanged(ctx context.Context) error {
	policy, err := t.Configuration.Policy()
	if err != nil {
		return err
	}
	c := compare.Comparison{Scenarios: t.Scenarios, Seeds: t.seeds(),
		Candidates: []compare.Candidate{{Policy: policy}}}
	quiet, err := c.NoBatch(ctx, t.progress)
	if err != nil {
		return err
	}
	t.quiet = map[runKey]simulator.NoBatch{}
	for i := range t.Scenarios {
		for n, seed := range c.Seeds {
			t.quiet[runKey{i, seed}] = quiet[i][n]
		}
	}
	results, err := t.run(ctx, []simulator.Policy{policy}, c.Seeds, func(int) string {
		return "unchanged"
	})
	if err != nil {
		return err
	}
	t.before = results[0]
	return nil
}

// run runs policies in all scenarios with some seeds and returns the results of each policy.
func (t *Tuning) run(
	ctx context.Context, policies []simulator.Policy, seeds []uint64, name func(int) string,
) ([]map[runKey]simulator.Result, error) {
	n := len(t.Scenarios)
	results := make([]simulator.Result, len(policies)*n*len(seeds))
	var jobs []compare.Job
	for k, policy := range policies {
		for i := range t.Scenarios {
			for m, seed := range seeds {
				jobs = append(jobs, func(ctx context.Context) (err error) {
					s := &t.Scenarios[i]
					results[(k*n+i)*len(seeds)+m], err = simulator.RunAgainst(
						t.quiet[runKey{i, seed}], s.With(seed, policy),
						t.progress.Run(ctx, s, name(k)))
					return err
				})
			}
		}
	}
	if err := compare.Parallel(ctx, jobs); err != nil {
		return nil, err
	}
	all := make([]map[runKey]simulator.Result, len(policies))
	for k := range policies {
		all[k] = map[runKey]simulator.Result{}
		for i := range t.Scenarios {
			for m, seed := range seeds {
				all[k][runKey{i, seed}] = results[(k*n+i)*len(seeds)+m]
			}
		}
	}
	return all, nil
}

// evaluate returns the objective of each point on some seeds.
func (t *Tuning) evaluate(
	ctx context.Context, points [][]float64, seeds []uint64,
) ([]float64, error) {
	var policies []simulator.Policy
	for _, values := range points {
		policy, err := t.policy(values)
		if err != nil {
			return nil, err
		}
		policies = append(policies, policy)
	}
	results, err := t.run(ctx, policies, seeds, func(k int) string { return t.name(points[k]) })
	if err != nil {
		return nil, err
	}
	var objectives []float64
	for k := range points {
		objectives = append(objectives, t.objective(seeds, results[k]))
		t.tried(points[k], objectives[k], results[k])
	}
	return objectives, nil
}

func (t *Tuning) name(values []float64) string {
	var parts []string
	for i, v := range values {
		parts = append(parts, t.Parameters[i].text(v))
	}
	return strings.Join(parts, " ")
}

// confirm runs the best point with all seeds, including those that the search did not use.
func (t *Tuning) confirm(ctx context.Context, best search.Result) (Tuned, error) {
	policy, err := t.policy(best.Point)
	if err != nil {
		return Tuned{}, err
	}
	results, err := t.run(ctx, []simulator.Policy{policy}, t.seeds(),
		func(int) string { return "the best point" })
	if err != nil {
		return Tuned{}, err
	}
	return Tuned{
		tuning: t, best: best, after: results[0], policy: policy.Flow.Policy,
		searched: change{t.objective(t.SearchSeeds, t.before),
			t.objective(t.SearchSeeds, results[0])},
		confirmed: change{t.objective(t.ConfirmSeeds, t.before),
			t.objective(t.ConfirmSeeds, results[0])},
	}, nil
}
