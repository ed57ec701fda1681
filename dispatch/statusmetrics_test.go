package dispatch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	_ "github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/store"
)

// gathered returns the gauges of m whose names begin with a prefix, as "name label… value".
func gathered(t *testing.T, m *statusMetrics, prefix string) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		name, matches := strings.CutPrefix(f.GetName(), prefix)
		for _, g := range f.Metric {
			if matches {
				labels := map[string]string{}
				for _, l := range g.Label {
					labels[l.GetName()] = l.GetValue()
				}
				var values []string
				for _, name := range slices.Sorted(maps.Keys(labels)) {
					values = append(values, labels[name])
				}
				all = append(all, fmt.Sprintf("%s %s %g", name, strings.Join(values, " "),
					g.Gauge.GetValue()))
			}
		}
	}
	return all
}

func TestStatusIsShownAsMetrics(t *testing.T) {
	var m statusMetrics
	pools := []plan.PoolStatus{{
		ID: "m,n", InFlight: 7, Limit: 9, Reason: plan.AtLimit,
		Runners: []plan.RunnerStatus{
			{ID: "a", InFlight: 5, Limit: 6, Prefilling: 300, Granted: flowcontrol.ReasonGrowing},
			{ID: "b", InFlight: 2, Limit: 3, Open: true, Prompt: flowcontrol.NoLimit,
				Granted: flowcontrol.ReasonRunnerLimit}, // which is not reached
			{ID: "c"},
		},
	}}
	terms := [][]flowcontrol.Term{{
		{Name: flowcontrol.TermObjective, Value: 50}, {Name: flowcontrol.TermAlone, Value: 0},
		{Name: flowcontrol.TermTargetShare, Value: 0}, {Name: flowcontrol.TermTarget,
			Value: math.NaN()},
		{Name: flowcontrol.TermLate, Value: 0}, {Name: flowcontrol.TermRequests, Value: 0},
		{Name: "anything else", Value: 3},
		{Runner: "a", Name: flowcontrol.TermTokenTime, Value: 31},
		{Runner: "a", Name: flowcontrol.TermInteractiveRunning, Value: 12.5},
		{Runner: "a", Name: flowcontrol.TermInteractiveWaiting, Value: 0},
		{Runner: "a", Name: flowcontrol.TermLoadAge, Value: 0.5},
		{Runner: "b", Name: flowcontrol.TermTokenTime, Value: 0},
		{Runner: "b", Name: flowcontrol.TermInteractiveRunning, Value: 0},
		{Runner: "b", Name: flowcontrol.TermLoadAge, Value: math.Inf(1)},
		{Runner: "c", Name: flowcontrol.TermInteractiveRunning, Value: math.NaN()},
		{Runner: "c", Name: flowcontrol.TermInteractiveWaiting, Value: 4},
		{Runner: "c", Name: flowcontrol.TermLoadAge, Value: 0.5},
	}}
	m.setPools(pools, terms)
	want := []string{
		"pool_allowance_lines m,n 9", "pool_in_flight_lines m,n 7", "pool_limited m,n at_limit 1",
		"pool_target_share_ratio m,n 0", "pool_token_time_objective_seconds m,n 0.05",
		"runner_allowance_lines m,n a 6", "runner_allowance_lines m,n b 3",
		"runner_allowance_lines m,n c 0",
		"runner_breaker_open m,n a 0", "runner_breaker_open m,n b 1",
		"runner_breaker_open m,n c 0",
		"runner_failing m,n a 0", "runner_failing m,n b 0", "runner_failing m,n c 0",
		"runner_in_flight_lines m,n a 5", "runner_in_flight_lines m,n b 2",
		"runner_in_flight_lines m,n c 0",
		"runner_interactive_requests m,n a running 12.5",
		"runner_interactive_requests m,n a waiting 0",
		"runner_interactive_requests m,n c waiting 4",
		"runner_limited m,n growing a 1", "runner_limited m,n none b 1",
		"runner_limited m,n none c 1",
		"runner_token_time_seconds m,n a 0.031",
		"runner_waiting_prompt_tokens m,n a 300", "runner_waiting_prompt_tokens m,n b 0",
		"runner_waiting_prompt_tokens m,n c 0",
	}
	if diff := cmp.Diff(want, gathered(t, &m, "tidefill_")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	m.setPools(nil, nil)
	m.setBatches(batchCounts{states: map[string]int{"paused": 2}, atRisk: 1,
		verdicts: map[store.Verdict]int{store.VerdictAtRisk: 2}}, 3)
	want = []string{"batches cancelling 0", "batches finalizing 0", "batches in_progress 0",
		"batches paused 2", "batches validating 0", "batches_at_risk  1",
		"batches_by_verdict at_risk 2", "batches_by_verdict infeasible 0",
		"batches_by_verdict ok 0", "leads  3"}
	if diff := cmp.Diff(want, gathered(t, &m, "tidefill_")); diff != "" {
		t.Errorf("without pools: -want +got:\n%s", diff)
	}
}

// A policy that controls token times has the terms that are shown, under their names.
func TestEveryShownTermIsExplained(t *testing.T) {
	c, err := flowcontrol.New(flowcontrol.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	c.Observe(start, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "a"}})
	explained := map[string]bool{}
	for _, term := range c.(flowcontrol.Explainer).Explain(start) {
		explained[term.Name] = true
	}
	names := []string{flowcontrol.TermInteractiveRunning, flowcontrol.TermInteractiveWaiting,
		flowcontrol.TermLoadAge, flowcontrol.TermRequests}
	names = slices.AppendSeq(names, maps.Keys(poolTerms))
	for _, name := range slices.AppendSeq(names, maps.Keys(runnerTerms)) {
		if !explained[name] {
			t.Errorf("the default policy does not explain %q", name)
		}
	}
}
