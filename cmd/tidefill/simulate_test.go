package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallScenario writes a scenario of a few minutes into a folder of its own; extra keys of its pool and what follows come after.
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
	first := must(t, exitOK, "simulate", file)
	for _, want := range []string{
		"small: 0.06667 h, 1 replica of llama-8b-a100, not calibrated; flow control aimd, order slack, seed 1", "attainment %", "useful tokens", "night  bal   endless",
	} {
		if !strings.Contains(first.out, want) {
			t.Errorf("the table lacks %q:\n%s", want, first.out)
		}
	}
	if !strings.Contains(first.errors, "small: 0.133 simulated hours in ") || strings.Contains(first.out, "simulated hours") {
		t.Errorf("speed belongs on standard error:\n%s", first.errors)
	}
	if again := must(t, exitOK, "simulate", file); again.out != first.out {
		t.Errorf("the same seed told\n%s\nand\n%s", first.out, again.out)
	}
	if other := must(t, exitOK, "simulate", file, "--seed", "2"); other.out == first.out {
		t.Error("another seed told the same")
	}
	if both := must(t, exitOK, "simulate", file, file); both.out != first.out+"\n"+first.out {
		t.Errorf("two scenarios told\n%s", both.out)
	}
}

// figures is what a script reads.
type figures struct {
	Profile struct {
		Name       string
		Calibrated bool
	}
	Flow  string  `json:"flowcontrol_policy"`
	Loss  float64 `json:"loss_points"`
	Batch struct {
		Lines  int
		Useful int64 `json:"useful_tokens"`
	}
	NoBatch struct{ Requests int } `json:"no_batch"`
}

func simulated(t *testing.T, args ...string) figures {
	t.Helper()
	var f figures
	if err := json.Unmarshal([]byte(must(t, exitOK, append([]string{"simulate", "--json"}, args...)...).out), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSimulateTakesTheDaemonsPolicies(t *testing.T) {
	file := smallScenario(t, "", backlog)
	daemon := writeFile(t, "tidefill.yaml", "flowcontrol: {policy: fixed, fixed: {per_runner: 2}}\n")
	few, many := simulated(t, file, "--config", daemon), simulated(t, file, "--config", daemon, "--set", "flowcontrol.fixed.per_runner=20")
	if few.Flow != "fixed" || few.Batch.Lines == 0 || many.Batch.Useful < 4*few.Batch.Useful {
		t.Errorf("2 lines per runner: %+v\n20: %+v", few, many)
	}
	if few.Profile.Name != "llama-8b-a100" || few.Profile.Calibrated {
		t.Errorf("profile %+v", few.Profile)
	}
}

func TestSimulateReadsFilesBesideTheScenario(t *testing.T) {
	file := writeFile(t, "own.yaml", `name: own
horizon: 3m
pool: {profile: mine.yaml, replicas: 1}
interactive: {trace: day.csv, format: csv}
`)
	place := func(name, content string) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place("mine.yaml", must(t, exitOK, "profile", "show", "llama-70b-h100").out)
	place("day.csv", "t_s,input_tokens,output_tokens\n0,10,10\n70,100,20\n90,200,20\n300,10,10\n")
	if f := simulated(t, file); f.NoBatch.Requests != 2 || f.Profile.Name != "llama-70b-h100" || !f.Profile.Calibrated || f.Loss != 0 {
		t.Errorf("%+v", f)
	}
	place("day.csv", "t_s,input_tokens,output_tokens\n0,10,10\n70,100,20\n60,200,20\n300,10,10\n")
	if got := must(t, exitError, "simulate", file).errors; !strings.Contains(got, "own.yaml: interactive.trace: day.csv:4:") {
		t.Errorf("time goes back: %s", got)
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
		{"missing file", []string{"/nowhere.yaml"}, exitError, []string{"read scenario: open /nowhere.yaml"}},
		{"unknown key", []string{strange}, exitError, []string{"small.yaml:6: unknown key pool.replica; did you mean pool.replicas?"}},
		{"faults of all files", []string{good, strange, "/nowhere.yaml"}, exitError, []string{"2 faults", "pool.replica", "/nowhere.yaml"}},
		{"unknown setting", []string{good, "--set", "flowcontrol.polcy=fixed"}, exitError, []string{"unknown key flowcontrol.polcy; did you mean flowcontrol.policy?"}},
		{"unknown policy", []string{good, "--set", "flowcontrol.policy=fixd"}, exitError, []string{"flowcontrol.policy", "fixed"}},
		{"no setting", []string{good, "--set", "x"}, exitUsage, []string{"write --set key.path=value"}},
		{"unknown profile", []string{writeFile(t, "p.yaml", "name: p\npool: {profile: b300, replicas: 1}\ninteractive: {generator: conversation}\n")}, exitUsage, []string{"p.yaml: pool.profile:", "neither a file nor a bundled profile"}},
		{"pool too small", []string{writeFile(t, "c.yaml", "name: c\nhorizon: 5m\npool: {profile: llama-70b-a100, replicas: 1}\ninteractive: {generator: conversation}\n")}, exitError, []string{"c: without batch work", "raise pool.replicas (now 1)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := must(t, test.status, append([]string{"simulate"}, test.args...)...)
			for _, want := range test.want {
				if !strings.Contains(got.errors, want) {
					t.Errorf("standard error lacks %q:\n%s", want, got.errors)
				}
			}
			if got.out != "" {
				t.Errorf("standard output is not for faults: %s", got.out)
			}
		})
	}
}
