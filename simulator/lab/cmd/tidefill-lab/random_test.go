package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator/lab/randompools"
)

// The command that the report prints must give the same pool the same result.
func TestRandomPoolsCanBeRepeated(t *testing.T) {
	t.Setenv(tracesVariable, "")
	judge := func(args ...string) (r randompools.Report) {
		t.Helper()
		got := command(t, append([]string{"random", "--horizon", "6m", "--family", "idle",
			"--seed", "2", "--policy", "fixed,per_runner=8", "--no-reference", "--json"},
			args...)...)
		if err := json.Unmarshal([]byte(got.out), &r); err != nil {
			t.Fatalf("%v: %s", err, got.errors)
		}
		return r
	}
	all := judge("3")
	if len(all.Records) != 3 || !strings.HasSuffix(all.Command, "tidefill-lab random "+
		"--seed 2 --family idle --horizon 6m --policy fixed,per_runner=8 --traces none --only") {
		t.Fatalf("%d pools, repeated by %s", len(all.Records), all.Command)
	}
	one := judge("--only", "3")
	if one.Records[0].Outcome != all.Records[2].Outcome {
		t.Errorf("alone pool 3 has %+v, among others %+v", one.Records[0].Outcome,
			all.Records[2].Outcome)
	}
}

func TestWrittenRandomPoolSaysHowToRunIt(t *testing.T) {
	t.Setenv(tracesVariable, "")
	dir := t.TempDir()
	if got := command(t, "random", "write", dir, "--horizon", "6m", "--only", "3", "--policy",
		"fixed,per_runner=8", "--set", "flowcontrol.slo.tpot=90ms"); got.status != exitOK {
		t.Fatal(got.errors)
	}
	file := filepath.Join(dir, "random-any-1-3.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "# tidefill simulate " + file + " --seed 100003 --policy fixed,per_runner=8 --set " +
		"'flowcontrol.slo.tpot=90ms'\n"
	if !strings.HasPrefix(string(content), want) {
		t.Errorf("%s begins otherwise than %q:\n%s", file, want, content)
	}
}

// Traces from the environment change the pools, so the command must name them.
func TestTheCommandThatRepeatsAPoolIsComplete(t *testing.T) {
	t.Setenv(tracesVariable, "/my traces")
	r := randomPools{seed: 3, horizon: defaultHorizon, family: "any", metrics: "1s"}
	r.Config, r.Names = "it's.yaml", []string{"aimd,x=$y"}
	const want = `tidefill-lab random --seed 3 --metrics 1s --policy 'aimd,x=$y' ` +
		`--config 'it'\''s.yaml' --traces '/my traces' --only`
	if got := r.repeat(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A study without traces stays one where the variable names some.
	for _, given := range []struct{ traces, variable string }{{"none", "/my traces"}, {"", ""}} {
		t.Setenv(tracesVariable, given.variable)
		r := randomPools{seed: 3, horizon: defaultHorizon, family: "any", traces: given.traces}
		const want = `tidefill-lab random --seed 3 --traces none --only`
		if got := r.repeat(); got != want || r.tracesDir() != "" {
			t.Errorf("%+v: got %s with traces from %q, want %s with none", given, got,
				r.tracesDir(), want)
		}
	}
}

func TestMissingTracesNameTheVariable(t *testing.T) {
	t.Setenv(tracesVariable, filepath.Join(t.TempDir(), "none"))
	got := command(t, "random", "1")
	if got.status != exitError || !strings.Contains(got.errors, "$TIDEFILL_TRACES: traces: open") {
		t.Errorf("status %d, %s", got.status, got.errors)
	}
}

func TestADirectoryWithoutTracesIsRefused(t *testing.T) {
	got := must(t, exitError, "random", "2", "--traces", t.TempDir())
	if !strings.Contains(got.errors, "holds no file whose name begins with azure") {
		t.Error(got.errors)
	}
}

func TestRandomPoolsMistakes(t *testing.T) {
	t.Setenv(tracesVariable, "")
	for given, want := range map[string]string{
		"--only 1,2,1":              "--only has 1 twice",
		"--only 0":                  "--only has 0",
		"2 --family sunny":          `unknown family "sunny"`,
		"2 --horizon 1m":            "--horizon is \"1m\"; write a time of at least 5m",
		"2 s1.yaml":                 "accepts at most 1 arg",
		"2 --metrics 1":             `--metrics is "1"; write a time of 100ms to 1h0m0s, such as 1s, or off`,
		"2 --metrics 1ms":           `--metrics is "1ms"`,
		"":                          "give a number of pools, or --only with their numbers",
		"2 --only 1":                "give a number of pools, or --only with their numbers",
		"0":                         `the number is "0", want 1 to 10000`,
		"2 --policy aimd":           "random takes one --policy; there are 2",
		"2 --events":                "unknown flag: --events",
		"explain 40m 2":             "the run ends before, at 30m00s",
		"explain noon 2":            "such as 20m or 90s",
		"minimize 0":                "--only has 0; numbers begin at 1",
		"minimize 3 --no-reference": "unknown flag: --no-reference",
	} {
		got := must(t, exitUsage, append([]string{"random", "--policy",
			"fixed,per_runner=8"}, strings.Fields(given)...)...)
		if !strings.Contains(got.errors, want) || got.out != "" {
			t.Errorf("%s: want %q, got %s%s", given, want, got.errors, got.out)
		}
	}
}

func TestAPoolThatFailsGivesAReportAndAnErrorStatus(t *testing.T) {
	t.Setenv(tracesVariable, "")
	dir := t.TempDir()
	args := []string{"random", "2", "--horizon", "6m", "--family", "idle", "--seed",
		"2", "--policy", "fixed,per_runner=8", "--no-reference", "--out", dir}
	must(t, exitOK, args...)
	kept := filepath.Join(dir, "pools.jsonl")
	content, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	first := true
	broken := regexp.MustCompile(`"Replicas":[0-9]+`).ReplaceAllFunc(content,
		func(replicas []byte) []byte {
			if !first {
				return replicas
			}
			first = false
			return []byte(`"Replicas":-1`)
		})
	if err := os.WriteFile(kept, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	got := must(t, exitError, args...)
	if !strings.Contains(got.out, "on 1 random pools") || !strings.Contains(got.out,
		"pool.replicas is -1") || !strings.Contains(got.errors, "1 of 2 pools failed") {
		t.Errorf("%s%s", got.out, got.errors)
	}
}
