package headroom

import "time"

// The parts of learned. Each has a method valid, because a state may be damaged: what is out of
// range must not become a figure that is no number. The functions learn take a part over; what
// counts less with its age is multiplied by trust, from 0 to 1.

// longestAge bounds ages, so that they can be subtracted from times.
const longestAge = 10 * 365 * 24 * time.Hour

// maxFigure bounds figures that have no other bound.
const maxFigure = 1e12

// within reports whether all values are numbers between two bounds.
func within(least, most float64, values ...float64) bool {
	for _, v := range values {
		if !(v >= least && v <= most) {
			return false
		}
	}
	return true
}

// ago returns the time that was some seconds before another.
func ago(now time.Time, seconds float64) time.Time {
	return now.Add(-time.Duration(min(seconds, longestAge.Seconds()) * float64(time.Second)))
}

func (l *learned) valid() bool {
	return within(0, maxFigure, l.Lines, l.Known, l.Alone, l.AloneAge) &&
		l.Fit.valid() && l.Sizes.valid() && l.AloneShares.valid() && l.AnswerTime.valid() &&
		l.TokenTime.valid() && l.PromptTime.valid() && l.Quiet.valid() && l.Virtual.valid() &&
		l.FirstForecast.valid() && l.TokenForecast.valid() && l.Budget.valid() &&
		l.LateLines.valid() &&
		l.First.valid() && l.Prompt.valid() && l.TokenTimes.valid() && l.validAnswers() &&
		l.Slots.valid() && l.KV.valid() && l.Prefill.valid() && l.Decode.valid() &&
		l.Prompts.valid() && l.Waste.valid() && l.Packing.valid()
}

func (l *learned) validAnswers() bool {
	return (len(l.Answers) == 0 || len(l.Answers) == virtualLengths) &&
		(len(l.FineAnswers) == 0 || len(l.FineAnswers) == fineLengths) &&
		within(1, 1e7, l.Answers...) && within(1, 1e7, l.FineAnswers...)
}
