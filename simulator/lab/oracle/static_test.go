package oracle

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/simulator"
)

// pretend returns a run of a pool that loses and harvests more with each line on a runner, and with
// each runner that carries lines.
func pretend(loss, harvest func(lines, runners float64) float64, runs *int) func(
	StaticSetting) (simulator.Result, error) {
	return func(s StaticSetting) (simulator.Result, error) {
		*runs++
		lines, used := float64(s.Lines), float64(s.Runners)
		return simulator.Result{Loss: loss(lines, used), Jobs: []simulator.Job{{}},
			Batch: simulator.Batch{Useful: int64(harvest(lines, used))}}, nil
	}
}

func TestBestStaticIsThatOfAllSettings(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const trials = 500
	sum := 0
	for trial := range trials {
		runners, maxSeqs := 1+rng.IntN(64), 1+rng.IntN(600)
		burden, width, half := 3*rng.Float64()*rng.Float64(), 2*rng.Float64(), 60*rng.Float64()
		runs := 0
		run := pretend(func(lines, used float64) float64 {
			return burden * lines * width * used / float64(runners)
		}, func(lines, used float64) float64 { return 1e6 * used * lines / (lines + half) }, &runs)
		got, err := BestStatic(runners, maxSeqs, run)
		if err != nil {
			t.Fatal(err)
		}
		if sum += runs; runs > 30 {
			t.Errorf("trial %d: %d runs", trial, runs)
		}
		var want StaticRun
		for _, used := range staticRunners(runners) {
			for _, lines := range staticCaps(maxSeqs) {
				all := StaticRun{Setting: StaticSetting{Lines: lines, Runners: used}}
				all.Result, _ = run(all.Setting)
				if all.safe() && all.Result.Batch.Useful > want.Result.Batch.Useful {
					want = all
				}
			}
		}
		if got.Result.Batch.Useful != want.Result.Batch.Useful || !got.safe() {
			t.Errorf("trial %d, %d runners: %v harvests %d, want that of %v, %d", trial, runners,
				got.Setting, got.Result.Batch.Useful, want.Setting, want.Result.Batch.Useful)
		}
	}
	if mean := float64(sum) / trials; mean > 15 {
		t.Errorf("%.1f runs in the mean", mean)
	}
}

func TestBestStaticUsesFewRunnersWhereAllAreTooMany(t *testing.T) {
	runs := 0
	got, err := BestStatic(16, 256, pretend(func(lines, used float64) float64 {
		return max(0, lines*used-2) // safe up to 3 lines in all
	}, func(lines, used float64) float64 { return 1000 * lines * used }, &runs))
	if want := (StaticSetting{Lines: 3, Runners: 1}); err != nil || got.Setting != want {
		t.Errorf("%v, %v; want %v", got.Setting, err, want)
	}
	got, err = BestStatic(16, 256, pretend(func(float64, float64) float64 { return 5 },
		func(lines, used float64) float64 { return lines * used }, &runs))
	if err != nil || got.Setting != (StaticSetting{}) {
		t.Errorf("nothing is safe, and the best is %v, %v", got.Setting, err)
	}
}

func TestBestStaticReturnsTheBestBeforeAnError(t *testing.T) {
	spent := errors.New("spent")
	runs := 0
	run := pretend(func(lines, _ float64) float64 { return lines / 40 },
		func(lines, used float64) float64 { return lines * used }, &runs)
	got, err := BestStatic(8, 256, func(s StaticSetting) (simulator.Result, error) {
		if runs == 3 {
			return simulator.Result{}, spent
		}
		return run(s)
	})
	if !errors.Is(err, spent) || got.Setting.Lines == 0 {
		t.Errorf("%v, %v; want a setting and that error", got.Setting, err)
	}
}

func TestBestStaticStopsWhenAllWorkIsDone(t *testing.T) {
	runs := 0
	got, err := BestStatic(8, 256, func(StaticSetting) (simulator.Result, error) {
		runs++
		return simulator.Result{Jobs: []simulator.Job{{Outcome: simulator.Finished}},
			Batch: simulator.Batch{Useful: 10}}, nil
	})
	if err != nil || runs != 1 || got.Result.Batch.Useful != 10 {
		t.Errorf("%+v after %d runs, %v", got, runs, err)
	}
}

func TestStaticGridIsGeometric(t *testing.T) {
	if got, want := staticCaps(40), []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40}; !slices.Equal(got,
		want) {
		t.Errorf("caps are %v, want %v", got, want)
	}
	for runners, want := range map[int][]int{1: {1}, 3: {3, 1}, 12: {12, 6, 3, 1},
		64: {64, 32, 16, 8, 1}} {
		if got := staticRunners(runners); !slices.Equal(got, want) {
			t.Errorf("of %d runners: %v, want %v", runners, got, want)
		}
	}
	if got := staticCaps(1); !slices.Equal(got, []int{1}) {
		t.Errorf("caps of a single sequence are %v", got)
	}
}
