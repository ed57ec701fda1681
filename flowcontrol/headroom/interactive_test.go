package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Lines with answers of two tokens, one after the other, decode between their prompts: each has one
// gap, in a short iteration. Users decode in all iterations, and their mean is what counts.
func TestShortAnswersOfLinesLeaveTheMeanAlone(t *testing.T) {
	const (
		alone, users = 20.0, 60.0 // milliseconds
		lines, gaps  = 50, 100    // gaps of users
	)
	own, sizes, in, now := ownLoad{}, lineSizes{}, interactive{}, noon
	reading := flowcontrol.NoReading(flowcontrol.Metrics, now)
	reading.TokenGaps, reading.TokenGapTime = 0, 0
	in.read(&reading, &own, 0, alone)
	for range lines {
		now = now.Add(100 * time.Millisecond)
		own.observe(now, &flowcontrol.Started{Load: flowcontrol.Load{InFlight: 1},
			PromptTokens: 100}, &sizes)
		own.observe(now, &flowcontrol.Answered{PromptTokens: 100, OutputTokens: 2}, &sizes)
	}
	now = now.Add(time.Second)
	reading.Sampled = now
	reading.TokenGaps = lines + gaps
	reading.TokenGapTime = (lines*alone + gaps*users) / 1000
	shown, ok := in.read(&reading, &own, 0, alone)
	if !ok || !near(shown.iteration, users) {
		t.Errorf("iterations of users take %.1f ms, want %v", shown.iteration, users)
	}
}

// Engines count what they found in the cache when they admit a request, and its prompt with its
// first token. In between, readings show too few prompt tokens, then too many. Users are charged
// with what is computed on average.
func TestCachedPromptsOfUsersAreComputedOnce(t *testing.T) {
	const prompt, cached, each = 1000, 900, 20 // tokens, requests a second
	own, in, now := ownLoad{}, interactive{}, noon
	reading := flowcontrol.NoReading(flowcontrol.Metrics, now)
	reading.PromptTokens, reading.CachedTokens = 0, 0
	in.read(&reading, &own, 0, 0)
	for i := range 60 {
		now = now.Add(time.Second)
		reading.Sampled = now
		answered := each * float64(i+1)
		if i%2 == 0 { // the last ones were admitted, and have no first token yet
			answered -= each
		}
		reading.CachedTokens = cached * each * float64(i+1)
		reading.PromptTokens = prompt * answered
		in.read(&reading, &own, 0, 0)
	}
	if got, want := in.prompts(), each*(prompt-cached); got < 0.5*float64(want) ||
		got > 2*float64(want) {
		t.Errorf("users compute %.0f prompt tokens a second, want about %d", got, want)
	}
}

// Control goes on with the load that it knew. People don't get shown a load that metrics dropped.
func TestAbsentLoadIsUnknown(t *testing.T) {
	own, in, now := ownLoad{}, interactive{}, noon
	reading := flowcontrol.NoReading(flowcontrol.Metrics, now)
	reading.Running, reading.Waiting = 3, 1
	in.read(&reading, &own, 0, 0)
	if running, waiting := in.shownRunning(), in.shownWaiting(); running != 3 || waiting != 1 {
		t.Errorf("shown as %v running and %v waiting, want 3 and 1", running, waiting)
	}
	reading.Sampled = now.Add(time.Second)
	reading.Running, reading.Waiting = math.NaN(), math.NaN()
	in.read(&reading, &own, 0, 0)
	if running, waiting := in.shownRunning(), in.shownWaiting(); !math.IsNaN(running) ||
		!math.IsNaN(waiting) {
		t.Errorf("shown as %v running and %v waiting, want them unknown", running, waiting)
	}
	if running := in.load().Running; running != 3 {
		t.Errorf("control takes %v for running, want 3", running)
	}
}
