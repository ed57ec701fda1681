package plan

import (
	"math"
	"math/bits"

	"github.com/tidefill/tidefill/internal/portable"
)

// lifetimes is how many answers of a job had how many tokens, in bins of an eighth of an octave.
// With the ages of the lines under way they tell how long answers are at the least, long before the
// long ones have ended.
type lifetimes struct {
	ended []int32 // by bin
	alive []int32 // lines under way by the bin of their age, as of the last look
	total int32   // of ended
}

// binsPerOctave is how finely lengths are told apart; those below twice as many tokens have a bin
// each.
const binsPerOctave = 8

// binOf is the bin of a number of tokens.
func binOf(tokens int64) int {
	shift := max(0, bits.Len64(uint64(tokens))-4)
	return binsPerOctave*shift + int(tokens>>shift)
}

// binFrom is the least number of tokens in a bin.
func binFrom(bin int) float64 {
	shift := max(0, bin/binsPerOctave-1)
	return float64(int64(bin-binsPerOctave*shift) << shift)
}

// add counts a line in a histogram.
func add(histogram []int32, tokens int64) []int32 {
	bin := binOf(tokens)
	if missing := bin + 1 - len(histogram); missing > 0 {
		histogram = append(histogram, make([]int32, missing)...)
	}
	histogram[bin]++
	return histogram
}

// learn counts an answer. Of more than twice outputMemory the old ones count half.
func (l *lifetimes) learn(tokens int) {
	l.ended = add(l.ended, int64(tokens))
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
	// enoughAlive is how many lines must have come to an age for those that ended there to tell
	// what others will do.
	enoughAlive = 50
	// enoughEnded is how many must have ended in the last octave, so that what follows is expected
	// to go on from it: answers that are all alike end together, and show nothing before.
	enoughEnded = 16
	// mostHaste is how many times faster lines may end that are older than any seen.
	mostHaste = 3
)

// least is how many tokens a line brings on average at the least; no line brings more than a limit,
// 0 if there is none. Up to the age that enough lines have come to, it is what the lines have shown
// of how many come how far (Kaplan and Meier), each that is under way counting for as far as it has
// come. For an octave beyond, it is what would come if lines ended mostHaste times as fast as in
// any of the last stretches before. All that is less twice the error of a mean of so many lines
// that differ as much as they are long.
func (l *lifetimes) least(limit float64) float64 {
	if limit <= 0 {
		limit = math.Inf(1)
	}
	come, alive := 0.0, 0.0 // lines that have come to a bin, and those of them that are under way
	for _, n := range l.ended {
		come += float64(n)
	}
	for _, n := range l.alive {
		alive += float64(n)
	}
	come += alive
	if come < 1 {
		return 0
	}
	sure := max(0, 1-2/math.Sqrt(come))
	// share of lines that come to a bin, and their tokens up to there
	left, mean := 1.0, 0.0
	var ended, risked [binsPerOctave]float64 // of the last bins
	bin := 0
	for ; bin < max(len(l.ended), len(l.alive)); bin++ {
		here, stay := 0.0, 0.0
		if bin < len(l.ended) {
			here = float64(l.ended[bin])
		}
		if bin < len(l.alive) {
			stay = float64(l.alive[bin])
		}
		judged := come - stay // those that have not come further yet say nothing of this bin
		if alive > 0 && judged < enoughAlive || judged <= 0 {
			break
		}
		width := binFrom(bin+1) - binFrom(bin)
		left *= (judged - here) / judged
		mean += portable.Rounded(left * width)
		ended[bin%binsPerOctave], risked[bin%binsPerOctave] = here, portable.Rounded(width*(judged-here))
		come, alive = come-here-stay, alive-stay
	}
	age := binFrom(bin)
	if further := min(age, limit-age); further > 0 && left > 0 && bin >= 2*binsPerOctave {
		// further · (1 - exp(-haste)) / haste, near enough and the same on every processor
		if haste := mostHaste * hazard(ended, risked, bin) * further; haste > 0 {
			mean += left * further / (1 + portable.Rounded(haste/2) + haste*haste/12)
		}
	}
	return sure * min(mean, limit)
}

// hazard is the share of lines that end with each token, at most, in the octave before a bin and in
// the latter parts of it; 0 if too few ended for that to be known.
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
