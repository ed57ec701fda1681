package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/live"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// TestLiveScenariosOpen opens the scenarios that the documentation names.
func TestLiveScenariosOpen(t *testing.T) {
	files, err := filepath.Glob("../../live/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		b := liveBench{seed: 1}
		if err := b.open(file); err != nil {
			t.Error(err)
		} else if err := live.Check(b.scenario.Setup); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestLive runs some seconds of a scenario with a policy: users are answered, and batch lines too,
// over a restart of the daemon.
func TestLive(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		if prometheus, err = filepath.Abs("../../../../bin/prometheus"); err != nil {
			t.Fatal(err)
		}
	}
	out := must(t, exitOK, "live", "--for", "12s", "--policies", "fixed,per_runner=8",
		"--simulate=false", "--json", "--backlog", "2000", "--prometheus", prometheus, "--scrape",
		"1s", "--kill-daemon", "6s", "../../live/testdata/short.yaml").out
	var runs []liveRun
	if err := json.Unmarshal([]byte(out), &runs); err != nil {
		t.Fatal(err)
	}
	if len(runs) != 2 {
		t.Fatalf("%d runs, want one without batch work and one of the policy", len(runs))
	}
	for _, r := range runs {
		if e := r.Live.Engines; e.Iterations < 50 || e.Mean < 20 || e.LateMax < e.LateP99 {
			t.Errorf("%q: engines %+v", r.Policy, e)
		}
		if o := r.Live; o.Requests < 10 || o.Failed > 0 || o.TPOT.P50 < 20 {
			t.Errorf("%q: %+v", r.Policy, o)
		}
	}
	if all := runs[1].Recoveries; len(all) != 1 || all[0].From != 6 || all[0].Before < 1 {
		t.Errorf("recoveries %+v, want that of the killed daemon", all)
	}
	alone, batch := runs[0].Live, runs[1].Live
	if alone.Lines > 0 || batch.Lines < 20 || batch.MeanInFlight < 8 {
		t.Errorf("%v lines without batch work, %v with, %v in flight", alone.Lines, batch.Lines,
			batch.MeanInFlight)
	}
}

// TestPrediction simulates a live run several times, which differ, and prints their range.
func TestPrediction(t *testing.T) {
	b := liveBench{horizon: 3 * time.Minute, seed: 1}
	if err := b.open("../../live/scenarios/refused.yaml"); err != nil {
		t.Fatal(err)
	}
	candidate, err := compare.Configuration{}.Candidate("headroom")
	if err != nil {
		t.Fatal(err)
	}
	setup := b.scenario.Setup
	setup.Policy = candidate.Policy
	predicted, err := predict(t.Context(), setup)
	if err != nil {
		t.Fatal(err)
	}
	kill := live.Fault{Name: "daemon killed", From: time.Minute, To: time.Minute}
	run := liveRun{Live: live.Outcome{Trace: live.Trace{End: 3 * time.Minute}},
		Predicted: predicted}
	if all := recoveries([]live.Fault{kill}, run, live.Outcome{}); len(all) != 1 ||
		len(all[0].Predicted) != simulations || all[0].Predicted[0].Seconds == nil {
		t.Errorf("%+v, want a recovery of each simulation", all)
	}
	tokens := func(r *simulator.Result) float64 { return float64(r.Batch.Useful) }
	least, most := predicted.span(tokens)
	if middle := predicted.median(tokens); len(predicted) != simulations || least >= most ||
		middle < least || middle > most {
		t.Errorf("%d simulations, of %v to %v tokens, %v in the middle", len(predicted), least,
			most, middle)
	}
	if edge := edgeOf(3 * time.Minute); edge != b.config.Edge || edge != scenario.Edge {
		t.Errorf("%v of both ends are not counted live, %v in simulations", edge, scenario.Edge)
	}
	table := bytes.Buffer{}
	runs := []liveRun{{Policy: "headroom", Predicted: predicted}}
	if err := writeLiveTable(&table, runs); err != nil ||
		strings.Count(table.String(), "\n") != 4 {
		t.Errorf("%v, want a head and three rows:\n%s", err, &table)
	}
}

// TestLateEnginesAreWarnedOf: times of a machine that is too slow are not those of the engines.
func TestLateEnginesAreWarnedOf(t *testing.T) {
	runs := []liveRun{{}, {Policy: "headroom"}, {Policy: "aimd"}}
	runs[1].Live.Engines = emulator.Timing{Iterations: 100, Mean: 40, LateP50: 0.2, LateP99: 2.1}
	runs[2].Live.Engines = emulator.Timing{Iterations: 100, Mean: 40, LateP50: 0.2, LateP99: 1.9}
	table := bytes.Buffer{}
	if err := writeLiveTable(&table, runs); err != nil {
		t.Fatal(err)
	}
	_, warnings, _ := strings.Cut(table.String(), "warning: ")
	if !strings.HasPrefix(warnings, "headroom: ") || strings.Contains(warnings, "warning: ") ||
		!strings.Contains(warnings, "2.1 ms") {
		t.Errorf("want a warning of headroom alone:\n%s", &table)
	}
}

// TestRecoveriesArePrintedBesideTheirPrediction prints a table for the policy with faults.
func TestRecoveriesArePrintedBesideTheirPrediction(t *testing.T) {
	seconds := 12.0
	r := recovered{Recovery: live.Recovery{Fault: "gateway absent", From: 60, To: 120, Before: 40,
		Fewest: 3, Seconds: &seconds, Awaited: 45,
		During: live.Loss{Requests: 30, Points: 6.67}}}
	for want, all := range map[string][]simulatedRecovery{
		"":                {},
		"30 s":            {{9, nil}, {9, new(20.0)}, {9, new(30.0)}},
		"20 s":            {{0, nil}, {9, new(20.0)}, {9, new(10.0)}},
		"no lines before": {{0, nil}, {0.5, nil}},
		"not within 45s":  {{9, nil}, {9, new(20.0)}, {9, nil}},
	} {
		r.Predicted = all
		if got := r.predicted(); got != want {
			t.Errorf("predicted %q, want %q", got, want)
		}
	}
	r.Predicted = []simulatedRecovery{{9, nil}}
	table := bytes.Buffer{}
	err := writeRecoveries(&table, []liveRun{{}, {Policy: "headroom",
		Recoveries: []recovered{r, {Recovery: live.Recovery{Fault: "reset", Awaited: 90,
			Before: 2}}, {Recovery: live.Recovery{Before: 2}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"headroom", "1m0s, 2m0s", "6.67", "12 s", "not within 45s",
		"not within 1m30s", "overlaps the next"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("there is no %q:\n%s", want, &table)
		}
	}
}
