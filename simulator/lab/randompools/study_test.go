package randompools

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// study returns a study of some short pools with the policy fixed.
func study(t *testing.T, dir, policy string, numbers ...int) *Study {
	t.Helper()
	family, err := random.LookupFamily("idle")
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := compare.Configuration{}.Candidate(policy)
	if err != nil {
		t.Fatal(err)
	}
	return &Study{Source: random.Source{Seed: 2, Family: family, Horizon: 6 * time.Minute},
		Numbers: numbers, Candidate: candidate, Workers: 2, Dir: dir, Command: "repeat"}
}

func run(t *testing.T, s *Study) *Report {
	t.Helper()
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func lines(t *testing.T, dir, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(content))
}

func TestAStudyContinues(t *testing.T) {
	dir := t.TempDir()
	whole := run(t, study(t, "", "fixed,per_runner=4", 9, 6, 3))
	run(t, study(t, dir, "fixed,per_runner=4", 9))
	if diff := cmp.Diff(whole, run(t, study(t, dir, "fixed,per_runner=4", 9, 6, 3))); diff != "" {
		t.Errorf("in two parts the report differs (-at once +in parts):\n%s", diff)
	}
	for _, name := range []string{"pools.jsonl", "references.jsonl", "results.jsonl"} {
		before := lines(t, dir, name)
		run(t, study(t, dir, "fixed,per_runner=4", 3, 6, 9))
		if after := lines(t, dir, name); len(after) != len(before) {
			t.Errorf("%s grows although everything is there", name)
		}
	}
}

// The reference must not depend on the policy that is compared with it.
func TestAnotherPolicyHasTheSameReference(t *testing.T) {
	dir := t.TempDir()
	one := run(t, study(t, dir, "fixed,per_runner=4", 9))
	kept := lines(t, dir, "references.jsonl")
	other := run(t, study(t, dir, "fixed,per_runner=64", 9))
	if diff := cmp.Diff(one.Records[0].Reference, other.Records[0].Reference); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kept, lines(t, dir, "references.jsonl")); diff != "" {
		t.Errorf("another policy searches again:\n%s", diff)
	}
	if n := len(lines(t, dir, "results.jsonl")); n != 2 {
		t.Errorf("%d results, want one of each policy", n)
	}
	if one.Records[0].Harvest == other.Records[0].Harvest {
		t.Error("both policies harvest the same")
	}
}

// The setting that is best in a run is tried in another one, with other users.
func TestReferencesRunAgainWithAnotherSeed(t *testing.T) {
	s := study(t, "", "fixed,per_runner=4", 9)
	r := run(t, s).Records[0].Reference
	if r.Lines == 0 || r.Rerun == nil {
		t.Fatalf("the reference is %+v, want a setting and its rerun", r)
	}
	pool, err := s.draw(t.Context(), 9)
	if err != nil {
		t.Fatal(err)
	}
	for seed, want := range map[uint64]Rerun{pool.Seed: {r.Harvest, r.Loss},
		pool.Seed + rerunSeeds: *r.Rerun} {
		setup := pool.Setup()
		setup.Seed = seed
		base, err := staticPolicy()
		if err != nil {
			t.Fatal(err)
		}
		setup.Policy = oracle.StaticSetting{Lines: r.Lines, Runners: r.Runners}.Policy(base)
		got, err := simulator.Run(setup, func(float64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if (Rerun{got.Batch.Useful, got.Loss}) != want {
			t.Errorf("with seed %d: %d tokens at %v, want %+v", seed, got.Batch.Useful,
				got.Loss, want)
		}
	}
	if r.Rerun.Harvest == r.Harvest {
		t.Error("the rerun harvests to the token what the run did")
	}
	if r, err := s.rerun(t.Context(), pool, Reference{}); r != nil || err != nil {
		t.Errorf("without a setting: %+v, %v", r, err)
	}
}

func TestWrittenScenariosRunAlike(t *testing.T) {
	dir := t.TempDir()
	s := study(t, "", "fixed,per_runner=4", 1, 2, 3, 4)
	s.NoReference = true
	any, _ := random.LookupFamily("any")
	s.Source.Family = any
	want := run(t, s)
	if err := s.WriteScenarios(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, record := range want.Records {
		file := filepath.Join(dir, "random-any-2-"+string(rune('0'+record.Number))+".yaml")
		scenarios, err := compare.OpenScenarios([]string{file}, compare.Trace{})
		if err != nil {
			t.Fatal(err)
		}
		c := compare.Comparison{Scenarios: scenarios, Seeds: []uint64{record.RunSeed},
			Candidates: []compare.Candidate{s.Candidate}}
		got, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		result := got.Scenarios[0].Policies[0].Runs[0]
		if diff := cmp.Diff(record.Outcome, newOutcome(result)); diff != "" {
			t.Errorf("%s (-random +file):\n%s", file, diff)
		}
	}
}

func TestMinimizingShrinks(t *testing.T) {
	s := study(t, "", "fixed,per_runner=256", 8, 9)
	s.NoReference = true
	number := 0
	for _, record := range run(t, s).Records {
		if record.Loss > 1 {
			number = record.Number
		} else if err := s.Minimize(t.Context(), record.Number, &bytes.Buffer{}); err == nil {
			t.Errorf("pool %d is safe and is minimized", record.Number)
		}
	}
	if number == 0 {
		t.Fatal("256 lines are safe everywhere")
	}
	var out bytes.Buffer
	if err := s.Minimize(t.Context(), number, &out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "minimized.yaml")
	if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	scenarios, err := compare.OpenScenarios([]string{file}, compare.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	c := compare.Comparison{Scenarios: scenarios, Seeds: []uint64{s.Source.RunSeed(number)},
		Candidates: []compare.Candidate{s.Candidate}}
	result, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pool := scenarios[0].Scenario.Pool
	if loss := result.Scenarios[0].Policies[0].Runs[0].Loss; loss <= 1 || pool.RouterView != 0 ||
		len(scenarios[0].Scenario.Jobs) != 1 {
		t.Errorf("minimized, it loses %v points:\n%s", loss, out.String())
	}
}

// Pools whose metrics are replaced share a directory with others, and are not taken for them.
func TestGivenMetricsAreKeptApart(t *testing.T) {
	dir := t.TempDir()
	reports := map[string]*Report{}
	for _, metrics := range []random.Metrics{{}, {Period: time.Second}, {Off: true}} {
		s := study(t, dir, "headroom", 9)
		s.NoReference, s.Source.Metrics = true, metrics
		r := run(t, s)
		reports[r.Metrics] = r
		if again := run(t, s); !cmp.Equal(r, again) {
			t.Errorf("metrics %q: again the report is another:\n%s", metrics, cmp.Diff(r, again))
		}
		s.Dir = ""
		if alone := run(t, s); !cmp.Equal(r, alone) {
			t.Errorf("metrics %q: alone the report is another:\n%s", metrics, cmp.Diff(r, alone))
		}
	}
	for _, name := range []string{"pools.jsonl", "results.jsonl"} {
		content := strings.Join(lines(t, dir, name), " ")
		if n := strings.Count(content, `{"key":`); n != 3 {
			t.Errorf("%s has %d entries, want one for each kind of metrics", name, n)
		}
	}
	var text strings.Builder
	if err := reports["off"].Text(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "6m00s each, metrics off\n") {
		t.Errorf("the report does not name the metrics:\n%s", text.String())
	}
}

// In a simpler scenario nobody may come. It is left out, and what was found so far is kept.
func TestMinimizingPassesOverRunsWithoutRequests(t *testing.T) {
	s := study(t, "", "fixed,per_runner=256")
	pool := s.Source.Sketch(1)
	pool.Scenario.Horizon = 15 * time.Minute
	pool.Scenario.Interactive = scenario.Default().Interactive
	pool.Scenario.Interactive.Generator = "conversation"
	pool.Scenario.Interactive.Rate = 0.0001
	pool.Scenario.Interactive.Surges = []scenario.Surge{
		{At: 8 * time.Minute, For: 6 * time.Minute, Factor: 10_000}}
	if _, _, _, err := s.simplify(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

// A pool that fails is reported, and the others are judged. Files that cannot be written end all.
func TestAStudyGoesOnAfterAPoolThatFails(t *testing.T) {
	dir := t.TempDir()
	s := study(t, dir, "fixed,per_runner=4", 9, 6)
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	broken, err := s.draw(t.Context(), 9)
	if err != nil {
		t.Fatal(err)
	}
	broken.Scenario.Pool.Replicas = -1
	key, err := s.poolKey(9)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.pools.Put(key, storedPool{broken}); err != nil {
		t.Fatal(err)
	}
	r := run(t, s)
	if len(r.Records) != 1 || r.Records[0].Number != 6 || r.All.Pools != 1 ||
		len(r.Failures) != 1 || r.Failures[0].Number != 9 {
		t.Fatalf("judged %+v, failures %+v; want pools 6 and 9", r.Records, r.Failures)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Failed, and in no figure above\n  pool 9: ",
		"pool.replicas is -1",
		"\n  repeat 9\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "1 of 2 pools failed") {
		t.Errorf("the error of the report is %v", err)
	}
	explained := &bytes.Buffer{}
	err = s.Explain(t.Context(), time.Minute, explained)
	if err == nil || !strings.Contains(err.Error(), "pool 9: ") ||
		!strings.Contains(explained.String(), "random-idle-2-6: ") {
		t.Errorf("explained with %v:\n%s", err, explained)
	}
	_, err = s.each(t.Context(), func(context.Context, int, random.Pool) error {
		return &fs.PathError{Op: "write", Path: "results.jsonl", Err: errors.New("disk full")}
	})
	if err == nil {
		t.Error("results cannot be written, and the study goes on")
	}
}

// The oracle's result serves other policies, and is no less than what a safe one harvests.
func TestTheOracleIsKept(t *testing.T) {
	dir := t.TempDir()
	with := func(policy string) *Report {
		s := study(t, dir, policy, 9, 6)
		s.Oracles, s.OracleRuns = 1, 30
		return run(t, s)
	}
	one := with("fixed,per_runner=4")
	kept := lines(t, dir, "oracles.jsonl")
	other := with("fixed,per_runner=1")
	if diff := cmp.Diff(kept, lines(t, dir, "oracles.jsonl")); diff != "" {
		t.Errorf("another policy searches again:\n%s", diff)
	}
	first := one.Records[0]
	if first.Oracle < first.Reference.Harvest || first.safe() && first.Oracle < first.Harvest {
		t.Errorf("oracle G harvests less than others: %+v, %+v", first, first.Reference)
	}
	if one.Records[1].Oracle != 0 || other.Records[0].Oracle == 0 {
		t.Error("only the first pool was to be compared")
	}
}
