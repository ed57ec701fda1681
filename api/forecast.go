package api

import (
	"slices"

	"github.com/tidefill/tidefill/store"
)

// forecast is the part of a `tidefill` object that says whether a batch will meet its deadline. All
// of it is null if nothing is known.
type forecast struct {
	Verdict *store.Verdict `json:"verdict"`
	// when the batch will be done, with the replicas that are planned; null: too late to be planned
	PredictedFinish *int64 `json:"predicted_finish"`
	// the earliest and the latest time at which it will probably be done
	PredictedBand []int64 `json:"predicted_band"`
}

func showForecast(f store.Forecast) forecast {
	shown := forecast{PredictedFinish: orNullTime(f.Finish)}
	if f.Verdict != "" {
		shown.Verdict = &f.Verdict
	}
	if !f.Earliest.IsZero() && !f.Latest.IsZero() {
		shown.PredictedBand = []int64{f.Earliest.Unix(), f.Latest.Unix()}
	}
	return shown
}

// equal reports whether users see the same in both.
func (f forecast) equal(g forecast) bool {
	return same(f.Verdict, g.Verdict) && same(f.PredictedFinish, g.PredictedFinish) &&
		slices.Equal(f.PredictedBand, g.PredictedBand)
}

func same[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
