package store

import (
	"cmp"
	"slices"
	"strings"
)

// Failure is a cause for which lines of a batch have failed.
type Failure struct {
	Count  int    `json:"count"`
	Status int    `json:"status"` // of the HTTP answer; 0: there was none
	Code   string `json:"code"`   // of the error without an answer, or of the answer's error
	Sample string `json:"sample"` // the beginning of one of the answers, or the error
	// Runner is the one whose answers these were, the one with most of them if there were several.
	// Empty: unknown.
	Runner string `json:"runner"`
}

// ShownFailures is the number of causes that users see.
const ShownFailures = 3

// maxFailures limits the causes that are counted apart.
const maxFailures = 32

// Failures counts causes. Answers that differ in their numbers only have the same cause.
type Failures []Failure

// Add counts a cause.
func (f *Failures) Add(x Failure) {
	i := slices.IndexFunc(*f, func(y Failure) bool { return y.Runner == x.Runner && y.like(x) })
	switch {
	case i >= 0:
		(*f)[i].Count += x.Count
	case len(*f) < maxFailures:
		*f = append(*f, x)
	default: // one of many: it counts for the status alone
		x.Sample, x.Code, x.Runner = "", "", ""
		if i = slices.IndexFunc(*f, x.like); i >= 0 {
			(*f)[i].Count += x.Count
		} else if len(*f) < 2*maxFailures {
			*f = append(*f, x)
		}
	}
}

// Top returns the most frequent causes, over all runners, the first one first.
func (f Failures) Top() (top [ShownFailures]Failure) {
	var joined Failures
	for _, x := range slices.SortedStableFunc(slices.Values(f), byCount) {
		if i := slices.IndexFunc(joined, x.like); i >= 0 {
			joined[i].Count += x.Count
		} else {
			joined = append(joined, x)
		}
	}
	slices.SortStableFunc(joined, byCount)
	copy(top[:], joined)
	return top
}

// RunnerOf returns the runner with most answers like x; empty: unknown.
func (f Failures) RunnerOf(x Failure) string {
	for _, y := range slices.SortedStableFunc(slices.Values(f), byCount) {
		if y.like(x) {
			return y.Runner
		}
	}
	return ""
}

func byCount(a, b Failure) int { return cmp.Compare(b.Count, a.Count) }

// like reports whether two failures have the same cause, wherever.
func (f Failure) like(x Failure) bool {
	return f.Status == x.Status && f.Code == x.Code && withoutNumbers(f.Sample) == withoutNumbers(
		x.Sample)
}

func withoutNumbers(text string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

func joinFailures(a, b [ShownFailures]Failure) [ShownFailures]Failure {
	if b == ([ShownFailures]Failure{}) {
		return a
	}
	var all Failures
	for _, f := range append(a[:], b[:]...) {
		if f.Count > 0 {
			all.Add(f)
		}
	}
	return all.Top()
}
