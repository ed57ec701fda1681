package randompools

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/compare/results"
	"github.com/tidefill/tidefill/simulator/lab/behaviour"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/lab/random"
)

// Study judges a policy on random pools.
type Study struct {
	Source    random.Source
	Numbers   []int // of the pools, each above 0
	Candidate compare.Candidate
	// NoReference leaves out the search for the best static setting.
	NoReference bool
	// Oracles is the number of the pools, the first ones, that are also compared with oracle G,
	// which may spend OracleRuns runs on each.
	Oracles, OracleRuns int
	// Workers is the number of pools that run at a time, at least 1.
	Workers int
	// Dir keeps pools, references and results. Empty: nothing is kept.
	Dir string
	// Command repeats a pool; its number follows. Flags are those of the policy, each after a
	// space.
	Command, Flags string
	Log            io.Writer // takes progress; nil: none

	code       string // version of what is stored
	pools      *results.Store[storedPool]
	references *results.Store[Reference]
	outcomes   *results.Store[Outcome]
	oracles    *results.Store[int64] // harvests
	progress   *progress
}

// storedPool is a pool without the traffic that it replays.
type storedPool struct{ random.Pool }

// Run returns the report of all pools. One that cannot be drawn or run is among its failures.
func (s *Study) Run(ctx context.Context) (*Report, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	report := &Report{Policy: s.Candidate.Name, Family: s.Source.Family.Name, Seed: s.Source.Seed,
		Hours: s.Source.Horizon.Hours(), Command: s.Command,
		Metrics: s.Source.Metrics.String(), WithReference: !s.NoReference}
	records := make([]Record, len(s.Numbers))
	s.progress = newProgress(s.Log, len(s.Numbers))
	defer s.progress.stop()
	failures, err := s.each(ctx, func(ctx context.Context, i int, pool random.Pool) error {
		record, err := s.judge(ctx, pool, i < s.Oracles)
		if err == nil {
			records[i] = record
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	report.Failures = failures
	report.Records = slices.DeleteFunc(records, func(r Record) bool { return r.Number == 0 })
	report.summarize()
	return report, nil
}

// codeVersion identifies the simulator and the distributions: by what eight lines on each runner do
// to a few pools.
func codeVersion() (string, error) {
	policy, err := staticPolicy()
	if err != nil {
		return "", err
	}
	return behaviour.Of(oracle.StaticSetting{Lines: 8}.Policy(policy))
}

// open reads what is kept in the directory.
func (s *Study) open() (err error) {
	if s.code, err = codeVersion(); err != nil {
		return err
	}
	if s.pools, err = results.Open[storedPool](s.Dir, "pools.jsonl"); err != nil {
		return err
	}
	if s.references, err = results.Open[Reference](s.Dir, "references.jsonl"); err != nil {
		return err
	}
	if s.outcomes, err = results.Open[Outcome](s.Dir, "results.jsonl"); err != nil {
		return err
	}
	s.oracles, err = results.Open[int64](s.Dir, "oracles.jsonl")
	return err
}

// each draws the pools in parallel and calls do with each and its index. It goes on after a pool
// that fails, and returns such pools. What concerns all of them ends it: a file that cannot be read
// or written, and the end of the context.
func (s *Study) each(
	ctx context.Context, do func(ctx context.Context, i int, pool random.Pool) error,
) ([]Failure, error) {
	errs := make([]error, len(s.Numbers))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(max(1, s.Workers))
	for i, number := range s.Numbers {
		if within.Err() != nil {
			break
		}
		group.Go(func() error {
			defer s.progress.finished()
			pool, err := s.draw(ctx, number)
			if err == nil {
				err = do(within, i, pool)
			}
			if file := (*fs.PathError)(nil); within.Err() != nil || errors.As(err, &file) {
				return err
			}
			errs[i] = err
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return failuresOf(s.Numbers, errs), nil
}

// poolKey returns the key of all that a pool depends on.
func (s *Study) poolKey(number int) (string, error) {
	var traces []string
	for _, t := range s.Source.Traces {
		traces = append(traces, t.File)
	}
	parts := []any{random.Version, s.code, s.Source.Seed, s.Source.Family.Name, s.Source.Horizon,
		traces, number}
	if given := s.Source.Metrics; given != (random.Metrics{}) {
		parts = append(parts, given) // without, pools that are kept remain known
	}
	return results.Key(parts...)
}

func (s *Study) draw(ctx context.Context, number int) (random.Pool, error) {
	s.progress.at(number, "draw")
	key, err := s.poolKey(number)
	if err != nil {
		return random.Pool{}, err
	}
	if stored, ok := s.pools.Get(key); ok {
		pool := stored.Pool
		for _, t := range s.Source.Traces {
			if t.File == pool.Scenario.Interactive.Trace {
				pool.Trace = t.Content
			}
		}
		return pool, nil
	}
	source := s.Source
	source.Progress = until(ctx)
	pool, err := source.Draw(number)
	if err != nil {
		return pool, err
	}
	stored := storedPool{pool}
	stored.Trace = nil
	return pool, s.pools.Put(key, stored)
}

// judge runs the policy on a pool and searches for what to compare it with.
func (s *Study) judge(ctx context.Context, pool random.Pool, withOracle bool) (Record, error) {
	record := newRecord(pool)
	var err error
	if record.Outcome, err = s.outcome(ctx, pool); err != nil {
		return record, err
	}
	if !s.NoReference {
		reference, err := s.reference(ctx, pool)
		if record.Reference = &reference; err != nil {
			return record, err
		}
	}
	if withOracle {
		record.Oracle, err = s.oracle(ctx, pool, record)
	}
	return record, err
}

func (s *Study) outcome(ctx context.Context, pool random.Pool) (Outcome, error) {
	program, err := results.Program()
	if err != nil {
		return Outcome{}, err
	}
	key, err := results.Key(program, pool.Scenario, pool.Seed, s.Candidate.Policy)
	if err != nil {
		return Outcome{}, err
	}
	if stored, ok := s.outcomes.Get(key); ok {
		return stored, nil
	}
	s.progress.at(pool.Number, s.Candidate.Name)
	setup := pool.Setup()
	setup.Policy = s.Candidate.Policy
	r, err := simulator.RunAgainst(pool.NoBatch, setup, until(ctx))
	if err != nil {
		return Outcome{}, err
	}
	o := newOutcome(r)
	return o, s.outcomes.Put(key, o)
}

// until returns a progress function that ends a run with its context.
func until(ctx context.Context) simulator.Progress {
	return func(float64) error { return ctx.Err() }
}
