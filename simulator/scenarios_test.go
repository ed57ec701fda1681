package simulator

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// Every bundled scenario must be able to measure a policy: without batch work its users attain the
// SLO on every seed.
func TestScenariosAreValid(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it simulates days")
	}
	files, err := filepath.Glob("scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	const (
		seeds = 5
		long  = 2 * time.Hour
		// of a scenario that does not change with time; its first seed runs to the end
		same = 20 * time.Minute
	)
	var checked []scenario.Scenario // without what only batch work notices
	for _, file := range files {
		s := bundled(t, filepath.Base(file))
		if g := s.Scenario.Goals; g.Loss == 0 && g.Deadlines == 0 {
			t.Errorf("%s: judges nothing", file)
		}
		if beside := s.Scenario.Goals.ComparedWith.Scenario; beside != "" {
			bundled(t, beside) // it is there
		}
		interactive := withoutBatch(s.Scenario)
		known := false
		for _, other := range checked {
			known = known || reflect.DeepEqual(other, interactive)
		}
		if known {
			continue
		}
		checked = append(checked, interactive)
		longRun := s.Scenario.Horizon > long
		for seed := range uint64(seeds) {
			s.Seed = seed + 1
			switch {
			case longRun:
				horizon(long)(&s)
			case seed == 1 && unchangedAfter(s.Scenario, same):
				horizon(same)(&s)
			}
			q, err := RunNoBatch(s, silent)
			if err != nil {
				t.Errorf("%s, seed %d: %v", file, s.Seed, err)
			}
			t.Logf("%-36s %3.0f h, seed %d: %6.2f%% of %d, worst five minutes %.2f%%", file,
				s.Scenario.Horizon.Hours(), s.Seed,
				100*q.Interactive.Attainment, q.Interactive.Requests,
				100*q.Interactive.Worst5Minutes)
		}
	}
}

// unchangedAfter reports whether nothing about the scenario changes after a time.
func unchangedAfter(s scenario.Scenario, until time.Duration) bool {
	begins := s.Until(until)
	begins.Horizon = s.Horizon
	return reflect.DeepEqual(begins, s) && s.Interactive.Dispersion.VarMean == 0 &&
		s.Interactive.Bursts.Factor == 0
}

func withoutBatch(s scenario.Scenario) scenario.Scenario {
	s.Name, s.About, s.Base, s.Jobs, s.JobStream, s.Goals, s.Metrics = "", "", "", nil,
		scenario.JobStream{}, scenario.Goals{}, scenario.Metrics{}
	s.Pool.CostModelError, s.Pool.Scheduling = scenario.CostModelError{}, ""
	return s
}
