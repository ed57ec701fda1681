package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	simreport "github.com/tidefill/tidefill/simulator/report"
)

// smallScenario writes a scenario of a few minutes into a directory of its own, with additional
// keys of its pool and additional sections.
func smallScenario(t *testing.T, pool, rest string) string {
	t.Helper()
	return writeFile(t, "small.yaml", fmt.Sprintf(`name: small
horizon: 4m
pool:
  profile: llama-8b-a100
  replicas: 1
%s
interactive:
  generator: conversation
  rate: 1
%s`, pool, rest))
}

const backlog = "jobs:\n- {name: night, kind: bal}\n"

func TestSimulate(t *testing.T) {
	file := smallScenario(t, "", backlog)
	first := must(t, exitOK, "simulate", file, "--policy", "aimd")
	for _, want := range []string{
		"small: 4m00s, 1 replica of llama-8b-a100, not calibrated; seed 1\n", "attainment %",
		"useful batch tokens", "NO BATCH  aimd\n", "night", "unlimited",
	} {
		if !strings.Contains(first.out, want) {
			t.Errorf("the table lacks %q:\n%s", want, first.out)
		}
	}
	if !strings.Contains(first.errors, "0.133 simulated hours in ") || strings.Contains(first.out,
		"simulated hours") {
		t.Errorf("speed belongs on standard error:\n%s", first.errors)
	}
	if again := must(t, exitOK, "simulate", file, "--policy", "aimd"); again.out != first.out {
		t.Errorf("the same seed gives\n%s\nand\n%s", first.out, again.out)
	}
	if other := must(t, exitOK, "simulate", file, "--policy", "aimd", "--seed",
		"2"); other.out == first.out {
		t.Error("another seed gives the same")
	}
	if twice := must(t, exitOK, "simulate", file, file, "--policy",
		"aimd"); twice.out != first.out {
		t.Errorf("a scenario given twice runs once; got\n%s", twice.out)
	}
}

// The result does not depend on the number of processors.
func TestSimulateInParallel(t *testing.T) {
	args := []string{
		"simulate", "--json", "--seeds", "3", "--policy", "fixed,per_runner=1", "--policy",
		"fixed,per_runner=4", "--policy", "fixed,per_runner=9",
		smallScenario(t, "", backlog), smallScenario(t, "  noise: 0.05", backlog),
	}
	many := must(t, exitOK, args...).out
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if one := must(t, exitOK, args...).out; one != many {
		t.Errorf("one processor gives\n%s\nseveral\n%s", one, many)
	}
	var result struct {
		Scenarios []struct {
			Policies []struct {
				Name string
				Runs []struct{ Seed int }
			}
		}
	}
	if err := json.Unmarshal([]byte(many), &result); err != nil {
		t.Fatal(err)
	}
	for _, s := range result.Scenarios {
		for i, want := range []string{"fixed per_runner=1", "fixed per_runner=4",
			"fixed per_runner=9"} {
			if p := s.Policies[i]; p.Name != want || len(p.Runs) != 3 || p.Runs[2].Seed != 3 {
				t.Errorf("policy %d is %+v, want %s on seeds 1 to 3", i, p, want)
			}
		}
	}
}

// figures is the part of result.json that the tests read.
type figures struct {
	Profile struct {
		Name       string
		Calibrated bool
	}
	Seeds []struct {
		NoBatch struct{ Requests int } `json:"no_batch"`
	}
	Policies []struct {
		Name string
		Loss struct{ Mean, Worst float64 } `json:"loss_points"`
		Runs []struct {
			Flow  string `json:"flowcontrol_policy"`
			Batch struct {
				Lines  int
				Useful int64 `json:"useful_tokens"`
			}
		}
	}
}

func simulated(t *testing.T, args ...string) figures {
	t.Helper()
	var result struct {
		Version   int
		Scenarios []figures
	}
	if err := json.Unmarshal([]byte(must(t, exitOK, append([]string{"simulate", "--json"},
		args...)...).out), &result); err != nil {
		t.Fatal(err)
	}
	if result.Version != 1 || len(result.Scenarios) != 1 ||
		len(result.Scenarios[0].Policies) == 0 ||
		len(result.Scenarios[0].Seeds) == 0 {
		t.Fatalf("%+v", result)
	}
	return result.Scenarios[0]
}

func TestSimulateReadsTheDaemonsConfiguration(t *testing.T) {
	file := smallScenario(t, "", backlog)
	daemon := writeFile(t, "tidefill.yaml",
		"flowcontrol: {policy: fixed, fixed: {per_runner: 2}}\n")
	few := simulated(t, file, "--config", daemon)
	many := simulated(t, file, "--config", daemon, "--set", "flowcontrol.fixed.per_runner=20")
	a, b := few.Policies[0].Runs[0], many.Policies[0].Runs[0]
	if a.Flow != "fixed" || a.Batch.Lines == 0 || b.Batch.Useful < 4*a.Batch.Useful {
		t.Errorf("2 lines per runner: %+v\n20: %+v", a, b)
	}
	if few.Profile.Name != "llama-8b-a100" || few.Profile.Calibrated {
		t.Errorf("profile %+v", few.Profile)
	}
}

func TestSimulateReadsFilesBesideTheScenario(t *testing.T) {
	file := writeFile(t, "own.yaml", `name: own
horizon: 3m
pool: {profile: mine.yaml, replicas: 1}
interactive: {trace: trace.csv, format: csv}
`)
	place := func(name, content string) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(content),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	place("mine.yaml", must(t, exitOK, "profile", "show", "llama-70b-h100").out)
	place("trace.csv", "t_s,input_tokens,output_tokens\n0,10,10\n70,100,20\n90,200,20\n300,10,10\n")
	if f := simulated(t, file); f.Seeds[0].NoBatch.Requests != 2 ||
		f.Profile.Name != "llama-70b-h100" || !f.Profile.Calibrated ||
		f.Policies[0].Loss.Worst != 0 {
		t.Errorf("%+v", f)
	}
	other := writeFile(t, "other.csv",
		"t_s,input_tokens,output_tokens\n0,10,10\n70,100,20\n80,100,20\n90,200,20\n300,10,10\n")
	if f := simulated(t, file, "--trace", other, "--format",
		"csv"); f.Seeds[0].NoBatch.Requests != 3 {
		t.Errorf("--trace takes the place of the scenario's: %+v", f)
	}
	if got := must(t, exitOK, "simulate", file, "--trace", other, "--format",
		"csv").out; !strings.Contains(got, "played back once") {
		t.Errorf("the report does not describe the traffic:\n%s", got)
	}
	place("trace.csv", "t_s,input_tokens,output_tokens\n0,10,10\n70,100,20\n60,200,20\n300,10,10\n")
	if got := must(t, exitError, "simulate", file).errors; !strings.Contains(got,
		"own.yaml: interactive.trace: trace.csv:4:") {
		t.Errorf("decreasing time: %s", got)
	}
}

func TestSimulateComparesWithBaselines(t *testing.T) {
	file := smallScenario(t, "", backlog+"goals: {loss: 1, harvest_of_cap: 1.25}\n")
	got := must(t, exitOK, "simulate", file, "--policy", "fixed,per_runner=3", "--baselines").out
	for _, want := range []string{"BASELINES", "\nfixed per_runner=24", "\naimd decrease=0.9",
		"best here", "harvest, times the best fixed cap  ≥ 1.25"} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
}

// Settings that nobody published run with all seeds only if they may be their policy's best.
func TestSimulateRacesSettings(t *testing.T) {
	file := smallScenario(t, "", backlog)
	out := must(t, exitOK, "simulate", file, "--policy", "headroom", "--baselines", "--seeds", "2",
		"--json").out
	var got simreport.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Scenarios[0]
	best, partial := map[string]simreport.Policy{}, 0
	for _, p := range s.Policies {
		if p.BestHere {
			best[p.Flow] = p
			if len(p.Runs) != 2 {
				t.Errorf("%s is the best of %d runs, want 2", p.Name, len(p.Runs))
			}
		}
	}
	for _, p := range s.Policies {
		if len(p.Runs) == 2 {
			continue
		}
		partial++
		if p.Score.Mean > best[p.Flow].Score.Mean {
			t.Errorf("%s scores %v on the first seed, and %s %v: it should have run with both",
				p.Name, p.Score.Mean, best[p.Flow].Name, best[p.Flow].Score.Mean)
		}
	}
	for _, published := range []string{"none", "aimd decrease=0.5 start=5 min=5"} {
		i := slices.IndexFunc(s.Policies, func(p simreport.Policy) bool {
			return p.Name == published
		})
		if i < 0 || len(s.Policies[i].Runs) != 2 {
			t.Errorf("%s did not run with both seeds", published)
		}
	}
	if len(best) < 3 || partial < 8 {
		t.Errorf("%d policies have a best setting, and %d settings ran with the first seed only",
			len(best), partial)
	}
}

// Scaling policies are compared only in scenarios with a pool that scales.
func TestSimulateComparesScaling(t *testing.T) {
	scaled := writeFile(t, "scaled.yaml", `name: scaled
horizon: 20m
pool: {profile: llama-8b-a100, replicas: 1, min: 0, max: 3}
interactive: {generator: none}
jobs: [{name: night, kind: bal, lines: 200, window: 15m}]
`)
	got := must(t, exitOK, "simulate", scaled, smallScenario(t, "", ""), "--policy",
		"fixed,per_runner=3", "--baselines").out
	for _, want := range []string{"scaling:static", "scaling:queue_length lines_per_replica=2000",
		"deadlines met"} {
		if strings.Count(got, "\n"+want) == 0 {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	_, second, _ := strings.Cut(got, "\nsmall: 4m00s")
	if second, _, _ = strings.Cut(second, "OVER ALL SCENARIOS"); second == "" ||
		strings.Contains(second, "scaling:") {
		t.Errorf("a pool of fixed size is compared:\n%s", second)
	}
}

func TestSimulateWritesAReport(t *testing.T) {
	file := smallScenario(t, "", "jobs:\n- {name: night, kind: bal, lines: 200, window: 3m}\n")
	out := filepath.Join(t.TempDir(), "report")
	table := must(t, exitOK, "simulate", file, "--policy", "aimd", "--out", out, "--events")
	if again := must(t, exitOK, "simulate", file, "--policy", "aimd"); again.out != table.out {
		t.Errorf("--out and --events have changed the table:\n%s\nwant\n%s", table.out, again.out)
	}
	for name, want := range map[string][]string{
		"report.html": {"<!DOCTYPE html>", "<svg", "night"},
		"result.json": {`"version":1`, `"timeline":{`, `"predictions":[{`},
		"events.log": {"runner replica-0 is up", "start night/0 on replica-0",
			"batch night has ended"},
	} {
		content, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(content), w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
	}
}

func TestSimulateExplains(t *testing.T) {
	got := must(t, exitOK, "simulate", smallScenario(t, "", backlog), "--policy",
		"fixed,per_runner=3", "--explain", "2m").out
	for _, want := range []string{
		"small\n2m00s into the run, the pool model carries 3 batch lines, and may carry 3.\n" +
			"runner_limit: The configured limit of lines per runner is reached.",
		"Job night has no end, without a deadline."} {
		if !strings.Contains(got, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Terms of the policy") {
		t.Errorf("terms are printed that nobody asked for:\n%s", got)
	}
	all := must(t, exitOK, "simulate", smallScenario(t, "", backlog), "--policy", "headroom",
		"--explain", "3m", "--terms").out
	for _, want := range []string{
		"Users feel ", " ms without batch work", "\nTerms of the policy:\n",
		"\n  pool target share = "} {
		if !strings.Contains(all, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, all)
		}
	}
	if got := must(t, exitUsage, "simulate", smallScenario(t, "", backlog), "--explain",
		"noon").errors; !strings.Contains(got, "such as 20m or 90s") {
		t.Errorf("no time: %s", got)
	}
	late := must(t, exitUsage, "simulate", smallScenario(t, "", backlog), "--explain", "40m")
	if !strings.Contains(late.errors, "small around 40m00s: the run ends before, at 4m00s") {
		t.Errorf("after the run: %s%s", late.errors, late.out)
	}
}

func TestSimulateMistakes(t *testing.T) {
	good := smallScenario(t, "", backlog)
	strange := smallScenario(t, "  replica: 2", backlog)
	for _, test := range []struct {
		name   string
		args   []string
		status int
		want   []string
	}{
		{"no file", nil, exitUsage, []string{"requires at least 1 arg"}},
		{"missing file", []string{"/nowhere.yaml"}, exitError,
			[]string{"read scenario: open /nowhere.yaml"}},
		{"unknown key", []string{strange}, exitError,
			[]string{"small.yaml:6: unknown key pool.replica; did you mean pool.replicas?"}},
		{"faults of all files", []string{good, strange, "/nowhere.yaml"}, exitError,
			[]string{"2 errors", "pool.replica", "/nowhere.yaml"}},
		{"unknown setting", []string{good, "--set", "flowcontrol.polcy=fixed"}, exitError,
			[]string{"unknown key flowcontrol.polcy; did you mean flowcontrol.policy?"}},
		{"unknown policy", []string{good, "--set", "flowcontrol.policy=fixd"}, exitError,
			[]string{"flowcontrol.policy", "fixed"}},
		{"no policy", []string{good, "--policy", "fixd"}, exitError,
			[]string{"--policy fixd", "fixed"}},
		{"policy without such a setting", []string{good, "--policy", "fixed,per_rnner=2"},
			exitError, []string{"--policy fixed,per_rnner=2",
				"did you mean flowcontrol.fixed.per_runner?"}},
		{"the same twice", []string{good, "--policy", "aimd", "--policy", "aimd"}, exitUsage,
			[]string{"--policy aimd is given twice"}},
		{"no seeds", []string{good, "--seeds", "0"}, exitUsage, []string{"--seeds is 0"}},
		{"trace without format", []string{good, "--trace", "x.csv"}, exitUsage,
			[]string{"--trace and --format go together"}},
		{"unknown format", []string{good, "--trace", "x.csv", "--format", "xls"}, exitUsage,
			[]string{"--format is \"xls\""}},
		{"events without a directory", []string{good, "--events"}, exitUsage,
			[]string{"--events needs --out DIR"}},
		{"no setting", []string{good, "--set", "x"}, exitUsage,
			[]string{"write --set key.path=value"}},
		{"unknown profile", []string{
			writeFile(
				t, "p.yaml", "name: p\npool: {profile: b300, replicas: 1}\ninteractive: "+
					"{generator: conversation}\n")}, exitUsage, []string{"p.yaml: pool.profile:",
			"neither a file nor a bundled profile"}},
		{"pool too small", []string{
			writeFile(
				t, "c.yaml", "name: c\nhorizon: 5m\npool: {profile: llama-70b-a100, replicas: 1}\n"+
					"interactive: {generator: conversation}\n")}, exitError,
			[]string{"c: without batch work", "raise pool.replicas (now 1)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := must(t, test.status, append([]string{"simulate"}, test.args...)...)
			for _, want := range test.want {
				if !strings.Contains(got.errors, want) {
					t.Errorf("standard error lacks %q:\n%s", want, got.errors)
				}
			}
			if got.out != "" {
				t.Errorf("an error is printed on standard output: %s", got.out)
			}
		})
	}
}
