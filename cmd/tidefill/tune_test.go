package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A cap of 64 harms this pool's users. The search must find a lower one, give evidence, and write a
// file that the daemon reads.
func TestTune(t *testing.T) {
	file := writeFile(t, "tight.yaml", `name: tight
horizon: 4m
pool: {profile: llama-70b-a100, replicas: 1}
interactive: {generator: conversation, rate: 0.3, slo: {ttft: 4s}}
jobs: [{name: night, kind: bal}]
`)
	out := filepath.Join(t.TempDir(), "tuned")
	args := []string{"tune", file, "--set", "flowcontrol.policy=fixed", "--param",
		"flowcontrol.fixed.per_runner=1:96:log", "--seeds", "2", "--budget", "24", "--out", out}
	got := must(t, exitOK, args...)
	patch, err := os.ReadFile(filepath.Join(out, "patch.yaml"))
	if err != nil {
		t.Fatalf("%v\n%s", err, got.out)
	}
	if string(patch) != got.out || !strings.Contains(got.out, "(held back)") ||
		!strings.Contains(got.out, "flowcontrol:\n  fixed:\n    per_runner: ") {
		t.Errorf("printed\n%s\nwritten\n%s", got.out, patch)
	}
	tuned := simulated(t, file, "--seed", "3", "--policy", "fixed", "--config", filepath.Join(out,
		"patch.yaml")).Policies[0]
	if tuned.Loss.Worst > 3 || tuned.Runs[0].Batch.Useful == 0 {
		t.Errorf("with the patch: loss %v, %d tokens", tuned.Loss.Worst, tuned.Runs[0].Batch.Useful)
	}
	if again := must(t, exitOK, args...); again.out != got.out {
		t.Errorf("the same search gives\n%s\nand\n%s", got.out, again.out)
	}
}

func TestTuneWithoutImprovement(t *testing.T) {
	out := filepath.Join(t.TempDir(), "tuned")
	got := must(t, exitOK, "tune", smallScenario(t, "", backlog), "--set",
		"flowcontrol.policy=fixed", "--param", "flowcontrol.aimd.start=1:20", "--seeds", "2",
		"--budget", "8", "--out", out)
	// It loses more than a point on a seed, so it is not to be kept.
	if !strings.Contains(got.out, "flowcontrol.aimd.start makes no difference") ||
		strings.Contains(got.out, "Keep the configuration") || strings.Contains(got.out,
		"\nflowcontrol:") {
		t.Errorf("a key without effect is tuned:\n%s", got.out)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a patch is written")
	}
}

func TestTuneMistakes(t *testing.T) {
	file := smallScenario(t, "", backlog)
	for _, test := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"nothing to search", nil, exitUsage, "give --param KEY=LOW:HIGH"},
		{"no range", []string{"--param", "flowcontrol.fixed.per_runner=3"}, exitUsage,
			"write KEY=LOW:HIGH"},
		{"range down", []string{"--param", "flowcontrol.fixed.per_runner=9:3"}, exitUsage,
			"the range must go up"},
		{"logarithm of zero", []string{"--param", "flowcontrol.fixed.per_pool=0:3:log"},
			exitUsage, "from above 0"},
		{"mixed units", []string{"--param", "flowcontrol.slo.ttft=1:3s"}, exitUsage,
			"one bound is a duration"},
		{"no number", []string{"--param", "flowcontrol.fixed.per_runner=a:b"}, exitUsage,
			"neither a number nor a duration"},
		{"unknown key", []string{"--param", "flowcontrol.fixed.per_rnner=1:3"}, exitError,
			"did you mean flowcontrol.fixed.per_runner?"},
		{"a bound that is refused", []string{"--param", "flowcontrol.fixed.per_runner=0:3"},
			exitError, "must be at least 1"},
		{"twice", []string{"--param", "flowcontrol.fixed.per_runner=1:3", "--param",
			"flowcontrol.fixed.per_runner=1:4"}, exitUsage, "given twice"},
		{"one seed", []string{"--param", "flowcontrol.fixed.per_runner=1:3", "--seeds", "1"},
			exitUsage, "may be luck"},
		{"no budget", []string{"--param", "flowcontrol.fixed.per_runner=1:3", "--budget", "5"},
			exitUsage, "--budget is 5"},
	} {
		if got := must(t, test.status, append([]string{"tune", file},
			test.args...)...); !strings.Contains(got.errors, test.want) || got.out != "" {
			t.Errorf("%s: %s%s, want %q", test.name, got.errors, got.out, test.want)
		}
	}
}
