package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Lines of a job whose answers are far longer than those of the jobs before hold what they were
// seen to produce. What they hold is subtracted from metrics: the rest counts as interactive for
// half an hour.
func TestLongLinesHoldWhatTheyProduced(t *testing.T) {
	own, sizes, now := ownLoad{}, lineSizes{}, noon
	for range 200 { // a job of short answers
		sizes.start(60, 0, 8, 8)
		sizes.answer(60, 0, 8)
	}
	const lines, produced = 20, 2500
	for i := range lines {
		sizes.start(60, 0, 4500, 4500)
		own.observe(now, &flowcontrol.Started{Load: flowcontrol.Load{InFlight: i + 1},
			PromptTokens: 60}, &sizes)
	}
	for range produced {
		now = now.Add(30 * time.Millisecond)
		own.observe(now, &flowcontrol.TokenGaps{Load: flowcontrol.Load{InFlight: lines},
			Gaps: 1}, &sizes)
	}
	if want := float64(lines * (60 + produced)); own.context != want {
		t.Errorf("%d lines hold %v tokens, want %v", lines, own.context, want)
	}
}

// A line that ends soon after it started is not subtracted from later metrics.
func TestShortLinesAreGone(t *testing.T) {
	own, sizes := ownLoad{}, lineSizes{}
	sizes.start(2500, 0, 2, 2)
	own.observe(noon, &flowcontrol.Started{Load: flowcontrol.Load{InFlight: 1},
		PromptTokens: 2500}, &sizes)
	during, end := noon.Add(sampleEvery/4), noon.Add(sampleEvery/2)
	own.observe(end, &flowcontrol.Answered{PromptTokens: 2500, OutputTokens: 2}, &sizes)
	if was := own.at(during); was.lines != 1 || was.context != 2500 {
		t.Errorf("%v lines with %v tokens while one ran", was.lines, was.context)
	}
	if is := own.at(end.Add(5 * time.Second)); is.lines != 0 || is.context != 0 {
		t.Errorf("%v lines with %v tokens seconds after the last", is.lines, is.context)
	}
}

// Without streams, what lines hold follows from how long they have run; lines that ended hold
// nothing, whatever ended them.
func TestAgesShowWhatLinesHold(t *testing.T) {
	own, sizes, now, lines := ownLoad{}, lineSizes{}, noon, 0
	sizes.start(50, 0, 5, 5)
	start := func() {
		lines++
		own.observe(now, &flowcontrol.Started{Load: flowcontrol.Load{InFlight: lines},
			PromptTokens: 50, OutputTokens: 5}, &sizes)
	}
	left := func() flowcontrol.Load {
		lines--
		return flowcontrol.Load{InFlight: lines}
	}
	held := func() float64 { return own.held(now, 50, 20) }
	start()
	now = now.Add(time.Minute)
	if got := held(); !near(got, 3050) {
		t.Errorf("a line of a minute holds %v tokens, want 3,050", got)
	}
	start()
	start()
	own.observe(now, &flowcontrol.Shed{Load: left()}, &sizes)
	if got := held(); !near(got, 3100) {
		t.Errorf("with another that has just started %v, want 3,100", got)
	}
	own.observe(now, &flowcontrol.Evicted{Load: left(), Latency: time.Minute}, &sizes)
	if got := held(); !near(got, 50) {
		t.Errorf("the younger one holds %v, want 50", got)
	}
	now = now.Add(time.Second)
	own.observe(now, &flowcontrol.Broken{Load: left()}, &sizes)
	if held() != 0 {
		t.Errorf("no line holds %v", held())
	}
}

// Lines that a runner has when it joins again are not those of users, and not as old as time.
func TestLinesOfAJoiningRunner(t *testing.T) {
	r := newRunner(noon, 30, 0)
	at := noon.Add(time.Minute)
	if got := r.own.at(at).lines; got != 30 {
		t.Errorf("%v lines are known a minute later, want 30", got)
	}
	if held := r.own.held(at, 1000, 50); held > 30*(1000+60_000/50+1) {
		t.Errorf("they hold %v tokens", held)
	}
}
