package autoscale

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// fakeRunner serves interactive requests and batch lines at constant rates. Requests are answered
// continuously.
type fakeRunner struct {
	id             string
	users, batch   float64 // requests a second
	prompt, output float64 // tokens of a request of users; a batch line has 1000 and 500
	began          time.Time
	offset         float64 // of the counters, in requests of users
}

const linePrompt, lineOutput = 1000, 500

func (f *fakeRunner) counters(at time.Time) Counters {
	s := at.Sub(f.began).Seconds()
	users, lines := f.users*s+f.offset, f.batch*s
	return Counters{at, users + lines, users*f.prompt + lines*linePrompt,
		users*f.output + lines*lineOutput}
}

func (f *fakeRunner) own(at time.Time) Counters {
	lines := f.batch * at.Sub(f.began).Seconds()
	return Counters{at, lines, lines * linePrompt, lines * lineOutput}
}

// watched runs runners for some seconds: samples each second, an own count every fifth.
func watched(t *Traffic, from time.Time, seconds int, runners ...*fakeRunner) (now time.Time) {
	for s := range seconds {
		now = from.Add(time.Duration(s) * time.Second)
		for _, r := range runners {
			t.Sampled(r.id, r.counters(now.Add(-300*time.Millisecond)))
			if s%5 == 0 {
				t.Computed(r.id, r.own(now))
			}
		}
		t.Interactive(now, ids(runners))
	}
	return now
}

func ids(runners []*fakeRunner) (all []string) {
	for _, r := range runners {
		all = append(all, r.id)
	}
	return all
}

func nearly(got, want float64) bool { return math.Abs(got-want) <= 1e-6*(1+want) }

func wantTraffic(t *testing.T, what string, got Interactive, rate, prompt, output float64) {
	t.Helper()
	if !got.Served || !nearly(got.Rate, rate) || !nearly(got.Mix.Prompt, prompt) ||
		!nearly(got.Mix.Output, output) {
		t.Errorf("%s: %.6g requests a second of %.6g and %.6g tokens, want %g of %g and %g", what,
			got.Rate, got.Mix.Prompt, got.Mix.Output, rate, prompt, output)
	}
}

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

func TestTrafficIsWhatBatchLinesLeave(t *testing.T) {
	var traffic Traffic
	a := &fakeRunner{id: "a", users: 3, batch: 5, prompt: 200, output: 100, began: dawn}
	b := &fakeRunner{id: "b", users: 1, batch: 0, prompt: 200, output: 100, began: dawn}
	now := watched(&traffic, dawn.Add(time.Minute), 61, a, b)
	wantTraffic(t, "after a minute", traffic.Interactive(now, []string{"a", "b"}), 4, 200, 100)
	a.users, b.users = 0, 0
	a.batch = 2
	a.began, b.began = now, now // its engine starts again
	traffic.Computed("a", a.own(now))
	traffic.Computed("b", b.own(now))
	now = watched(&traffic, now.Add(time.Second), 75, a, b)
	wantTraffic(t, "without users", traffic.Interactive(now, []string{"a", "b"}), 0, 200, 100)
}

func TestTrafficIsUnknown(t *testing.T) {
	nan := func(what string, got Interactive) {
		t.Helper()
		if !math.IsNaN(got.Rate) {
			t.Errorf("%s: %g requests a second, want unknown", what, got.Rate)
		}
	}
	var traffic Traffic
	nan("at the beginning", traffic.Interactive(dawn, nil))
	a := &fakeRunner{id: "a", users: 3, batch: 5, prompt: 200, output: 100, began: dawn}
	now := watched(&traffic, dawn, 9, a)
	nan("after 9 s", traffic.Interactive(now, []string{"a"}))
	now = watched(&traffic, now.Add(time.Second), 30, a)
	if got := traffic.Interactive(now, []string{"a"}); !nearly(got.Rate, 3) {
		t.Errorf("after 39 s: %g", got.Rate)
	}
	nan("without samples for 30 s", traffic.Interactive(now.Add(31*time.Second), []string{"a"}))

	var alone Traffic // nobody knows the batch lines
	for s := range 30 {
		alone.Sampled("a", a.counters(dawn.Add(time.Duration(s)*time.Second)))
	}
	nan("without counts of batch lines", alone.Interactive(dawn.Add(30*time.Second), []string{"a"}))

	var blind Traffic // the engine counts no requests
	for s := range 30 {
		at := dawn.Add(time.Duration(s) * time.Second)
		c := a.counters(at)
		c.Requests = math.NaN()
		blind.Sampled("a", c)
		blind.Computed("a", a.own(at))
	}
	nan("without a counter of requests", blind.Interactive(dawn.Add(30*time.Second), []string{"a"}))

	var unmixed Traffic // it counts no tokens
	for s := range 90 {
		at := dawn.Add(time.Duration(s) * time.Second)
		c := a.counters(at)
		c.OutputTokens = math.NaN()
		unmixed.Sampled("a", c)
		unmixed.Computed("a", a.own(at))
	}
	nan("without a mean request", unmixed.Interactive(dawn.Add(90*time.Second), []string{"a"}))
}

// A counter that begins again, that of the engine or that of our lines, leaves out its moment.
func TestTrafficOutlivesRestarts(t *testing.T) {
	for _, what := range []string{"engine", "own count"} {
		var traffic Traffic
		a := &fakeRunner{id: "a", users: 3, batch: 5, prompt: 200, output: 100,
			began: dawn.Add(-time.Hour)}
		now := watched(&traffic, dawn, 40, a)
		again := *a
		if what == "engine" {
			again.offset -= 3 * 3600
		} else {
			again.began = now
			again.offset = a.counters(now).Requests + 1e6
		}
		now = watched(&traffic, now.Add(time.Second), 40, &again)
		got := traffic.Interactive(now, []string{"a"})
		if !nearly(got.Rate, 3) && what == "engine" || got.Rate < 0 || got.Rate > 3.3 {
			t.Errorf("%s: %g requests a second, want 3", what, got.Rate)
		}
	}
}

// Runners come and go, and of some nothing is known.
func TestTrafficOfRunnersThatComeAndGo(t *testing.T) {
	var traffic Traffic
	var all []*fakeRunner
	for i := range 4 {
		all = append(all, &fakeRunner{id: fmt.Sprint("r", i), users: 2, batch: 1, prompt: 300,
			output: 50, began: dawn.Add(-time.Hour)})
	}
	now := watched(&traffic, dawn, 60, all...)
	names := ids(all)
	wantTraffic(t, "four", traffic.Interactive(now, names), 8, 300, 50)
	wantTraffic(t, "one has left", traffic.Interactive(now, names[:3]), 6, 300, 50)
	wantTraffic(t, "one is new", traffic.Interactive(now, append(names[:3:3], "new")), 6, 300, 50)
	now = watched(&traffic, now.Add(time.Second), 25, all[:3]...)
	missing := append(names[:3:3], "new")
	traffic.Interactive(now, missing)
	now = watched(&traffic, now.Add(time.Second), 25, all[:3]...)
	if got := traffic.Interactive(now, names[:3]); !nearly(got.Rate, 6) {
		t.Errorf("three: %g", got.Rate)
	}
	for s := range 25 { // listed, and never seen
		traffic.Interactive(now.Add(time.Duration(s)*time.Second), missing)
	}
	later := now.Add(24 * time.Second)
	if got := traffic.Interactive(later, missing); !nearly(got.Rate, 8) {
		t.Errorf("with one of four unknown: %g requests a second, want 8", got.Rate)
	}
	if got := traffic.Interactive(later, append(missing, "x", "y")); math.IsNaN(got.Rate) {
		t.Error("two runners that have just come make the rate unknown")
	}
}

// Whatever comes, no number is negative, and what is kept is bounded.
func TestTrafficIsNeverNegative(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	value := func() float64 {
		if random.IntN(10) == 0 {
			return math.NaN()
		}
		return float64(random.IntN(1000))
	}
	var traffic Traffic
	now := dawn
	for range 20_000 {
		now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		at := now.Add(time.Duration(random.IntN(4000)-3000) * time.Millisecond)
		id := fmt.Sprint(random.IntN(5))
		c := Counters{at, value(), value(), value()}
		if random.IntN(2) == 0 {
			traffic.Sampled(id, c)
		} else {
			traffic.Computed(id, c)
		}
		got := traffic.Interactive(now, []string{"0", "1", "2"})
		if got.Rate < 0 || math.IsInf(got.Rate, 0) || !(got.Mix.Prompt >= 0) ||
			!(got.Mix.Output >= 0) {
			t.Fatalf("%+v", got)
		}
	}
	if len(traffic.runners) > 3 {
		t.Errorf("%d runners are kept of 3", len(traffic.runners))
	}
	for i := range 10 * trafficSamples {
		traffic.Sampled("0", Counters{At: now.Add(time.Duration(i+10_000) * time.Millisecond)})
	}
	if n := len(traffic.runner("0").all); n > trafficSamples {
		t.Errorf("%d samples are kept", n)
	}
}
