package dispatch

import (
	"testing"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
)

// Users see which part of the store is away, where the store is what their batch waits for.
func TestAwayPartOfTheStoreIsNamed(t *testing.T) {
	const bucket = "The bucket does not answer."
	for _, test := range []struct {
		blocked    plan.Reason
		away, want string
	}{
		{plan.StoreDown, bucket, "store_unreachable: The bucket does not answer. Check the " +
			"store, and the log."},
		{plan.StoreDown, "", plan.StoreDown.Text()},
		{plan.DiskFull, bucket, plan.DiskFull.Text()},
		{plan.Flowing, bucket, ""},
	} {
		r := work.State{Blocked: test.blocked}
		post := progressOf(&r, plan.BatchStatus{}, true, reported{away: test.away})
		if got := post.Waiting; got != test.want {
			t.Errorf("blocked by %q with %q: got %q, want %q", test.blocked, test.away, got,
				test.want)
		}
	}
}
