package randompools

import (
	"context"

	"github.com/tidefill/tidefill/simulator/compare/results"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/lab/random"
)

// oracle returns the harvest of oracle G, or of the policy if that is safe and harvests more. The
// search does not begin from the policy's run, so that its result serves other policies too.
func (s *Study) oracle(ctx context.Context, pool random.Pool, record Record) (int64, error) {
	found, err := s.searchOracle(ctx, pool)
	if record.safe() {
		found = max(found, record.Harvest)
	}
	return found, err
}

func (s *Study) searchOracle(ctx context.Context, pool random.Pool) (int64, error) {
	program, err := results.Program() // the search tries headroom, which no short run identifies
	if err != nil {
		return 0, err
	}
	key, err := results.Key(program, s.OracleRuns, pool.Scenario, pool.Seed)
	if err != nil {
		return 0, err
	}
	if stored, ok := s.oracles.Get(key); ok {
		return stored, nil
	}
	s.progress.at(pool.Number, "oracle G")
	setup := pool.Setup()
	if setup.Policy, err = staticPolicy(); err != nil {
		return 0, err
	}
	found, err := oracle.Gateway(setup, pool.NoBatch, nil, oracle.Budget{Runs: s.OracleRuns,
		Progress: until(ctx)})
	if err != nil {
		return 0, err
	}
	useful := int64(found.Bound.Useful)
	return useful, s.oracles.Put(key, useful)
}
