package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

var simulatedHours = regexp.MustCompile(`([0-9.]+) simulated hours in`)

// runsOf returns the number of runs of a scenario of three minutes.
func runsOf(t *testing.T, got outcome) int {
	t.Helper()
	hours, err := strconv.ParseFloat(simulatedHours.FindStringSubmatch(got.errors)[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(hours*20 + 0.5)
}

// A command that was stopped continues: runs that --out keeps are not repeated, and the report is
// the same.
func TestSimulateContinues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "small.yaml")
	write := func(rate string) {
		content := "name: small\nhorizon: 3m\npool: {profile: llama-8b-a100, replicas: 1}\n" +
			"interactive: {generator: conversation, rate: " + rate + "}\n" + backlog
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("0.3")
	dir := filepath.Join(t.TempDir(), "report")
	simulate := func(more ...string) outcome {
		return must(t, exitOK, append([]string{"simulate", file, "--policy", "headroom",
			"--policy", "fixed,per_runner=4", "--seeds", "2", "--out", dir}, more...)...)
	}
	const all, charted = 6, 3 // the first seed runs again, for the charts
	first := simulate()
	if runs := runsOf(t, first); runs != all {
		t.Fatalf("%d runs, want all", runs)
	}
	again := simulate()
	if runsOf(t, again) != charted || again.out != first.out {
		t.Errorf("the second time, after %d runs:\n%s\nand the first time\n%s", runsOf(t, again),
			again.out, first.out)
	}
	if other := simulate("--set", "flowcontrol.slo.late=0.007"); runsOf(t, other) != all {
		t.Errorf("other settings: %d runs, want all", runsOf(t, other))
	}
	write("0.4")
	if other := simulate(); runsOf(t, other) != all || other.out == first.out {
		t.Errorf("another scenario: %d runs, want all", runsOf(t, other))
	}

	write("0.3")
	kept := filepath.Join(dir, "runs", "batch.jsonl")
	content, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	stopped := bytes.Join(lines[:2], nil) // a line break and the first run
	if err := os.WriteFile(kept, append(stopped, lines[3][:50]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if rest := simulate(); runsOf(t, rest) != charted+1 || rest.out != first.out {
		t.Errorf("after a stop: %d runs, want the second run of batch work again, and\n%s\ngot\n%s",
			runsOf(t, rest), first.out, rest.out)
	}
}
