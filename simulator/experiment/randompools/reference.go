package randompools

import (
	"context"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/random"
)

// reference returns the best static setting that is safe.
func (s *Study) reference(ctx context.Context, pool random.Pool) (Reference, error) {
	key, err := keyOf(s.code, pool.Scenario, pool.Seed)
	if err != nil {
		return Reference{}, err
	}
	if stored, ok := s.references.get(key); ok {
		return stored, nil
	}
	base, err := staticPolicy()
	if err != nil {
		return Reference{}, err
	}
	setup, runs := pool.Setup(), 0
	best, err := oracle.BestStatic(pool.Scenario.Pool.Replicas, setup.Engine().Profile.MaxSeqs,
		func(static oracle.StaticSetting) (simulator.Result, error) {
			s.progress.at(pool.Number, static.String())
			runs++
			setup.Policy = static.Policy(base)
			return simulator.RunAgainst(pool.NoBatch, setup, until(ctx))
		})
	if err != nil {
		return Reference{}, err
	}
	r := Reference{Lines: best.Setting.Lines, Runners: best.Setting.Runners,
		Harvest: best.Result.Batch.Useful, Loss: best.Result.Loss, Runs: runs}
	return r, s.references.put(key, r)
}
