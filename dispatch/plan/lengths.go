package plan

import (
	"math"
	"math/bits"
)

// lengths estimates a lower bound of the mean output tokens of a job's lines before the long ones
// have ended. It counts answers by their tokens, and lines in flight by their ages, in bins of an
// eighth of an octave.
type lengths struct {
	ended   []int32 // answers by bin
	running []int32 // lines in flight by the bin of their age, at the last update
	total   int32   // of ended
}

// binsPerOctave is the resolution of lengths. Below twice that number of tokens each length has a
// bin of its own.
const binsPerOctave = 8

// binOf returns the bin of a number of tokens.
func binOf(tokens int64) int {
	shift := max(0, bits.Len64(uint64(tokens))-4)
	return binsPerOctave*shift + int(tokens>>shift)
}

// binFrom returns the least number of tokens in a bin.
func binFrom(bin int) float64 {
	shift := max(0, bin/binsPerOctave-1)
	return float64(int64(bin-binsPerOctave*shift) << shift)
}

// count adds a line to a histogram.
func count(histogram []int32, tokens int64) []int32 {
	bin := binOf(tokens)
	if missing := bin + 1 - len(histogram); missing > 0 {
		histogram = append(histogram, make([]int32, missing)...)
	}
	histogram[bin]++
	return histogram
}

// add counts an answer. From twice outputMemory on, the counts are halved.
func (l *lengths) add(tokens int) {
	l.ended = count(l.ended, int64(tokens))
	if l.total++; l.total < 2*outputMemory {
		return
	}
	l.total = 0
	for i := range l.ended {
		l.ended[i] /= 2
		l.total += l.ended[i]
	}
}

const (
	// enoughAlive is the number of lines that must have reached an age before the share of them
	// that end there is used.
	enoughAlive = 50
	// enoughEnded is the number of lines that must have ended in the last octave for an
	// extrapolation from it. Answers of equal length all end together and show nothing before.
	enoughEnded = 16
	// maxSpeedup is the maximum rate at which older lines end, as a multiple of the observed rate.
	maxSpeedup = 3
)

// least returns a lower bound of the mean output tokens of a line. No line has more than limit; 0:
// no limit. Up to the age that enough lines have reached, it is the survival estimate of Kaplan and
// Meier, with the lines in flight as censored at their ages. For an octave beyond, it assumes that
// lines end maxSpeedup times as fast as in any part of the last octave. From all that it subtracts
// twice the error of a mean of so many lines whose deviation equals their mean.
func (l *lengths) least(limit float64) float64 {
	if limit <= 0 {
		limit = math.Inf(1)
	}
	come, running := 0.0, 0.0 // lines that have reached a bin, and those of them in flight
	for _, n := range l.ended {
		come += float64(n)
	}
	for _, n := range l.running {
		running += float64(n)
	}
	come += running
	if come < 1 {
		return 0
	}
	sure := max(0, 1-2/math.Sqrt(come))
	// share of lines that reach a bin, and their mean tokens up to there
	left, mean := 1.0, 0.0
	var ended, risked [binsPerOctave]float64 // of the last bins
	bin := 0
	for ; bin < max(len(l.ended), len(l.running)); bin++ {
		here, stay := 0.0, 0.0
		if bin < len(l.ended) {
			here = float64(l.ended[bin])
		}
		if bin < len(l.running) {
			stay = float64(l.running[bin])
		}
		atRisk := come - stay // without those in flight that have not left this bin
		if running > 0 && atRisk < enoughAlive || atRisk <= 0 {
			break
		}
		width := binFrom(bin+1) - binFrom(bin)
		left *= (atRisk - here) / atRisk
		mean += left * width
		ended[bin%binsPerOctave], risked[bin%binsPerOctave] = here,
			width*(atRisk-here)
		come, running = come-here-stay, running-stay
	}
	age := binFrom(bin)
	if further := min(age, limit-age); further > 0 && left > 0 && bin >= 2*binsPerOctave {
		// about further · (1 - exp(-speedup)) / speedup, and the same on every processor
		if speedup := maxSpeedup * hazard(ended, risked, bin) * further; speedup > 0 {
			mean += left * further / (1 + speedup/2 + speedup*speedup/12)
		}
	}
	return sure * min(mean, limit)
}

// hazard returns the largest share of lines that end with each token, over the latter parts of the
// octave before a bin. 0: too few ended.
func hazard(ended, risked [binsPerOctave]float64, bin int) float64 {
	ends, risk, most := 0.0, 0.0, 0.0
	for back := 1; back <= binsPerOctave; back++ {
		ends += ended[(bin-back)%binsPerOctave]
		risk += risked[(bin-back)%binsPerOctave]
		if back > 1 && risk > 0 {
			most = max(most, (ends+2*math.Sqrt(ends))/risk)
		}
	}
	if ends < enoughEnded {
		return 0
	}
	return most
}
