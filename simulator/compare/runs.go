package compare

import (
	"context"
	"encoding/json"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare/results"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Runs keeps finished runs in a directory, so that a comparison that was stopped continues where it
// was. A nil Runs keeps nothing.
//
// A run is used again if nothing that it depends on has changed: the scenario, its profiles and
// files, the seed, the policy's settings, and the code.
type Runs struct {
	// Version identifies the code that a run of a candidate depends on. Nil: the program.
	Version func(Candidate) (string, error)

	noBatch *results.Store[simulator.NoBatch]
	batch   *results.Store[simulator.KeptRun]
}

// OpenRuns reads the runs that a directory keeps. It is created if need be.
func OpenRuns(dir string) (*Runs, error) {
	noBatch, err := results.Open[simulator.NoBatch](dir, "no-batch.jsonl")
	if err != nil {
		return nil, err
	}
	batch, err := results.Open[simulator.KeptRun](dir, "batch.jsonl")
	return &Runs{noBatch: noBatch, batch: batch}, err
}

// runNoBatch returns the kept run, or runs the scenario and keeps the run. One with a timeline runs
// each time.
func (r *Runs) runNoBatch(
	ctx context.Context, s *Scenario, setup simulator.Setup, progress *Progress,
) (simulator.NoBatch, error) {
	const name = "no batch"
	if r == nil || setup.Outputs.Timeline {
		return simulator.RunNoBatch(setup, progress.Run(ctx, s, name))
	}
	program, err := results.Program()
	if err != nil {
		return simulator.NoBatch{}, err
	}
	key, err := runKeyOf(program, s, setup)
	if err != nil {
		return simulator.NoBatch{}, err
	}
	if kept, ok := r.noBatch.Get(key); ok {
		progress.Skip(s, 1)
		return kept, nil
	}
	run, err := simulator.RunNoBatch(setup, progress.Run(ctx, s, name))
	if err != nil {
		return run, err
	}
	return run, r.noBatch.Put(key, run)
}

// runBatch returns the kept run of a candidate, or runs the scenario and keeps the run. Runs that
// write more than their figures run each time.
func (r *Runs) runBatch(
	ctx context.Context, s *Scenario, candidate Candidate, setup simulator.Setup,
	progress *Progress,
) (simulator.Result, error) {
	if r == nil || setup.Outputs.Timeline || setup.Outputs.Events != nil {
		return simulator.RunBatch(setup, progress.Run(ctx, s, candidate.Name))
	}
	version, err := r.version(candidate)
	if err != nil {
		return simulator.Result{}, err
	}
	key, err := runKeyOf(version, s, setup)
	if err != nil {
		return simulator.Result{}, err
	}
	if kept, ok := r.batch.Get(key); ok {
		progress.Skip(s, 1)
		return kept.Result, nil
	}
	run, err := simulator.RunBatch(setup, progress.Run(ctx, s, candidate.Name))
	if err != nil {
		return run, err
	}
	return run, r.batch.Put(key, simulator.KeptRun{Result: run})
}

// version identifies the code that a run of a candidate depends on.
func (r *Runs) version(c Candidate) (string, error) {
	if r.Version != nil {
		return r.Version(c)
	}
	return results.Program()
}

// runKeyOf identifies a run of a scenario by code of a version. Settings of policies that do not
// run are no part of it: whoever tunes one policy need not run the published ones again.
func runKeyOf(version string, s *Scenario, setup simulator.Setup) (string, error) {
	inputs, err := inputsOf(s, setup)
	if err != nil {
		return "", err
	}
	policy := setup.Policy
	policy.Flow = policy.Flow.OnlySelected()
	return results.Key(version, inputs, setup.Seed, policy)
}

// inputsOf returns what a run depends on besides the seed, the policy and the code.
func inputsOf(s *Scenario, setup simulator.Setup) (json.RawMessage, error) {
	setup.Scenario.Goals = scenario.Goals{} // they judge runs and do not change them
	return json.Marshal([]any{setup.Scenario, setup.Profile, setup.Profiles, s.Hashes})
}
