package dispatch

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// start is a time in tests that need no other.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestBatchesAtRisk(t *testing.T) {
	const hour = time.Hour
	for name, test := range map[string]struct {
		state          store.State
		paused, leads  bool
		took, deadline time.Duration // since its lines began; deadline 0: none
		done           int           // of 100 lines
		recent         float64       // lines per second
		verdict        store.Verdict // empty: no forecast
		want           bool
	}{
		"in time":              {store.InProgress, false, true, hour, 10 * hour, 20, 0, "", false},
		"late":                 {store.InProgress, false, true, hour, 10 * hour, 5, 0, "", true},
		"late, but faster now": {store.InProgress, false, true, hour, 10 * hour, 5, 1, "", false},
		"no result yet":        {store.InProgress, false, true, hour, 10 * hour, 0, 0, "", false},
		"no result, half gone": {store.InProgress, false, true, 6 * hour, 10 * hour, 0, 0, "",
			true},
		"deadline has passed": {store.InProgress, false, true, 11 * hour, 10 * hour, 99, 0, "",
			true},
		"best effort": {store.InProgress, false, true, hour, 0, 0, 0, "", false},
		"paused":      {store.InProgress, true, true, hour, 10 * hour, 5, 0, "", false},
		"ending":      {store.Finalizing, false, true, hour, 10 * hour, 5, 0, "", false},
		"late, but replicas come": {store.InProgress, false, true, hour, 10 * hour, 5, 0,
			store.VerdictOK, false},
		"in time, but others come first": {store.InProgress, false, true, hour, 10 * hour, 20, 0,
			store.VerdictAtRisk, true},
		"another process leads": {store.InProgress, false, false, hour, 10 * hour, 5, 0, "", false},
	} {
		now := start.Add(test.took)
		b := store.Batch{State: test.state, Paused: test.paused, InProgressAt: start,
			Counts: store.Counts{Total: 100}}
		if test.deadline > 0 {
			b.Deadline = start.Add(test.deadline)
		}
		r := work.State{Batch: b, Counted: test.leads, Rate: test.recent, Results: store.Tally{
			Completed: test.done / 2, Failed: test.done - test.done/2}}
		var counts batchCounts
		if counts.add(&r, now, test.verdict); counts.atRisk == 1 != test.want {
			t.Errorf("%s: at risk is %v, want %v", name, counts.atRisk == 1, test.want)
		}
	}
}
