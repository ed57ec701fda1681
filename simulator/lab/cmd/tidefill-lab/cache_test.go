package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const backlog = "jobs:\n- {name: night, kind: bal}\n"

// searchableScenario returns a scenario file for which oracles finish soon, and a function that
// writes it with a rate of interactive traffic.
func searchableScenario(t *testing.T) (file string, write func(rate string)) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "small.yaml")
	return file, func(rate string) {
		content := "name: small\nhorizon: 3m\npool: {profile: llama-8b-a100, replicas: 1}\n" +
			"interactive: {generator: conversation, rate: " + rate + "}\n" + backlog
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var simulatedHours = regexp.MustCompile(`([0-9.]+) simulated hours in`)

// runsOf returns the number of runs of a scenario of three minutes, without those that check cached
// results.
func runsOf(t *testing.T, got outcome) int {
	t.Helper()
	sum := 0.0
	for _, match := range simulatedHours.FindAllStringSubmatch(got.errors, -1) {
		hours, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += hours
	}
	return int(sum*20 + 0.5)
}

// Cached results of oracles are used, and stale ones are not.
func TestSimulateCachesOracles(t *testing.T) {
	file, write := searchableScenario(t)
	write("1")
	cache := filepath.Join(t.TempDir(), "cache")
	simulate := func(more ...string) outcome {
		return must(t, exitOK, append([]string{"simulate", file, "--policy", "headroom",
			"--oracles",
			"--oracle-runs", "3", "--oracle-results", cache}, more...)...)
	}
	const quietAndPolicy, each = 2, 3
	first := simulate()
	if runs := runsOf(t, first); runs != quietAndPolicy+2*each {
		t.Fatalf("%d runs, want all", runs)
	}
	if again := simulate(); runsOf(t, again) != quietAndPolicy || again.out != first.out {
		t.Errorf("the second time, after %d runs:\n%s\nand the first time\n%s", runsOf(t, again),
			again.out,
			first.out)
	}
	if other := simulate("--set", "flowcontrol.slo.late=0.007"); runsOf(t,
		other) != quietAndPolicy+each {
		t.Errorf("another policy: %d runs, want those of G again", runsOf(t, other))
	}
	if other := simulate("--seed", "2"); runsOf(t, other) != quietAndPolicy+2*each {
		t.Errorf("another seed: %d runs, want all", runsOf(t, other))
	}
	write("2")
	if other := simulate(); runsOf(t, other) != quietAndPolicy+2*each || other.out == first.out {
		t.Errorf("another scenario: %d runs, want all", runsOf(t, other))
	}
	write("1")
	if runs := runsOf(t, simulate()); runs != quietAndPolicy+2*each {
		t.Errorf("the first scenario, after another replaced it: %d runs, want all", runs)
	}

	// After a change of the engines, a run gives other figures than the cached ones. The test
	// changes the cached figures instead.
	entryFile := filepath.Join(cache, "small-seed1-e.json")
	content, err := os.ReadFile(entryFile)
	if err != nil {
		t.Fatal(err)
	}
	var entry map[string]any
	if err := json.Unmarshal(content, &entry); err != nil {
		t.Fatal(err)
	}
	bound := entry["found"].(map[string]any)["Bound"].(map[string]any)
	bound["useful_tokens"] = bound["useful_tokens"].(float64) + 1
	if content, err = json.Marshal(entry); err != nil {
		t.Fatal(err)
	}
	for name, stale := range map[string][]byte{"of another engine": content,
		"cut off": content[:len(content)/2]} {
		if err := os.WriteFile(entryFile, stale, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := simulate(); runsOf(t, got) != quietAndPolicy+each || got.out != first.out {
			t.Errorf("a cached result %s: %d runs, want those of E again, and\n%s\ngot\n%s", name,
				runsOf(t, got), first.out, got.out)
		}
	}
}

// The configuration that reaches G's bound reproduces it.
func TestSimulateWritesReplays(t *testing.T) {
	file, write := searchableScenario(t)
	write("2")
	out := filepath.Join(t.TempDir(), "report")
	must(t, exitOK, "simulate", file, "--policy", "headroom", "--set",
		"flowcontrol.headroom.per_runner=300",
		"--oracles", "--oracle-runs", "9", "--out", out)
	config := filepath.Join(out, "replay", "small-seed1-g.yaml")
	content, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	var again struct {
		Scenarios []struct {
			Policies []struct {
				Runs []struct {
					Batch struct {
						Useful int `json:"useful_tokens"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(must(t, exitOK, "simulate", "--json", file, "--config",
		config).out), &again); err != nil {
		t.Fatal(err)
	}
	if head := fmt.Sprintf("# Oracle G of small, seed 1: %d useful tokens",
		again.Scenarios[0].Policies[0].Runs[0].Batch.Useful); !strings.HasPrefix(string(content),
		head) || !strings.Contains(string(content), "per_runner: 300") {
		t.Errorf("the replay starts with %q, want\n%s", head, content)
	}
}
