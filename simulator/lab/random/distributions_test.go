package random_test

import (
	"slices"
	"testing"

	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/scenario"
)

const sketches = 3000

// seen collects what sketches of the mixture have.
type seen struct {
	values map[string]map[string]int
	low    map[string]float64
	high   map[string]float64
	sum    map[string]float64
}

func (s seen) number(name string, x float64) {
	if low, ok := s.low[name]; !ok || x < low {
		s.low[name] = x
	}
	s.high[name] = max(s.high[name], x)
	s.sum[name] += x
}

func observe(t *testing.T) seen {
	t.Helper()
	all := seen{values: map[string]map[string]int{}, low: map[string]float64{},
		high: map[string]float64{}, sum: map[string]float64{}}
	from := source(t, "any", 7)
	for number := range sketches {
		pool := from.Sketch(number)
		for _, d := range pool.Dimensions {
			if all.values[d.Name] == nil {
				all.values[d.Name] = map[string]int{}
			}
			all.values[d.Name][d.Value]++
		}
		sc := pool.Scenario
		all.number("runners", float64(sc.Pool.Replicas))
		all.number("router view", sc.Pool.RouterView.Seconds())
		all.number("period", sc.Metrics.Period.Seconds())
		all.number("rate", sc.Interactive.Rate)
		all.number("prefix", sc.Interactive.Prefix.Share)
		if in := sc.Interactive; in.Input.Median > 0 {
			all.number("prompt", in.Input.Median)
			all.number("answer", in.Output.Median)
		}
		if b := sc.Interactive.Bursts; b.Factor > 0 {
			share := b.Length.Seconds() / (b.Length + b.Gap).Seconds()
			all.number("peak", b.Factor/(1+(b.Factor-1)*share))
			all.number("burst", b.Length.Seconds())
		}
		all.number("jobs", float64(len(sc.Jobs)))
	}
	return all
}

func TestTheMixtureCoversItsRanges(t *testing.T) {
	all := observe(t)
	for name, want := range map[string][2]float64{
		"runners": {1, 55}, "router view": {0, 9}, "period": {0.27, 27}, "prompt": {60, 17_000},
		"answer": {11, 900}, "prefix": {0, 0.93}, "peak": {2.1, 13}, "burst": {1.1, 60},
		"jobs": {1, 5},
	} {
		if all.low[name] > want[0] || all.high[name] < want[1] {
			t.Errorf("%s is %v to %v, want a range around %v", name, all.low[name],
				all.high[name], want)
		}
	}
	for name, limits := range map[string][2]float64{
		"runners": {1, 64}, "router view": {0, 10}, "period": {0.25, 30}, "rate": {0, 64},
		"prompt": {50, 20_000}, "answer": {10, 1000}, "prefix": {0, 0.95}, "peak": {1.9, 15.1},
	} {
		if all.low[name] < limits[0] || all.high[name] > limits[1] {
			t.Errorf("%s is %v to %v, want at most a range of %v", name, all.low[name],
				all.high[name], limits)
		}
	}
	if mean := all.sum["runners"] / sketches; mean < 5 || mean > 11 {
		t.Errorf("%.1f runners in the mean", mean)
	}
	for name, want := range map[string]int{
		"profile": 6, "cost model": 2, "chunk budget": 6, "queue": 2, "router": 4,
		"router view": 4, "arrivals": 7, "load": 4, "objectives": 3, "metrics": 3, "cached": 3,
	} {
		got := all.values[name]
		if len(got) != want {
			t.Errorf("%s has the values %v, want %d", name, got, want)
		}
		for value, n := range got {
			if n < sketches/100 {
				t.Errorf("%s is %s in %d of %d pools", name, value, n, sketches)
			}
		}
	}
}

func TestFamiliesAreNarrow(t *testing.T) {
	for family, holds := range map[string]func(scenario.Scenario) bool{
		"any":    func(s scenario.Scenario) bool { return !s.Interactive.SLOWithheld },
		"steady": func(s scenario.Scenario) bool { return s.Interactive.Bursts.Factor == 0 },
		"bursty": func(s scenario.Scenario) bool { return s.Interactive.Bursts.Factor > 5 },
		"short-answers": func(s scenario.Scenario) bool {
			return s.Interactive.Output.Median <= 50 && s.Interactive.Output.Median >= 10
		},
		"long-prompts": func(s scenario.Scenario) bool {
			small := s.Pool.KVTokens > 0 || s.Pool.Profile == "llama-70b-a100-tp2"
			return small || s.Interactive.Input.Median >= 5000
		},
		"small-chunk": func(s scenario.Scenario) bool { return s.Pool.MaxBatchedTokens <= 512 },
		"shared-prefix": func(s scenario.Scenario) bool {
			return s.Pool.PrefixCaching && s.Interactive.Prefix.Share >= 0.6 &&
				!slices.ContainsFunc(s.Jobs, func(j scenario.Job) bool {
					return j.Kind == "" && j.Shared < 0.5
				})
		},
		"no-slo":   func(s scenario.Scenario) bool { return s.Interactive.SLOWithheld },
		"no-facts": func(s scenario.Scenario) bool { return s.Pool.FactsWithheld },
		"defaults": func(s scenario.Scenario) bool {
			return s.Pool.FactsWithheld && s.Interactive.SLOWithheld
		},
		"days":        func(s scenario.Scenario) bool { return len(s.Interactive.Surges) == 6 },
		"closed-loop": func(s scenario.Scenario) bool { return s.Interactive.Users.Count > 0 },
	} {
		from := source(t, family, 2)
		for number := range 200 {
			if s := from.Sketch(number).Scenario; !holds(s) {
				t.Errorf("family %s has %+v", family, s)
				break
			}
		}
	}
	if _, err := random.LookupFamily("sunny"); err == nil {
		t.Error("an unknown family is accepted")
	}
}

func TestDrawnPoolsAttainTheirObjectives(t *testing.T) {
	for _, family := range []string{"any", "idle", "misfit-slo"} {
		from := source(t, family, 5)
		for number := 1; number <= 6; number++ {
			pool, err := from.Draw(number)
			if err != nil {
				t.Fatal(err)
			}
			alone := pool.NoBatch.Interactive
			if alone.Attainment < 0.99 || alone.Requests < 250 {
				t.Errorf("family %s, pool %d: %.4f of %d requests attain the objectives", family,
					number, alone.Attainment, alone.Requests)
			}
		}
	}
}
