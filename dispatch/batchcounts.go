package dispatch

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// batchCounts counts the batches that have not ended, for metrics.
type batchCounts struct {
	states   map[string]int
	verdicts map[store.Verdict]int
	atRisk   int
}

// pausedState is the state that metrics show for batches in progress that are paused.
const pausedState = "paused"

// livingStates lists the states that metrics show, also if no batch has one.
var livingStates = []string{string(store.Validating), string(store.InProgress), pausedState,
	string(store.Finalizing), string(store.Cancelling)}

// add counts a run with the verdict of its forecast; empty: there is none.
func (c *batchCounts) add(r *work.State, now time.Time, verdict store.Verdict) {
	if c.states == nil {
		c.states, c.verdicts = map[string]int{}, map[store.Verdict]int{}
	}
	state := string(r.Batch.State)
	if r.Batch.Paused && r.Batch.State == store.InProgress {
		state = pausedState
	}
	c.states[state]++
	if verdict != "" {
		c.verdicts[verdict]++
	}
	if state == string(store.InProgress) && atRisk(r, now, verdict) {
		c.atRisk++
	}
}

// atRisk reports whether a run, which is in progress, will probably miss its deadline: by its
// forecast or, without one, because its lines would end later at the mean rate since they began,
// and at the present rate too. Without a result half of the time may pass. A process that does not
// lead the batch does not judge it.
func atRisk(r *work.State, now time.Time, verdict store.Verdict) bool {
	b := &r.Batch
	if verdict != "" {
		return verdict != store.VerdictOK
	}
	if b.Deadline.IsZero() || b.InProgressAt.IsZero() || !r.Counted {
		return false
	}
	left, took := b.Deadline.Sub(now).Seconds(), now.Sub(b.InProgressAt).Seconds()
	if left <= 0 {
		return true
	}
	done := r.Results.Completed + r.Results.Failed
	if done == 0 {
		return took > left
	}
	rate := max(float64(done)/max(took, 1), r.Rate)
	return float64(b.Counts.Total-done) > rate*left
}
