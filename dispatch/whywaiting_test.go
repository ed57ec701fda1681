package dispatch

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// A batch that starts no more lines waits for no turn of its lines, but for room for its results.
func TestBatchesThatEndAreNotQueued(t *testing.T) {
	for _, state := range []store.State{store.InProgress, store.Finalizing, store.Cancelling} {
		for reason, lasts := range map[plan.Reason]bool{plan.Queued: false, plan.AtLimit: false,
			plan.DiskFull: true, plan.StoreDown: true} {
			got := whyWaiting(&store.Batch{State: state}, plan.BatchStatus{Waiting: reason,
				Behind: "batch_1"}, nil, "")
			if want := lasts || state == store.InProgress; (got != "") != want {
				t.Errorf("a batch %s with lines that wait for %s: %q", state, reason, got)
			}
		}
	}
}

// The reason that runners fail says how many of how many do, and what one of them answers.
func TestFailingRunnersAreCounted(t *testing.T) {
	s := plan.BatchStatus{Waiting: plan.RunnersFailing, Failing: plan.RunnerStatus{ID: "a",
		Bad: 5, Judged: 5, Failed: plan.RunnerFailure{Outcome: plan.Failed, Status: 500}}}
	const answered = "a answered 500 (failed), 5 of its last 5 lines were answered badly"
	for of, want := range map[int]string{1: "runners_failing: " + answered,
		3: "runners_failing: 2 of 3 runners answer with errors: " + answered} {
		s.FailingRunners, s.Runners = min(of, 2), of
		if got := whyWaiting(&store.Batch{}, s, nil, ""); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
