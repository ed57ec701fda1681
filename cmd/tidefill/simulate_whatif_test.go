package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// --what-if begins with a sentence, then compares the figures of the scenario as given and changed.
func TestSimulateWhatIf(t *testing.T) {
	file := smallScenario(t, "", "jobs:\n- {name: night, kind: bal}\n"+
		"- {name: due, kind: bal, lines: 20, window: 3m}\n")
	args := []string{"simulate", file, "--policy", "fixed,per_runner=4", "--what-if",
		"replicas=+1,pool.price=2"}
	got := must(t, exitOK, args...).out
	first, table, _ := strings.Cut(got, "\n")
	for _, part := range []string{
		"With pool.replicas 2 instead of 1 and pool.price 2 instead of 0, ",
		" of interactive requests would be within their objectives; batch work with " +
			"fixed per_runner=4 would cost users ", "(1 allowed), and harvest ", " instead of ",
		"; 1 of 1 deadline would be met, as now."} {
		if !strings.Contains(first, part) {
			t.Errorf("the sentence lacks %q: %s", part, first)
		}
	}
	for _, row := range []string{"FIGURE AS GIVEN CHANGED DIFFERENCE fixed per_runner=4",
		"replica hours 0.1 0.1 +0.1", "cost 0.00 0.27 +0.27", "deadlines met 1.0 1.0 =",
		"loss in the worst 5 minutes, points "} {
		if !strings.Contains(strings.Join(strings.Fields(table), " "), row) {
			t.Errorf("the table lacks %q:\n%s", row, table)
		}
	}
	if strings.Contains(got, "NO BATCH") {
		t.Errorf("the whole report is printed:\n%s", got)
	}
	var result struct {
		WhatIf      []struct{ Key, From, To string } `json:"what_if"`
		Differences []struct {
			Sentences []string
			Policies  []struct {
				Figures []struct {
					Name           string
					Given, Changed float64
				}
			}
		}
		Report struct{ Scenarios []struct{ Replicas int } }
	}
	if err := json.Unmarshal([]byte(must(t, exitOK, append(args, "--json")...).out),
		&result); err != nil {
		t.Fatal(err)
	}
	if w := result.WhatIf; len(w) != 2 || w[0].Key != "pool.replicas" || w[0].To != "2" ||
		result.Differences[0].Sentences[0] != first {
		t.Errorf("as JSON: %+v", result)
	}
	if s := result.Report.Scenarios; len(s) != 2 || s[0].Replicas != 1 || s[1].Replicas != 2 {
		t.Errorf("the scenarios are %+v", s)
	}
}

// A pool that misses its objectives even without batch work is what the question is about.
func TestSimulateWhatIfThePoolIsTooSmall(t *testing.T) {
	got := must(t, exitOK, "simulate", smallScenario(t, "", backlog), "--policy", "none",
		"--what-if", "rate=40x").out
	if want := "even without batch work only "; !strings.Contains(got, want) ||
		!strings.Contains(got, "and the scenario asks for 99.0 %.") {
		t.Errorf("it lacks %q:\n%s", want, got)
	}
}
