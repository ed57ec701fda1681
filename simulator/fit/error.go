package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
)

// Error is the error of a cost model on measured iterations: (predicted - measured) / measured.
type Error struct {
	Points int     `json:"points"`
	Mean   float64 `json:"mean"` // of the absolute error
	P90    float64 `json:"p90"`  // of the absolute error
	Bias   float64 `json:"bias"` // mean with sign; above 0: the predictions are too slow
}

// Range is the error on iterations with From to To decoding requests.
type Range struct {
	From      int     `json:"from"`
	To        int     `json:"to"`
	Measured  float64 `json:"median_ms"`           // measured
	Predicted float64 `json:"predicted_median_ms"` // for the same iterations
	Error     Error   `json:"error"`
}

// rangeEnds are the largest numbers of requests of the ranges.
var rangeEnds = []int{8, 16, 24, 32, 40, 48, 56, 72, 96, 112, 128, 192, 256, 384, 512, math.MaxInt}

// evaluate returns the error of a cost model on observations.
func evaluate(l costmodel.Model, obs []Observation) Error {
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

// evaluateRanges is evaluate by number of decoding requests; ranges without iterations are left
// out.
func evaluateRanges(l costmodel.Model, obs []Observation) []Range {
	var ranges []Range
	from := 0
	for _, to := range rangeEnds {
		var within []Observation
		var times, predicted []float64
		for _, o := range obs {
			if n := o.Work.Decoding; n >= from && n <= to {
				within, times, predicted = append(within, o), append(times, o.mean()),
					append(predicted, o.Predict(l)/float64(o.Steps))
			}
		}
		if len(within) > 0 {
			ranges = append(ranges, Range{from, to, quantile(times, 0.5), quantile(predicted, 0.5),
				evaluate(l, within)})
		}
		from = to + 1
	}
	return ranges
}

// Text formats the range.
func (r Range) Text() string {
	if r.To == math.MaxInt {
		return fmt.Sprintf("%d and more", r.From)
	}
	return fmt.Sprintf("%d-%d", r.From, r.To)
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
