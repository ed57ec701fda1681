package plan

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

func TestSetDoneBy(t *testing.T) {
	p := &pool{rate: rate{work: 400 * 30, seconds: 30}} // 400 per second
	for _, queue := range []**scheduler.Queue{&p.starts, &p.loads} {
		q, err := scheduler.NewQueue(scheduler.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		*queue = q
	}
	of := func(id string, hours float64, due time.Duration) *job {
		return &job{id: id, lines: 1, work: hours * 3600 * 400,
			batch: &batchState{Batch: Batch{Deadline: noon.Add(due)}}}
	}
	const hour = time.Hour
	for _, test := range []struct {
		name string
		due  []*job
		want map[string]time.Duration // from noon; absent: the deadline
	}{
		{"one", []*job{of("a", 1, 2*hour)}, nil},
		{"due together", []*job{of("a", 1, 3*hour), of("b", 1, 3*hour)},
			map[string]time.Duration{"a": 3 * hour / 2}},
		{"a chain", []*job{of("a", 1, 5*hour), of("b", 1, 5*hour), of("c", 3, 7*hour)},
			map[string]time.Duration{"a": hour, "b": 5 * hour / 2}},
		{"time between", []*job{of("a", 1, 2*hour), of("b", 1, 9*hour)}, nil},
		{"one late by itself", []*job{of("a", 1, 2*hour), of("b", 9, 3*hour)}, nil},
	} {
		p.setDoneBy(noon, test.due, 1)
		if len(p.doneBy) != len(test.want) {
			t.Errorf("%s: got %v, want %v after noon", test.name, p.doneBy, test.want)
		}
		for id, after := range test.want {
			if got := p.doneBy[id].Sub(noon); got != after {
				t.Errorf("%s: %s must be done %v after noon, want %v", test.name, id, got, after)
			}
		}
	}
}

// The time by which a job must be done moves with the others' work, but only in steps.
func TestDoneByMovesInSteps(t *testing.T) {
	w := lookAheadDriver(t, 8, 1_000_000)
	for _, id := range []string{"a", "b"} {
		w.put(Batch{ID: id, Created: noon, Deadline: noon.Add(time.Hour)}, chunksOf(8, 100))
	}
	pool := w.planner.pools[0]
	due := w.planner.due(pool)
	pool.rate = rate{}
	doneBy := func(work float64) time.Time {
		due[1].work = work
		pool.setDoneBy(noon, due, 100)
		return pool.doneBy[due[0].id]
	}
	first := doneBy(100_000)
	if got := doneBy(98_700); !got.Equal(first) {
		t.Errorf("13 seconds of work less: moves from %v to %v, want no change", first, got)
	}
	if got := doneBy(96_000); got.Sub(first) != time.Minute {
		t.Errorf("40 seconds of work less: moves from %v to %v, want 1m", first, got)
	}
}
