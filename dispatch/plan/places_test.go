package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

func TestQueuedBatchesSayBehindWhatAndHowLong(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	ranked := scheduler.DefaultConfig()
	ranked.Policy, ranked.Urgency = "fifo", scheduler.UrgencyNever
	several := scheduler.DefaultConfig()
	several.Queues = []scheduler.QueueConfig{
		{Name: "of-u", Match: []scheduler.Match{{Tenants: []string{"u"}}}}}
	soon, later := noon.Add(time.Minute), noon.Add(2*time.Minute)
	type want struct {
		behind string
		in     time.Duration
	}
	for name, test := range map[string]struct {
		scheduler scheduler.Config
		batches   []Batch // the first one has a line in flight
		seconds   []float64
		want      []want // of the others
	}{
		"urgent ones go one after the other": {scheduler.DefaultConfig(), []Batch{
			{ID: "a", Tenant: "t", Deadline: soon}, {ID: "b", Tenant: "t", Deadline: later},
			{ID: "c", Tenant: "u"}}, []float64{60, 30, 100},
			[]want{{"a", 60 * time.Second}, {"", 90 * time.Second}}},
		"others share": {scheduler.DefaultConfig(), []Batch{{ID: "a", Tenant: "t"},
			{ID: "b", Tenant: "t"}, {ID: "c", Tenant: "t"}, {ID: "d", Tenant: "t"}},
			[]float64{6000, 60, 60, 60}, // 100 lines each
			[]want{{"a", 0}, {"a", 600 * time.Millisecond}, {"a", 1200 * time.Millisecond}}},
		"paused ones are not ahead": {scheduler.DefaultConfig(), []Batch{
			{ID: "a", Tenant: "t", Deadline: soon},
			{ID: "b", Tenant: "t", Deadline: soon, Paused: true},
			{ID: "c", Tenant: "t"}}, []float64{60, 30, 100},
			[]want{{}, {"a", 60 * time.Second}}},
		"ranked ones of two tenants": {ranked, []Batch{{ID: "a", Tenant: "t"},
			{ID: "b", Tenant: "t", Created: noon.Add(1)}, {ID: "c", Tenant: "u"},
			{ID: "d", Tenant: "u", Created: noon.Add(2)}}, []float64{60, 60, 20, 60},
			[]want{{"a", 120 * time.Second}, {}, {"", 40 * time.Second}}},
		"several queues are not predicted": {several, []Batch{{ID: "a", Tenant: "t"},
			{ID: "b", Tenant: "u"}}, []float64{60, 60}, []want{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlanner(t, DefaultConfig(), Deps{Scheduler: test.scheduler, Flow: flow,
				Random: rand.New(rand.NewPCG(1, 2))})
			p.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
			for i, b := range test.batches {
				if b.Created.IsZero() {
					b.Created = noon
				}
				b.Models = []ModelLines{{Model: "m", Lines: 100}}
				p.Step(noon, BatchPut{b})
				if i == 0 {
					p.Step(noon, Loaded{Key: JobKey{b.ID, "m"}, Lines: []Line{{}}, More: true})
				}
			}
			if s, _ := p.Status(noon, "a"); s.Waiting != Flowing || s.InFlight != 1 {
				t.Fatalf("the first batch has %d lines in flight and waits for %q", s.InFlight,
					s.Waiting)
			}
			p.pools[0].rate = rate{work: 1000 * rateMemory, seconds: rateMemory} // work is in ms
			for i, b := range test.batches {
				p.jobs[b.ID+"/m"].work = 1000 * test.seconds[i]
			}
			for i, b := range test.batches[1:] {
				s, _ := p.Status(noon, b.ID)
				reason := Queued
				if b.Paused {
					reason = Paused
				}
				if got := (want{s.Behind, s.StartsIn.Round(time.Millisecond)}); got !=
					test.want[i] || s.Waiting != reason {
					t.Errorf("%s waits for %q: %+v, want %+v", b.ID, s.Waiting, got, test.want[i])
				}
			}
		})
	}
}

// Without a rate nothing is said of the time, and a batch that has the pool to itself is loading.
func TestQueuedWithoutARate(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow,
		Random: rand.New(rand.NewPCG(1, 2))})
	p.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
	put := func(id string) {
		p.Step(noon, BatchPut{Batch{ID: id, Tenant: "t", Created: noon,
			Models: []ModelLines{{Model: "m", Lines: 5}}}})
	}
	put("a")
	if s, _ := p.Status(noon, "a"); s.Waiting != Loading {
		t.Errorf("a batch alone waits for %q", s.Waiting)
	}
	p.Step(noon, Loaded{Key: JobKey{"a", "m"}, Lines: []Line{{}}, More: true})
	put("b")
	if s, _ := p.Status(noon, "b"); s.Waiting != Queued || s.Behind != "a" || s.StartsIn != 0 {
		t.Errorf("got %+v", s)
	}
}

// Thousands of waiting batches are looked at together, and not every time.
func BenchmarkStatusOfQueued(b *testing.B) {
	p, err := New(DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(),
		Flow:   flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1}),
		Random: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		b.Fatal(err)
	}
	p.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
	var ids []string
	for i := range 10_000 {
		ids = append(ids, fmt.Sprint("batch-", i))
		p.Step(noon, BatchPut{Batch{ID: ids[i], Tenant: "t", Created: noon,
			Models: []ModelLines{{Model: "m", Lines: 100}}}})
		if i == 0 {
			p.Step(noon, Loaded{Key: JobKey{ids[i], "m"}, Lines: []Line{{}}, More: true})
		}
	}
	now := noon
	for b.Loop() { // one round of progress
		now = now.Add(250 * time.Millisecond)
		for _, id := range ids {
			p.Status(now, id)
		}
	}
}
