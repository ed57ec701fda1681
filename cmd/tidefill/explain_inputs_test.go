package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/client"
)

// explained returns what explain prints of a pool with this decision.
func explained(t *testing.T, decision string) string {
	t.Helper()
	p := client.Pool{Name: "m", Models: []string{"m"}}
	if err := json.Unmarshal([]byte(decision), &p.Decision); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	explainPool(&text, &p, client.PoolList{})
	historyTable(&text, "m", []client.Decision{p.Decision})
	return text.String()
}

func TestExplainShowsWhatWasRead(t *testing.T) {
	text := explained(t, `{"first_tokens":{"source":"metrics","requests":1200,"p95_ms":312},
		"first_token_objective_ms":2000,"runners":[
		{"name":"a","first_tokens":{"source":"metrics","requests":1200,"p95_ms":287},
		"inputs":{"metrics":{"prompt_tokens_per_s":3000,"cached_tokens_per_s":1500,
		"output_tokens_per_s":800,"preemptions_total":2},
		"lines":{"answered_total":5000,"shed_total":3}}},
		{"name":"b","inputs":{"metrics":{"prompt_tokens_per_s":1000},"lines":{"broken_total":1}}}]}`)
	for _, want := range []string{"95 % of first tokens within 312 ms, objective 2000 ms; " +
		"of 1,200 requests in the last minute, batch lines included",
		"engines     4,000 prompt tokens/s, 38 % of them cached; 800 output tokens/s; " +
			"2 preemptions so far", "3 shed, 1 without an answer, 5,000 answered",
		"287 ms", "FIRST TOKENS"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "312 ms"); n != 2 {
		t.Errorf("the time is printed %d times, want once in the table of decisions too", n)
	}
}

// The state of a pool that is watched has a countdown, the time of tokens its target, and runners
// for which no line waits have no limit.
func TestExplainSaysForHowLongAndWhatLimits(t *testing.T) {
	text := func(decision string) string {
		t.Helper()
		p := client.Pool{Name: "m", Models: []string{"m"}}
		if err := json.Unmarshal([]byte(decision), &p.Decision); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		explainPool(&out, &p, client.PoolList{Time: 1000.5, Reasons: map[string]client.Explanation{
			"watching":     {Meaning: "The policy watches the pool.", Remedy: "Wait."},
			"runner_limit": {Meaning: "The configured limit is reached."}}})
		return out.String()
	}
	watching := text(`{"reason":"watching","watch_left_s":18,"watch_of_s":60,"runners":[]}`)
	if want := "limited by  watching, at most 18 s of 60 left: The policy watches the pool. " +
		"Wait.\n"; !strings.Contains(watching, want) {
		t.Errorf("it lacks %q:\n%s", want, watching)
	}
	if got := text(`{"reason":"watching","runners":[]}`); !strings.Contains(got,
		"limited by  watching: The policy watches") {
		t.Errorf("without a known time:\n%s", got)
	}
	const runner = `{"name":"a","allowance":4,"reason":"runner_limit","token_time_ms":42}`
	busy := text(`{"reason":"at_limit","target_ms":50,"objective_ms":60,"runners":[` + runner +
		`]}`)
	for _, want := range []string{"42.0 ms per token, target 50.0 ms, objective 60.0 ms",
		"  runner_limit\n", "The configured limit is reached."} {
		if !strings.Contains(busy, want) {
			t.Errorf("it lacks %q:\n%s", want, busy)
		}
	}
	if got := text(`{"time":1000,"in_flight":7,"allowance":9,"runners":[]}`); !strings.Contains(got,
		"7 in flight, 9 allowed, decided 0.5 s ago\n") {
		t.Errorf("the age of the decision is missing:\n%s", got)
	}
	lowered := text(`{"objective_ms":10.9,"configured_objective_ms":15,"runners":[` + runner + `]}`)
	if want := "objective 10.9 ms instead of the configured 15.0 ms, which is over 4 times the " +
		"time without batch work"; !strings.Contains(lowered, want) {
		t.Errorf("it lacks %q:\n%s", want, lowered)
	}
	if idle := text(`{"reason":"nothing_ready","runners":[` + runner + `]}`); strings.Contains(idle,
		"runner_limit") || strings.Contains(idle, "configured limit") {
		t.Errorf("a runner without lines is limited:\n%s", idle)
	}
}

// What nothing shows is not printed as zero.
func TestExplainOmitsWhatIsUnknown(t *testing.T) {
	text := explained(t, `{"first_tokens":null,"first_token_objective_ms":2000,"runners":[
		{"name":"a","first_tokens":null,"inputs":{"lines":{"answered_total":7}}}]}`)
	for _, absent := range []string{"% of first tokens", "engines", "tokens/s", "shed", "0 ms"} {
		if strings.Contains(text, absent) {
			t.Errorf("it has %q:\n%s", absent, text)
		}
	}
}
