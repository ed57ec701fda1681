package api

import (
	"slices"
	"time"

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
	// when it would be done if one more replica were started now; null: no earlier
	WithOneMore *int64 `json:"predicted_finish_with_one_more"`
}

func showForecast(f store.Forecast) forecast {
	shown := forecast{PredictedFinish: orNullTime(f.Finish)}
	if f.Verdict != "" {
		shown.Verdict = &f.Verdict
	}
	if !f.Earliest.IsZero() && !f.Latest.IsZero() {
		shown.PredictedBand = []int64{f.Earliest.Unix(), f.Latest.Unix()}
	}
	if !f.OneMore.IsZero() && (f.Finish.IsZero() || f.Finish.Sub(f.OneMore) >= worthwhile) {
		shown.WithOneMore = orNullTime(f.OneMore)
	}
	return shown
}

// worthwhile is the time by which a batch must be done earlier for a replica to be worth a word.
const worthwhile = time.Minute

// equal reports whether users see the same in both.
func (f forecast) equal(g forecast) bool {
	return same(f.Verdict, g.Verdict) && same(f.PredictedFinish, g.PredictedFinish) &&
		slices.Equal(f.PredictedBand, g.PredictedBand) && same(f.WithOneMore, g.WithOneMore)
}

func same[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
