package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The report of a simulation is one page for every screen: on a phone it is no wider than the
// screen, its wide tables scroll on their own, and what charts say can be read.
func TestSimulationReportOnAPhone(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(scenario, []byte(`name: small
horizon: 4m
pool: {profile: llama-8b-a100, replicas: 1}
interactive: {generator: conversation, rate: 1}
jobs:
- {name: night, kind: bal}
- {name: due, kind: bal, lines: 20, window: 3m}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), Binary(t), "simulate", scenario, "--policy",
		"headroom", "--policy", "fixed,per_runner=18", "--policy", "aimd", "--out",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("simulate: %v\n%s", err, said)
	}
	b := NewBrowser(t)
	page := "file://" + filepath.Join(dir, "report.html")
	b.Resize(t, 390, 844)
	b.Open(t, page)
	for what, test := range map[string][2]string{
		"the width of the page": {"document.documentElement.scrollWidth", "390"},
		"a table that scrolls": {"[...document.querySelectorAll('.wide')].some((e) => " +
			"e.scrollWidth > e.clientWidth)", "true"},
		"text that is too small": {"[...document.querySelectorAll('svg text')].filter((e) => " +
			"e.getBoundingClientRect().height < 11).length", "0"},
	} {
		if got := b.Evaluate(t, test[0]); got != test[1] {
			t.Errorf("%s: %s, want %s", what, got, test[1])
		}
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
	for _, url := range b.Requests() {
		if url != page {
			t.Errorf("the page requested %s", url)
		}
	}
}
