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
// files, the seed, the policy's settings, and the code. For runs without batch work, and of a
// policy that is tried, the code is the program; for a baseline it is what the policy does to a few
// short pools, so that a change of one policy does not cost hours for the others.
type Runs struct {
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
	return &Runs{noBatch, batch}, err
}

// runNoBatch returns the kept run, or runs the scenario and keeps the run.
func (r *Runs) runNoBatch(
	ctx context.Context, s *Scenario, setup simulator.Setup, progress *Progress,
) (simulator.NoBatch, error) {
	const name = "no batch"
	if r == nil {
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
		progress.kept(s)
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
	version, err := candidate.version()
	if err != nil {
		return simulator.Result{}, err
	}
	key, err := runKeyOf(version, s, setup)
	if err != nil {
		return simulator.Result{}, err
	}
	if kept, ok := r.batch.Get(key); ok {
		progress.kept(s)
		return kept.Result, nil
	}
	run, err := simulator.RunBatch(setup, progress.Run(ctx, s, candidate.Name))
	if err != nil {
		return run, err
	}
	return run, r.batch.Put(key, simulator.KeptRun{Result: run})
}

// version identifies the code of a candidate.
func (c Candidate) version() (string, error) {
	if c.Baseline && !c.Scaling {
		return results.Behaviour(c.Policy)
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
	return json.Marshal([]any{setup.Scenario, setup.Profile, setup.Profiles, s.hashes})
}
