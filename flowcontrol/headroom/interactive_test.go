package headroom

import (
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
	in.read(now, &reading, &own, 0, alone)
	for range lines {
		now = now.Add(100 * time.Millisecond)
		own.observe(now, flowcontrol.Observation{Kind: flowcontrol.Started, InFlight: 1,
			PromptTokens: 100}, &sizes)
		own.observe(now, flowcontrol.Observation{Kind: flowcontrol.Answered, PromptTokens: 100,
			OutputTokens: 2}, &sizes)
	}
	now = now.Add(time.Second)
	reading.Sampled = now
	reading.TokenGaps = lines + gaps
	reading.TokenGapTime = (lines*alone + gaps*users) / 1000
	shown, ok := in.read(now, &reading, &own, 0, alone)
	if !ok || !near(shown.iteration, users) {
		t.Errorf("iterations of users take %.1f ms, want %v", shown.iteration, users)
	}
}
