package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit/profile"
	"github.com/tidefill/tidefill/simulator/lab/bounds"
	"github.com/tidefill/tidefill/simulator/report"
)

const small = `name: small
horizon: 4m
pool: {profile: llama-8b-a100, replicas: 1}
interactive: {generator: conversation, rate: 1}
` + backlog

// Oracles search the seeds that they are given, and the lab's policies are baselines.
func TestSimulateComparesWithOraclesAndPublishedPolicies(t *testing.T) {
	file := writeFile(t, "small.yaml", small)
	var got bounds.Report
	if err := json.Unmarshal([]byte(must(t, exitOK, "simulate", file, "--policy", "headroom",
		"--baselines", "--seeds", "2", "--oracles", "--oracle-runs", "2", "--oracle-seeds", "1",
		"--json").out), &got); err != nil {
		t.Fatal(err)
	}
	if seeds := got.Bounds[0].Seeds; len(seeds[0].Oracles) < 2 || len(seeds[1].Oracles) > 0 {
		t.Errorf("oracles of the seeds: %+v, want those of the first only", seeds)
	}
	s := got.Scenarios[0]
	for _, published := range []string{"none", "aimd decrease=0.5 start=5 min=5", "budget",
		"saturation threshold=0.8", "gradient tolerance=1.5", "model"} {
		i := slices.IndexFunc(s.Policies, func(p report.Policy) bool {
			return p.Name == published
		})
		if i < 0 || len(s.Policies[i].Runs) != 2 {
			t.Errorf("%s did not run with both seeds", published)
		}
	}
}

// Which deadlines are feasible is known without a search.
func TestSimulateShowsFeasibleDeadlines(t *testing.T) {
	file := writeFile(t, "scaled.yaml", `name: scaled
horizon: 20m
pool: {profile: llama-8b-a100, replicas: 1, min: 0, max: 3}
interactive: {generator: none}
jobs:
- {name: night, kind: bal, lines: 200, window: 15m}
- {name: dream, kind: gen, lines: 50000, window: 15m}
goals: {deadlines: 1}
`)
	got := must(t, exitOK, "simulate", file, "--policy", "fixed,per_runner=3").out
	for _, want := range []string{"\nLP ", "2 deadlines, 1 feasible", "feasible deadlines met  ",
		"1.000 met"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
}

// A fitted profile has confidence intervals, and the report has the results at their bounds.
func TestSimulateShowsAProfilesSpread(t *testing.T) {
	file := writeFile(t, "small.yaml", strings.Replace(small, "llama-8b-a100", "mine.yaml", 1))
	p, known := engine.ProfileNamed("llama-8b-a100")
	if !known {
		t.Fatal("the profile llama-8b-a100 is missing")
	}
	mine := profile.Bundled(p)
	for i := range mine.CostModel {
		if c := &mine.CostModel[i]; c.Name == "c0" {
			c.Low, c.High = 11, 80
		}
	}
	text, err := mine.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "mine.yaml"), text,
		0o600); err != nil {
		t.Fatal(err)
	}
	got := must(t, exitOK, "simulate", file, "--policy", "aimd").out
	if !strings.Contains(got, "WITH THE PROFILE'S SPREAD  COST MODEL") ||
		!strings.Contains(got, "\naimd                       low ") {
		t.Errorf("the report lacks the spread:\n%s", got)
	}
}

func TestSimulateMistakes(t *testing.T) {
	file := writeFile(t, "small.yaml", small)
	for given, want := range map[string]string{
		"":                    "requires at least 1 arg",
		"--oracle-runs 0 F":   "--oracle-runs is 0, want at least 1",
		"--oracle-seeds -1 F": "--oracle-seeds is -1",
		"--seeds 0 F":         "--seeds is 0",
		"--set x F":           "write --set key.path=value",
		"--random 3":          "unknown flag: --random",
	} {
		got := must(t, exitUsage, append([]string{"simulate"},
			strings.Fields(strings.ReplaceAll(given, "F", file))...)...)
		if !strings.Contains(got.errors, want) || got.out != "" {
			t.Errorf("%s: want %q, got %s%s", given, want, got.errors, got.out)
		}
	}
}
