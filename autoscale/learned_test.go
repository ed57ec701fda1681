package autoscale

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// controlling is a fleet as a controller of the simulation of other tests.
type controlling struct{ *Fleet }

func (controlling) Name() string { return "fleet" }

// saved returns what a fleet has learned, as JSON.
func saved(t faulter, f *Fleet, now time.Time) []byte {
	text, err := json.Marshal(f.Learned(now))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return text
}

// restored returns a new fleet that has taken over what was saved.
func restored(t faulter, text []byte, now time.Time, age time.Duration) *Fleet {
	var all []PoolLearned
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v", err)
	}
	f := newFleet(t)
	for _, l := range all {
		if err := f.Recall(now, l, age); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return f
}

// dayOfChat is a pool with chat by day, beside one that is scaled from zero.
func dayOfChat(t faulter, fleet *Fleet) *simulation {
	chat, spare := serving(chatPool(30, 0), "chat", "m"), serving(batchPool(8), "spare", "m")
	chat.Lines, spare.Lines = batchPool(1).Lines, batchPool(1).Lines // for simulation.harvest
	chat.Price, spare.Price = 1, 1
	return &simulation{t: t, late: true, controller: controlling{fleet}, cold: 2 * time.Minute,
		state: State{Pools: []PoolState{with(chat, 5), spare}}}
}

// chatRate is the rate of a service by day with noise.
func chatRate(now time.Time, random *rand.Rand) float64 {
	hour := now.Sub(now.Truncate(day)).Hours()
	return (10 + 8*math.Sin((hour-8)/24*2*math.Pi)) * (0.95 + 0.1*random.Float64())
}

// A fleet that takes over decides to the last bit as the one that goes on.
func TestRestoredFleetDecidesAsBefore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fleet := newFleet(t)
	l := dayOfChat(t, fleet)
	var twin *Fleet
	next, compared, infeasible := noon, 0, 0
	l.onStep = func(d Decision) {
		if twin != nil {
			if diff := cmp.Diff(d, twin.Step(l.now, l.state)); diff != "" {
				t.Fatalf("%s: -going on +taken over\n%s", l.now.Sub(noon), diff)
			}
			compared++
		}
		if !feasible(d) {
			infeasible++
		}
		if !l.now.Before(next) {
			text := saved(t, fleet, l.now)
			if twin != nil {
				if diff := cmp.Diff(text, saved(t, twin, l.now)); diff != "" {
					t.Fatalf("%s: -learned by the first +by the other\n%s", l.now.Sub(noon), diff)
				}
			}
			if len(text) > 32<<10 {
				t.Errorf("what was learned of 2 pools has %d bytes", len(text))
			}
			twin = restored(t, text, l.now, 0)
			next = l.now.Add(time.Duration(random.IntN(int(3 * time.Hour))))
		}
		l.state.Pools[0].Interactive.Rate = chatRate(l.now, random)
		if random.IntN(100) == 0 {
			l.state.Jobs = append(l.state.Jobs, ofModel(job(l.now.String(), l.now.Sub(noon)+
				time.Duration(1+random.IntN(6))*time.Hour, 30*random.Float64()), "m"))
		}
	}
	l.run(noon.Add(30 * time.Hour))
	if compared < 3000 || infeasible == 0 || !l.last.Pools[0].Terms.Seasonal {
		t.Errorf("%d decisions compared, %d with infeasible jobs, seasonal %v", compared,
			infeasible, l.last.Pools[0].Terms.Seasonal)
	}
}

// A job that was reported as infeasible stays so within the uncertainty after a restart, too.
func TestInfeasibleStaysAfterARestart(t *testing.T) {
	f := newFleet(t)
	s := State{Pools: []PoolState{with(batchPool(4), 4)}, Jobs: jobs{
		ofModel(job("a", 20*time.Hour, 80), "")}}
	verdict := func(f *Fleet, least float64) Verdict {
		s.Jobs[0].Least = hours(least)
		return f.Step(noon, s).Jobs[0].Verdict
	}
	if got := verdict(f, 82); got != Infeasible {
		t.Fatalf("at first %s", got)
	}
	again := restored(t, saved(t, f, noon), noon, time.Minute)
	if went, took, fresh := verdict(f, 78), verdict(again, 78), verdict(newFleet(t),
		78); went != Infeasible || took != Infeasible || fresh == Infeasible {
		t.Errorf("going on %s, restarted %s, without a state %s", went, took, fresh)
	}
}

// learnedOverDays returns what was learned by a time after noon with steady harvest.
func learnedOverDays(t faulter, until time.Duration) (text []byte, at time.Time) {
	random := rand.New(rand.NewPCG(3, 4))
	fleet := newFleet(t)
	l := dayOfChat(t, fleet)
	l.onStep = func(Decision) { l.state.Pools[0].Interactive.Rate = chatRate(l.now, random) }
	l.run(noon.Add(until))
	return saved(t, fleet, l.now), l.now
}

// After three days away a fleet still knows the usual day, and expects its rate before any is
// measured. The rate and the numbers of replicas of then mean nothing any more.
func TestRestoredAfterDays(t *testing.T) {
	text, at := learnedOverDays(t, 36*time.Hour) // until midnight
	now := at.Add(3*day + 14*time.Hour)          // afternoon
	f := restored(t, text, now, now.Sub(at))
	p := with(serving(chatPool(30, 0), "chat", "m"), 18)
	for i := range p.Replicas {
		p.Replicas[i].Since = now.Add(-time.Hour)
	}
	p.Interactive.Rate = math.NaN()
	w := f.Step(now, State{Pools: []PoolState{p}}).Pools[0]
	usual := chatRate(now, rand.New(rand.NewPCG(0, 0)))
	if !w.Terms.Seasonal || math.Abs(w.Terms.Rate/usual-1) > 0.2 || w.Replicas < int(usual) {
		t.Errorf("%d replicas for %+v, want those for about %.3g requests a second", w.Replicas,
			w.Terms, usual)
	}
	p.Interactive.Rate = usual / 2
	w = f.Step(now.Add(30*time.Second), State{Pools: []PoolState{p}}).Pools[0]
	if w.Replicas != 18 || w.Reason != ReasonHolding {
		t.Errorf("%d replicas for %q: fewer must suffice for a while first", w.Replicas, w.Reason)
	}
	f.Step(now.Add(31*time.Second), State{Pools: []PoolState{p}})
	if got := f.tracker.pools["chat"].forecast.level; math.Abs(got/p.Interactive.Rate-1) > 0.01 {
		t.Errorf("the rate is %v, want that which was measured, %v", got, p.Interactive.Rate)
	}
}

// The measured share of the harvest fades with its age. Cold starts are believed longer.
func TestOldMeasurementsFade(t *testing.T) {
	l := PoolLearned{Pool: "batch", Starts: []float64{60, 60, 60},
		Harvest: HarvestLearned{Share: 0.4, Achieved: 0.4e6, Predicted: 1e6}}
	cfg := DefaultConfig()
	for _, test := range []struct {
		age         time.Duration
		least, most float64
	}{{0, 0.4, 0.4}, {time.Minute, 0.4, 0.4}, {time.Hour, 0.6, 0.65},
		{3 * day, 0.84, cfg.Harvest.Share}} {
		f := newFleet(t)
		if err := f.Recall(noon, l, test.age); err != nil {
			t.Fatal(err)
		}
		got := f.Step(noon, State{Pools: []PoolState{batchPool(3)}}).Pools[0].Terms
		if got.Share < test.least || got.Share > test.most {
			t.Errorf("%v old: share %v, want %v to %v", test.age, got.Share, test.least, test.most)
		}
		if got.ColdStart != cfg.Start.Cold { // it counts as one of four
			t.Errorf("%v old: a start takes %v", test.age, got.ColdStart)
		}
	}
}

// What was recalled of a pool that has not come yet is not lost at the next restart.
func TestRecalledIsLearnedUntilThePoolComes(t *testing.T) {
	text, at := learnedOverDays(t, time.Hour)
	now := at.Add(time.Hour)
	f := restored(t, text, now, time.Hour)
	got := f.Learned(now.Add(time.Hour))
	var want []PoolLearned
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Age += 2 * time.Hour
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDamagedStatesAreRefused(t *testing.T) {
	text, at := learnedOverDays(t, 30*time.Hour)
	for want, damage := range map[string]func(l *PoolLearned){
		"it is 192h0m0s old": func(l *PoolLearned) { l.Age = 8 * day },
		"it is -1h0m0s old":  func(l *PoolLearned) { l.Age = -time.Hour },
		"usual has 3":        func(l *PoolLearned) { l.Traffic.Usual = l.Traffic.Usual[:3] },
		"usual is -2":        func(l *PoolLearned) { l.Traffic.Usual[7] = -2 },
		"traffic is":         func(l *PoolLearned) { l.Traffic.Level = math.NaN() },
		"traffic is +Inf": func(l *PoolLearned) {
			l.Traffic.Level = math.Inf(1)
		},
		"seconds is 1e+06": func(l *PoolLearned) { l.Traffic.Seconds = 1e6 },
		"recent has 145":   func(l *PoolLearned) { l.Traffic.Recent = make([]float64, slots+1) },
		"errors is -1":     func(l *PoolLearned) { l.Traffic.Errors[0].Current = -1 },
		"far is not in":    func(l *PoolLearned) { l.Traffic.Far[1].Slot = l.Traffic.Far[0].Slot },
		"near is not in":   func(l *PoolLearned) { l.Traffic.Near[0].Slot = 1000 },
		"starts is -5":     func(l *PoolLearned) { l.Starts = []float64{-5} },
		"starts has 1001":  func(l *PoolLearned) { l.Starts = make([]float64, maxLearned+1) },
		"share is 10001":   func(l *PoolLearned) { l.Harvest.Share = 10001 },
		"harvest is -1":    func(l *PoolLearned) { l.Harvest.Predicted = -1 },
		"pending was":      func(l *PoolLearned) { l.Pending = []StartLearned{{"r", -1, false}} },
		"wanted is -1":     func(l *PoolLearned) { l.Wanted = []WantedLearned{{0, -1}} },
		"wanted is not in": func(l *PoolLearned) { l.Wanted = []WantedLearned{{1, 1}, {0, 1}} },
		"infeasible has":   func(l *PoolLearned) { l.Infeasible = make([]string, maxLearned+1) },
		"near has 99": func(l *PoolLearned) {
			l.Traffic.Near = make([]PredictionLearned, 99)
		},
		"errors has 999": func(l *PoolLearned) {
			l.Traffic.Errors = make([]ErrorLearned, 999)
		},
	} {
		var all []PoolLearned
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		damage(&all[0])
		f := newFleet(t)
		err := f.Recall(at, all[0], 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if n := len(f.Learned(at)); n != 0 {
			t.Errorf("%s: %d pools were taken over", want, n)
		}
	}
	f := newFleet(t)
	f.Step(noon, State{Pools: []PoolState{batchPool(1)}})
	if err := f.Recall(noon, PoolLearned{Pool: "batch"}, 0); err == nil ||
		!strings.Contains(err.Error(), "too late") {
		t.Errorf("after the first step: %v", err)
	}
}

// Whatever a saved state says, decisions are within the bounds.
func FuzzRecall(f *testing.F) {
	text, _ := learnedOverDays(f, 2*time.Hour)
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(all[0]), int64(0))
	f.Add([]byte(all[1]), int64(time.Hour))
	f.Fuzz(func(t *testing.T, text []byte, age int64) {
		var l PoolLearned
		if json.Unmarshal(text, &l) != nil {
			return
		}
		l.Pool = "chat"
		fleet := newFleet(t)
		if err := fleet.Recall(noon, l, time.Duration(age)); err != nil {
			return
		}
		s := State{Pools: []PoolState{with(chatPool(10, 4), 3)}, Jobs: jobs{job("a", time.Hour, 2)}}
		for i := range 40 {
			now := noon.Add(time.Duration(i) * time.Minute)
			w := fleet.Step(now, s).Pools[0]
			if w.Replicas < 0 || w.Replicas > 10 || math.IsNaN(w.Terms.Rate) || w.Terms.Rate < 0 {
				t.Fatalf("%+v", w)
			}
		}
		for _, again := range fleet.Learned(noon.Add(39 * time.Minute)) {
			if err := newFleet(t).Recall(noon, again, 0); err != nil {
				t.Fatalf("what was learned then is refused: %v", err)
			}
		}
	})
}
