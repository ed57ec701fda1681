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

// searchedStory is one on which oracles are soon done. Its folder stays the same whatever is
// written into it.
func searchedStory(t *testing.T) (file string, write func(rate string)) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "small.yaml")
	return file, func(rate string) {
		content := "name: small\nhorizon: 3m\npool: {profile: llama-8b-a100, replicas: 1}\ninteractive: {generator: conversation, rate: " + rate + "}\n" + backlog
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var simulatedHours = regexp.MustCompile(`([0-9.]+) simulated hours in`)

// runsOf is how often a story of three minutes was told, but for what was told again to be sure of
// it.
func runsOf(t *testing.T, got outcome) int {
	t.Helper()
	hours, err := strconv.ParseFloat(simulatedHours.FindStringSubmatch(got.errors)[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(hours*20 + 0.5)
}

// What oracles found is found again, and nothing that is stale is.
func TestSimulateKeepsWhatOraclesFound(t *testing.T) {
	file, write := searchedStory(t)
	write("1")
	shelf := filepath.Join(t.TempDir(), "found")
	ask := func(more ...string) outcome {
		return must(t, exitOK, append([]string{"simulate", file, "--policy", "headroom", "--oracles",
			"--oracle-runs", "3", "--oracle-results", shelf}, more...)...)
	}
	const quietAndPolicy, each = 2, 3
	first := ask()
	if runs := runsOf(t, first); runs != quietAndPolicy+2*each {
		t.Fatalf("%d runs, want all", runs)
	}
	if again := ask(); runsOf(t, again) != quietAndPolicy || again.out != first.out {
		t.Errorf("asked again after %d runs:\n%s\nand at first\n%s", runsOf(t, again), again.out,
			first.out)
	}
	if other := ask("--set", "flowcontrol.slo.late=0.007"); runsOf(t,
		other) != quietAndPolicy+each {
		t.Errorf("another policy: %d runs, want those of G anew", runsOf(t, other))
	}
	if other := ask("--seed", "2"); runsOf(t, other) != quietAndPolicy+2*each {
		t.Errorf("another seed: %d runs, want all", runsOf(t, other))
	}
	write("2")
	if other := ask(); runsOf(t, other) != quietAndPolicy+2*each || other.out == first.out {
		t.Errorf("another story: %d runs, want all", runsOf(t, other))
	}
	write("1")
	if runs := runsOf(t, ask()); runs != quietAndPolicy+2*each {
		t.Errorf("the first story, after another took its place: %d runs, want all", runs)
	}

	// Engines that have changed give other figures to what is kept; here the figures do.
	kept := filepath.Join(shelf, "small-seed1-e.json")
	content, err := os.ReadFile(kept)
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
		if err := os.WriteFile(kept, stale, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ask(); runsOf(t, got) != quietAndPolicy+each || got.out != first.out {
			t.Errorf("what is kept is %s: %d runs, want those of E anew, and\n%s\ngot\n%s", name,
				runsOf(t, got), first.out, got.out)
		}
	}
}

// What attains G's bound can be told by anyone.
func TestSimulateWritesWhatAttainsTheGatewaysBound(t *testing.T) {
	file, write := searchedStory(t)
	write("2")
	out := filepath.Join(t.TempDir(), "report")
	must(t, exitOK, "simulate", file, "--policy", "headroom", "--set", "flowcontrol.headroom.start=3",
		"--oracles", "--oracle-runs", "9", "--out", out)
	config := filepath.Join(out, "replay", "small-seed1-g.yaml")
	content, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	again := simulated(t, file, "--config", config)
	if head := fmt.Sprintf("# Oracle G of small, seed 1: %d useful tokens",
		again.Policies[0].Runs[0].Batch.Useful); !strings.HasPrefix(string(content), head) ||
		!strings.Contains(string(content), "start: 3") {
		t.Errorf("told again, it begins %q, and stands in\n%s", head, content)
	}
}
