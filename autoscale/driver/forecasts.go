package driver

import (
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/store"
)

// ofBatches joins the forecasts of jobs to those of their batches, which are given by job. oneMore
// is when jobs would be done with one more replica.
func ofBatches(
	batches map[string]string, jobs []autoscale.Forecast, oneMore map[string]time.Time,
) map[string]store.Forecast {
	joined := make(map[string]store.Forecast, len(jobs))
	for _, f := range jobs {
		batch := batches[f.Job]
		joined[batch] = joined[batch].Join(store.Forecast{Verdict: store.Verdict(f.Verdict),
			Finish: f.Finish, Earliest: f.Earliest, Latest: f.Latest,
			OneMore: oneMore[f.Job]})
	}
	return joined
}
