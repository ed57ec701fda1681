package decision

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// inputsText returns the inputs of the first runner in the last decision as JSON.
func inputsText(t *testing.T, h *History) string {
	t.Helper()
	text, err := json.Marshal(h.Pools()[0].Last.Runners[0].Inputs)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A decision shows all that the policy was given about a runner: both readings with their ages,
// what counters grew by, and how lines ended. What nothing shows is left out.
func TestInputsAreKept(t *testing.T) {
	r, h := newRecorder(newFake(1))
	did := &plan.Actions{}
	r.Tick(start)
	const none = `{"lines":{"answered_total":0,"shed_total":0,"broken_total":0}}`
	if got := inputsText(t, h); got != none {
		t.Errorf("before any reading the inputs are %s", got)
	}

	read := func(second int, prompt, preemptions float64) {
		at := start.Add(time.Duration(second) * time.Second)
		m := flowcontrol.NoReading(flowcontrol.Metrics, at)
		m.Running, m.KVTokens = 9, 64_000
		m.PromptTokens, m.OutputTokens, m.Preemptions = prompt, 10*prompt, preemptions
		m.TokenGaps, m.TokenGapTime = prompt, prompt/20
		r.Step(at, plan.Reading{Runner: "gpu-0", Reading: &m}, did)
	}
	says := flowcontrol.NoReading(flowcontrol.Capabilities, start)
	says.Waiting = 3
	r.Step(start, plan.Reading{Runner: "gpu-0", Reading: &says}, did)
	read(1, 1000, 7)
	read(2, 1500, 7)
	r.Tick(start.Add(2 * time.Second))
	read(3, 1700, 9)
	read(4, 1900, 9)
	r.Step(start, plan.TokenGaps{Runner: "gpu-0", Gaps: 4, Time: 100 * time.Millisecond}, did)
	ended := plan.Finished{Start: plan.Start{Runner: "gpu-0"}}
	for _, o := range []plan.Outcome{plan.Succeeded, plan.Refused, plan.Shed, plan.Died,
		plan.TimedOut, plan.Evicted} {
		ended.Outcome = o
		r.Step(start, &ended, did)
	}
	r.Tick(start.Add(5 * time.Second))
	want := `{"metrics":{"age_s":1,"running":9,"kv_tokens":64000,"prompt_tokens_per_s":200,` +
		`"output_tokens_per_s":2000,"token_time_ms":50,"preemptions_total":2},` +
		`"capabilities":{"age_s":5,"waiting":3},` +
		`"lines":{"answered_total":2,"shed_total":1,"broken_total":2,"token_time_ms":25}}`
	if diff := cmp.Diff(want, inputsText(t, h)); diff != "" {
		t.Errorf("the inputs are (-want +got)\n%s", diff)
	}

	read(6, 100, 1) // the engine has restarted
	r.Tick(start.Add(6 * time.Second))
	want = `{"metrics":{"age_s":0,"running":9,"kv_tokens":64000,"preemptions_total":2},` +
		`"capabilities":{"age_s":6,"waiting":3},` +
		`"lines":{"answered_total":2,"shed_total":1,"broken_total":2}}`
	if diff := cmp.Diff(want, inputsText(t, h)); diff != "" {
		t.Errorf("after a restart the inputs are (-want +got)\n%s", diff)
	}
	if d := decisionsOf(t, h, Query{})[0]; d.Runners[0].Inputs != nil {
		t.Errorf("inputs that nobody asked for are %+v", d.Runners[0].Inputs)
	}
	if d := decisionsOf(t, h, Query{Inputs: true})[0]; d.Runners[0].Inputs == nil {
		t.Error("inputs that were asked for are absent")
	}
}

// Metrics show more than capabilities, unless they are away.
func TestTheReadingShownIsTheBetterOne(t *testing.T) {
	r, h := newRecorder(newFake(1))
	m := flowcontrol.NoReading(flowcontrol.Metrics, start)
	r.Step(start, plan.Reading{Runner: "gpu-0", Reading: &m}, &plan.Actions{})
	for second, want := range map[int]string{14: "metrics", 15: "capabilities"} {
		now := start.Add(time.Duration(second) * time.Second)
		c := flowcontrol.NoReading(flowcontrol.Capabilities, now)
		r.Step(now, plan.Reading{Runner: "gpu-0", Reading: &c}, &plan.Actions{})
		r.sample(now)
		if got := h.Pools()[0].Last.Runners[0].Reading; got == nil || got.Source != want {
			t.Errorf("after %d s the reading is %+v", second, got)
		}
	}
}

// Names of runners that come and go do not fill the memory, also if lines end after their runner
// has gone.
func TestRunnersThatAreGoneAreForgotten(t *testing.T) {
	r, _ := newRecorder(newFake(1))
	for i := range 100 {
		ended := plan.Finished{Start: plan.Start{Runner: fmt.Sprint("gone-", i)}}
		r.Step(start, &ended, &plan.Actions{})
	}
	r.Tick(start)
	if len(r.inputs) != 1 {
		t.Errorf("the inputs of %d runners are held", len(r.inputs))
	}
}

// Lines end thousands of times a second.
func TestLinesAllocateNothing(t *testing.T) {
	r, _ := newRecorder(newFake(2))
	r.Tick(start)
	did := &plan.Actions{}
	m := flowcontrol.NoReading(flowcontrol.Metrics, start)
	for name, ev := range map[string]plan.Event{
		"an answer":     &plan.Finished{Start: plan.Start{Runner: "gpu-0"}},
		"a first token": &plan.FirstToken{Start: plan.Start{Runner: "gpu-0"}},
		"gaps":          plan.TokenGaps{Runner: "gpu-1", Gaps: 3, Time: time.Second},
		"a reading":     plan.Reading{Runner: "gpu-1", Reading: &m},
	} {
		if n := testing.AllocsPerRun(100, func() { r.Step(start, ev, did) }); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestUnknownNumbersAreLeftOut(t *testing.T) {
	for n, want := range map[Number]bool{0: false, 1: false, Number(math.Inf(1)): true,
		Unknown: true} {
		if n.IsZero() != want {
			t.Errorf("%v is left out: %t", n, !want)
		}
	}
}
