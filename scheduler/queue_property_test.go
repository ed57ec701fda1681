package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/scheduler"
)

func ptr[T any](v T) *T { return &v }

// drawConfig draws one of the shapes a configuration takes. Quanta and weights are whole binary
// fractions, so that the slow queue's sums are the same to the last bit.
func drawConfig(t *rapid.T) scheduler.Config {
	cfg := configOf(rapid.SampledFrom(scheduler.Policies()).Draw(t, "policy"))
	cfg.Urgency = rapid.SampledFrom([]scheduler.Urgency{"auto", "always", "never"}).Draw(t,
		"urgency")
	cfg.Quantum = rapid.SampledFrom([]float64{16, 64, 1024}).Draw(t, "quantum")
	cfg.BetweenQueues = rapid.SampledFrom(scheduler.Arbiters()).Draw(t, "between")
	cfg.TenantWeights = map[string]float64{"t1": 2, "t2": 0.5}
	queues := []scheduler.QueueConfig{
		{Name: "high", Match: []scheduler.Match{{MinPriority: ptr(2)},
			{Tenants: []string{"t3"}, Models: []string{"m*"}}}, Policy: "fifo", Weight: 4},
		{Name: "short", Match: []scheduler.Match{{MaxWindow: time.Hour}}, Policy: "edf"},
		{Name: scheduler.DefaultQueue, Weight: 2},
		{Name: "slow", Match: []scheduler.Match{{MinWindow: 24 * time.Hour, MaxPriority: ptr(0)}}},
	}
	cfg.Queues = rapid.SampledFrom([][]scheduler.QueueConfig{nil, queues[:2], queues}).Draw(t,
		"queues")
	return cfg
}

func drawJob(t *rapid.T, now time.Time, timed bool) scheduler.Job {
	minutes := rapid.IntRange(-30, 120)
	j := scheduler.Job{
		ID:       fmt.Sprintf("j%d", rapid.IntRange(0, 9).Draw(t, "id")),
		Tenant:   fmt.Sprintf("t%d", rapid.IntRange(0, 4).Draw(t, "tenant")),
		Model:    rapid.SampledFrom([]string{"m1", "m2", "org/m3"}).Draw(t, "model"),
		Priority: rapid.IntRange(-1, 3).Draw(t, "priority"),
		Window: rapid.SampledFrom([]time.Duration{0, time.Hour, 24 * time.Hour}).Draw(t,
			"window"),
		Created: noon.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "created")) * time.Second),
		Lines:   rapid.IntRange(1, 100).Draw(t, "lines"),
		// whole seconds at each rate below
		Work: float64(rapid.IntRange(0, 60).Draw(t, "work") * 1000),
		Rate: rapid.SampledFrom([]float64{0, 8, 1000}).Draw(t, "rate"),
	}
	if timed && rapid.Bool().Draw(t, "has deadline") {
		j.Deadline = now.Add(time.Duration(minutes.Draw(t, "deadline")) * time.Minute)
	}
	if timed && rapid.Bool().Draw(t, "has done by") {
		j.DoneBy = now.Add(time.Duration(minutes.Draw(t, "done by")) * time.Minute)
	}
	if timed && rapid.Bool().Draw(t, "has start") {
		j.StartBy = now.Add(time.Duration(minutes.Draw(t, "start by")) * time.Minute)
	}
	return j
}

// drawWork draws the work of a line: a fraction of a quantum, or many quanta.
func drawWork(t *rapid.T) float64 {
	return float64(rapid.SampledFrom([]int{1, 3, 7, 30, 500, 4000}).Draw(t, "work"))
}

func TestQueueAgreesWithTheSlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		fast, err := scheduler.NewQueue(cfg)
		if err != nil {
			t.Fatal(err)
		}
		slow, now := newSlowQueue(cfg), noon
		fast.Next(now)
		slow.Next(now)
		anyID := func(t *rapid.T) string {
			return fmt.Sprintf("j%d", rapid.IntRange(0, 10).Draw(t, "id"))
		}
		timed := rapid.Bool().Draw(t, "timed") // without, the turns of many tenants are seen
		put := func(t *rapid.T) { j := drawJob(t, now, timed); fast.Put(j); slow.Put(j) }
		for range rapid.IntRange(0, 10).Draw(t, "jobs at first") {
			put(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put":    put,
			"park":   func(t *rapid.T) { id := anyID(t); fast.Park(id); slow.Park(id) },
			"unpark": func(t *rapid.T) { id := anyID(t); fast.Unpark(id); slow.Unpark(id) },
			"remove": func(t *rapid.T) { id := anyID(t); fast.Remove(id); slow.Remove(id) },
			"start": func(t *rapid.T) {
				id, _ := fast.Next(now)
				work := drawWork(t)
				fast.Charge(id, work)
				slow.Charge(id, work)
			},
			"charge": func(t *rapid.T) {
				id, work := anyID(t), drawWork(t)
				fast.Charge(id, work)
				slow.Charge(id, work)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "s")) * time.Second)
			},
			"": func(t *rapid.T) {
				gotID, gotOK := fast.Next(now)
				wantID, wantOK := slow.Next(now)
				if gotID != wantID || gotOK != wantOK {
					t.Fatalf("next: got %q %v, want %q %v", gotID, gotOK, wantID, wantOK)
				}
				if got, want := fast.Wake(now), slow.Wake(now); !got.Equal(want) {
					t.Fatalf("wake: got %v, want %v", got, want)
				}
				checkPositions(t, fast, slow, now)
			},
		})
	})
}

func checkPositions(t *rapid.T, fast *scheduler.Queue, slow *slowQueue, now time.Time) {
	positions := fast.Snapshot(now)
	if len(positions) != len(slow.jobs) || fast.Len() != len(slow.jobs) {
		t.Fatalf("%d standings of %d jobs, want %d", len(positions), fast.Len(), len(slow.jobs))
	}
	offered := 0
	for i, s := range positions {
		j := slow.find(s.Job.ID)
		class, changes := slow.classAt(j.queue, j.Job, now)
		if s.Job != j.Job || s.Queue != slow.queues[j.queue].Name || s.Class != class ||
			s.Parked != j.parked || !s.Changes.Equal(changes) {
			t.Fatalf("position %+v, want %+v %v until %v", s, j, class, changes)
		}
		if !s.Parked {
			offered++
		}
		if i > 0 && positions[i-1].Queue == s.Queue && positions[i-1].Class == s.Class &&
			!before(slow.find(positions[i-1].Job.ID), j) {
			t.Fatalf("%s is before %s", positions[i-1].Job.ID, s.Job.ID)
		}
	}
	if got := fast.Offered(); got != offered {
		t.Fatalf("offered %d, want %d", got, offered)
	}
}
