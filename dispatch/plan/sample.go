package plan

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// sample is what a reading of an engine's metrics counted, to be compared with the next one. A
// counter that the engine does not have is NaN.
type sample struct {
	at                            time.Time
	prompt, output, gaps, gapTime float64
	waiting                       float64 // requests, no counter
	requests                      float64 // that run or wait, no counter; 0: unknown
}

func sampleOf(m *flowcontrol.Reading) sample {
	s := sample{at: m.Sampled, prompt: m.PromptTokens, output: m.OutputTokens, gaps: m.TokenGaps,
		gapTime: m.TokenGapTime, waiting: m.Waiting}
	for _, n := range [...]float64{m.Running, m.Waiting} {
		if !math.IsNaN(n) {
			s.requests += n
		}
	}
	return s
}

// progress says how a sample compares with an earlier one.
type progress uint8

const (
	// still: it is not newer, or no counter has grown. A source that hangs repeats its values, also
	// with new times.
	still progress = iota
	// advanced: it is newer, and a counter has grown.
	advanced
	// restarted: a counter is lower than before, or there was no sample before.
	restarted
)

func (s sample) since(before sample) progress {
	switch {
	case before.at.IsZero():
		return restarted
	case !s.at.After(before.at):
		return still
	}
	grown := still
	for _, c := range [...][2]float64{
		{before.prompt, s.prompt}, {before.output, s.output}, {before.gaps, s.gaps},
		{before.gapTime, s.gapTime},
	} {
		switch { // comparisons with NaN are false
		case c[1] < c[0]:
			return restarted
		case c[1] > c[0]:
			grown = advanced
		}
	}
	return grown
}
