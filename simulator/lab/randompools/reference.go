package randompools

import (
	"context"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/compare/results"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/lab/random"
)

// reference returns the best static setting that is safe.
func (s *Study) reference(ctx context.Context, pool random.Pool) (Reference, error) {
	key, err := results.Key(s.code, "with rerun", pool.Scenario, pool.Seed)
	if err != nil {
		return Reference{}, err
	}
	if stored, ok := s.references.Get(key); ok {
		return stored, nil
	}
	base, err := staticPolicy()
	if err != nil {
		return Reference{}, err
	}
	setup := pool.Setup()
	search := staticSearch{run: func(static oracle.StaticSetting) (simulator.Result, error) {
		s.progress.at(pool.Number, static.String())
		setup.Policy = static.Policy(base)
		return simulator.RunAgainst(pool.NoBatch, setup, until(ctx))
	}}
	r, err := search.best(pool.Scenario.Pool.Replicas, setup.Engine().Profile.MaxSeqs)
	if err != nil {
		return Reference{}, err
	}
	if r.Rerun, err = s.rerun(ctx, pool, r); err != nil {
		return Reference{}, err
	}
	return r, s.references.Put(key, r)
}

// rerunSeeds is added to the seed of a pool for the run in which its reference is tried again.
const rerunSeeds = 1 << 40

// rerun runs a static setting with another seed than the one for which it was chosen.
func (s *Study) rerun(ctx context.Context, pool random.Pool, r Reference) (*Rerun, error) {
	if r.Lines == 0 {
		return nil, nil
	}
	setting := oracle.StaticSetting{Lines: r.Lines, Runners: r.Runners}
	s.progress.at(pool.Number, setting.String()+" again")
	base, err := staticPolicy()
	if err != nil {
		return nil, err
	}
	setup := pool.Setup()
	setup.Seed += rerunSeeds
	setup.Policy = setting.Policy(base)
	noBatch, err := simulator.RunNoBatch(setup, until(ctx))
	if unfit(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	again, err := simulator.RunAgainst(noBatch, setup, until(ctx))
	return &Rerun{Harvest: again.Batch.Useful, Loss: again.Loss}, err
}

// staticPolicy returns the default configuration's policies, for references.
func staticPolicy() (simulator.Policy, error) {
	c, err := compare.Configuration{}.Candidate("fixed")
	return c.Policy, err
}

// oftenRefused is the mean number of refusals of a line from which on more lines harvest nothing
// more.
const oftenRefused = 4

// staticSearch searches for the best static setting. It does not run settings with more lines than
// engines accept: there refused lines are sent again and again, which takes long to simulate and
// harvests nothing.
type staticSearch struct {
	run func(oracle.StaticSetting) (simulator.Result, error)

	accepted int // so many lines of a runner are enough to be refused; 0: not known
	results  map[oracle.StaticSetting]simulator.Result
}

func (s *staticSearch) best(runners, maxSeqs int) (Reference, error) {
	s.results = map[oracle.StaticSetting]simulator.Result{}
	best, err := oracle.BestStatic(runners, maxSeqs, s.try)
	if err != nil {
		return Reference{}, err
	}
	return Reference{Lines: s.bounded(best.Setting).Lines, Runners: best.Setting.Runners,
		Harvest: best.Result.Batch.Useful, Loss: best.Result.Loss, Runs: len(s.results)}, nil
}

// bounded returns the setting with no more lines than engines accept.
func (s *staticSearch) bounded(static oracle.StaticSetting) oracle.StaticSetting {
	if s.accepted > 0 {
		static.Lines = min(static.Lines, s.accepted)
	}
	return static
}

func (s *staticSearch) try(static oracle.StaticSetting) (simulator.Result, error) {
	static = s.bounded(static)
	if known, ok := s.results[static]; ok {
		return known, nil
	}
	r, err := s.run(static)
	if err != nil {
		return r, err
	}
	s.results[static] = r
	if r.Batch.Sheds > oftenRefused*r.Batch.Lines {
		s.accepted = static.Lines
	}
	return r, nil
}
