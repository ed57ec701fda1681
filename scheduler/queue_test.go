package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// order removes all jobs in the order of Next.
func order(q *scheduler.Queue, now time.Time) (ids []string) {
	for id, ok := q.Next(now); ok; id, ok = q.Next(now) {
		ids = append(ids, id)
		q.Remove(id)
	}
	return ids
}

func TestTimeMovesJobsThroughTheClasses(t *testing.T) {
	q := newQueue(t, scheduler.DefaultConfig())
	// Must start at 14:00; half of its two hours is reserve, its guard a tenth of the window.
	q.Put(scheduler.Job{ID: "big", Tenant: "a", Window: 4 * time.Hour,
		Deadline: noon.Add(4 * time.Hour), Work: 7.2e6, Rate: 1000})
	// Has no work; its guard is GuardMin, ten minutes.
	q.Put(scheduler.Job{ID: "small", Tenant: "b", Window: time.Hour,
		Deadline: noon.Add(3 * time.Hour)})
	// Is due in the evening, but must start at 12:30.
	q.Put(scheduler.Job{ID: "prompt", Tenant: "c", StartBy: noon.Add(30 * time.Minute),
		Deadline: noon.Add(9 * time.Hour)})
	classes := func(now time.Time) string {
		got := map[string]string{}
		for _, s := range q.Snapshot(now) {
			got[s.Job.ID] = s.Class.String()
		}
		return got["big"] + " " + got["small"] + " " + got["prompt"]
	}
	now := noon
	for _, want := range []struct{ at, classes, next string }{
		{"12:00:00", "regular regular regular", "big"}, // its tenant was added first
		{"12:20:00", "regular regular urgent", "prompt"},
		{"12:36:00", "urgent regular urgent", "prompt"},
		{"14:50:00", "urgent urgent urgent", "prompt"},
		{"15:00:00", "urgent late urgent", "prompt"},
		{"16:00:00", "late late urgent", "prompt"},
		// tenants take turns again, in the order in which they were added
		{"21:00:00", "late late late", "small"},
	} {
		if got := now.Format(time.TimeOnly); got != want.at {
			t.Fatalf("the order changes at %s, want %s", got, want.at)
		}
		if next, _ := q.Next(now); next != want.next {
			t.Errorf("%s: next is %s, want %s", want.at, next, want.next)
		}
		if got := classes(now); got != want.classes {
			t.Errorf("%s: classes of big, small, prompt are %s, want %s", want.at, got,
				want.classes)
		}
		now = q.Wake(now)
	}
	if !now.IsZero() {
		t.Errorf("after all deadlines: wake at %v, want never", now)
	}
}

func TestUrgentJobsDoNotShareAndLateOnesGoLast(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.Quantum = 1
	q := newQueue(t, cfg)
	q.Put(scheduler.Job{ID: "late", Tenant: "z", Deadline: noon.Add(-time.Second)})
	q.Put(scheduler.Job{ID: "regular", Tenant: "b"})
	q.Put(scheduler.Job{ID: "urgent2", Tenant: "a", Deadline: noon.Add(2 * time.Minute)})
	q.Put(scheduler.Job{ID: "urgent1", Tenant: "a", Deadline: noon.Add(time.Minute)})
	for range 5 {
		if id, _ := q.Next(noon); id != "urgent1" {
			t.Fatalf("next is %s, want urgent1 again and again", id)
		}
		q.Charge("urgent1", 1e6)
	}
	if got, want := order(q, noon), []string{"urgent1", "urgent2", "regular",
		"late"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestUrgencyFollowsPolicyAndSwitch(t *testing.T) {
	for _, test := range []struct {
		policy  string
		urgency scheduler.Urgency
		first   string
	}{
		{"fifo", scheduler.UrgencyAuto, "old"},
		{"fifo", scheduler.UrgencyAlways, "pressing"},
		{"priority", scheduler.UrgencyAuto, "old"},
		{"priority", scheduler.UrgencyAlways, "pressing"},
		{"sjf", scheduler.UrgencyAuto, "old"},
		{"edf", scheduler.UrgencyAuto, "pressing"},
		{"slack", scheduler.UrgencyAuto, "pressing"},
	} {
		cfg := configOf(test.policy)
		cfg.Urgency = test.urgency
		q := newQueue(t, cfg)
		q.Put(scheduler.Job{ID: "old", Created: noon.Add(-time.Hour), Priority: 1})
		q.Put(scheduler.Job{ID: "pressing", Created: noon, Work: 1, Deadline: noon.Add(
			time.Minute)})
		if id, _ := q.Next(noon); id != test.first {
			t.Errorf("%s, urgency %s: first is %s, want %s", test.policy, test.urgency, id,
				test.first)
		}
	}
}

func TestNamedQueues(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.Queues = []scheduler.QueueConfig{
		{Name: "gold", Match: []scheduler.Match{{Tenants: []string{"acme-*"}},
			{MinPriority: ptr(5)}}, Policy: "fifo"},
		{Name: "large models", Match: []scheduler.Match{{Models: []string{"*/*-70b"}}}},
		{Name: "rest", Match: []scheduler.Match{{MinWindow: 48 * time.Hour}}},
	}
	q := newQueue(t, cfg)
	for id, j := range map[string]scheduler.Job{
		"tenant":   {Tenant: "acme-x", Window: time.Hour},
		"priority": {Priority: 5, Window: time.Hour},
		"model":    {Model: "meta-llama/llama-70b", Priority: 4, Window: time.Hour},
		"both":     {Tenant: "acme-", Model: "a/b-70b", Window: time.Hour},
		"window":   {Window: 72 * time.Hour},
		"patient":  {},
		"nobody":   {Tenant: "acm", Model: "llama-70b", Window: time.Hour},
	} {
		j.ID = id
		q.Put(j)
	}
	got := map[string]string{}
	for _, s := range q.Snapshot(noon) {
		got[s.Job.ID] = s.Queue
	}
	for id, want := range map[string]string{
		"tenant": "gold", "priority": "gold", "both": "gold", "model": "large models",
		"window": "rest", "patient": "rest", "nobody": "default",
	} {
		if got[id] != want {
			t.Errorf("%s is in queue %q, want %q", id, got[id], want)
		}
	}
}

func TestWeightedQueuesShareByWeight(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.BetweenQueues = "weighted"
	cfg.Queues = []scheduler.QueueConfig{
		{Name: "three", Match: []scheduler.Match{{MinPriority: ptr(1)}}, Weight: 3},
	}
	q := newQueue(t, cfg)
	q.Put(scheduler.Job{ID: "three", Priority: 1})
	q.Put(scheduler.Job{ID: "one"})
	served := map[string]float64{}
	for i := range 4000 {
		id, _ := q.Next(noon)
		work := float64(1 + i%7)
		q.Charge(id, work)
		served[id] += work
	}
	if ratio := served["three"] / served["one"]; ratio < 2.99 || ratio > 3.01 {
		t.Errorf("served %v, a ratio of %.3f, want 3", served, ratio)
	}
}

func TestBadChargesAreIgnored(t *testing.T) {
	q := newQueue(t, scheduler.DefaultConfig())
	q.Put(scheduler.Job{ID: "a", Tenant: "a"})
	q.Put(scheduler.Job{ID: "b", Tenant: "b"})
	nan := 0.0
	for _, work := range []float64{-1e9, 0, nan / nan} {
		q.Charge("a", work)
		q.Charge("nobody", 1)
	}
	if id, _ := q.Next(noon); id != "a" {
		t.Errorf("next is %s, want a", id)
	}
	q.Charge("a", 1/nan)
	if id, _ := q.Next(noon); id != "b" {
		t.Errorf("next is %s, want b after a's infinite work", id)
	}
}

// A clock that was a day ahead for a moment made all jobs late.
func TestClockThatWasAheadSpoilsNoOrder(t *testing.T) {
	q := newQueue(t, scheduler.DefaultConfig())
	put := func(id string, due time.Duration) {
		q.Put(scheduler.Job{ID: id, Tenant: id, Window: time.Hour, Deadline: noon.Add(due)})
	}
	classes := func(now time.Time) (got string) {
		for _, id := range []string{"soon", "parked", "later", "new"} {
			for _, s := range q.Snapshot(now) {
				if s.Job.ID == id {
					got += " " + s.Class.String()
				}
			}
		}
		return got
	}
	put("soon", 2*time.Minute)
	put("parked", 2*time.Minute)
	put("later", 9*time.Hour)
	q.Park("parked")
	q.Next(noon.Add(24 * time.Hour))
	q.Next(noon.Add(24*time.Hour - 30*time.Second))
	if got := classes(noon.Add(24*time.Hour - 30*time.Second)); got != " late late late" {
		t.Errorf("a day ahead: got%s, want three times late", got)
	}
	if next, _ := q.Next(noon); next != "soon" {
		t.Errorf("next is %s, want soon", next)
	}
	q.Unpark("parked")
	put("new", 3*time.Minute)
	if got := classes(noon); got != " urgent urgent regular urgent" {
		t.Errorf("got%s, want urgent urgent regular urgent", got)
	}
	if got := order(q, noon); !slices.Equal(got, []string{"parked", "soon", "new", "later"}) {
		t.Errorf("got the order %v", got)
	}
}
