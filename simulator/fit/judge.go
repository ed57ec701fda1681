package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
)

// Error is how far a law is from measured iterations: (law - measured) / measured.
type Error struct {
	Points int     `json:"points"`
	Mean   float64 `json:"mean"` // of the absolute error
	P90    float64 `json:"p90"`  // of the absolute error
	Bias   float64 `json:"bias"` // mean with sign; above 0: the law is too slow
}

// Range is the error over iterations with From to To decoding requests.
type Range struct {
	From  int     `json:"from"`
	To    int     `json:"to"`
	Time  float64 `json:"median_ms"`     // measured
	Law   float64 `json:"law_median_ms"` // of the same iterations
	Error Error   `json:"error"`
}

// rangeEnds are the last numbers of requests of the ranges.
var rangeEnds = []int{8, 16, 24, 32, 40, 48, 56, 72, 96, 112, 128, 192, 256, 384, 512, math.MaxInt}

// Judge is the error of a law over observations.
func Judge(l costmodel.Model, obs []Observation) Error {
	e := Error{Points: len(obs)}
	sizes := make([]float64, len(obs))
	for i, o := range obs {
		relative := o.Predict(l)/o.Time - 1
		sizes[i] = math.Abs(relative)
		e.Mean += sizes[i] / float64(len(obs))
		e.Bias += relative / float64(len(obs))
	}
	e.P90 = quantile(sizes, 0.9)
	return e
}

// JudgeRanges is Judge by number of decoding requests; ranges without iterations are left out.
func JudgeRanges(l costmodel.Model, obs []Observation) []Range {
	var ranges []Range
	from := 0
	for _, to := range rangeEnds {
		var within []Observation
		var times, laws []float64
		for _, o := range obs {
			if n := o.Work.Decoding; n >= from && n <= to {
				within, times, laws = append(within, o), append(times, o.mean()),
					append(laws, o.Predict(l)/float64(o.Steps))
			}
		}
		if len(within) > 0 {
			ranges = append(ranges, Range{from, to, quantile(times, 0.5), quantile(laws, 0.5),
				Judge(l, within)})
		}
		from = to + 1
	}
	return ranges
}

// Text is the range for people.
func (r Range) Text() string {
	if r.To == math.MaxInt {
		return fmt.Sprintf("%d and more", r.From)
	}
	return fmt.Sprintf("%d-%d", r.From, r.To)
}

// Split is a way to part observations into those fitted and those judged.
type Split struct {
	Name  string
	Train func(Observation) bool
}

// Splits: the second half asks whether a law holds where its data end, the twentieths whether it
// holds between them.
var Splits = []Split{
	{"second half of each run, fitted on the first", func(o Observation) bool {
		return 2*o.At < o.Length
	}},
	{"every other twentieth of each run, fitted on those between", func(o Observation) bool {
		return 20*o.At/max(1, o.Length)%2 == 0
	}},
}

// Held is the error of a split's law on what it was not fitted on.
type Held struct {
	Split  string          `json:"split"`
	Fitted int             `json:"fitted"` // exact iterations
	Law    costmodel.Model `json:"law"`
	Error  Error           `json:"error"`
	Ranges []Range         `json:"ranges"`
	Fault  string          `json:"fault,omitempty"` // why there is no figure
}

// CrossValidate judges the method: each split's law on the exact iterations it has not seen.
func CrossValidate(obs Observations, opt Options) []Held {
	opt.Resamples = -1
	var held []Held
	for _, split := range Splits {
		train, test := obs, []Observation{}
		train.All = nil
		h := Held{Split: split.Name}
		for _, o := range sorted(obs.All) {
			switch {
			case split.Train(o):
				train.All = append(train.All, o)
				if o.Exact() {
					h.Fitted++
				}
			case o.Exact():
				test = append(test, o)
			}
		}
		r, err := Fit(train, opt)
		switch {
		case err != nil:
			h.Fault = err.Error()
		case len(test) == 0:
			h.Fault = "no iterations to judge on"
		default:
			h.Law, h.Error, h.Ranges = r.Law, Judge(r.Law, test), JudgeRanges(r.Law, test)
		}
		held = append(held, h)
	}
	return held
}

func noise(exact []Observation, l costmodel.Model) float64 {
	logs := make([]float64, len(exact))
	for i, o := range exact {
		logs[i] = math.Log(o.Time / o.Predict(l))
	}
	middle := quantile(slices.Clone(logs), 0.5)
	for i := range logs {
		logs[i] -= middle
	}
	return deviation(logs)
}

func compareObservations(a, b Observation) int {
	return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Number, b.Number))
}

func sorted(obs []Observation) []Observation {
	return slices.SortedFunc(slices.Values(obs), compareObservations)
}
