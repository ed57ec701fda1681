package search_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/simulator/search"
)

// hill is steepest at a point and a little different on each seed.
func hill(top []float64, noise float64, tries *int, least *int) search.Evaluate {
	return func(points [][]float64, seeds int) ([]float64, error) {
		var out []float64
		*tries += len(points) * seeds
		*least = min(*least, seeds)
		for _, p := range points {
			sum := 0.0
			for seed := range seeds {
				v := 1.0
				for i, x := range p {
					at := (x - top[i]) / top[i]
					v -= at * at
					v += noise * math.Sin(100*x+float64(seed))
				}
				sum += v
			}
			out = append(out, sum/float64(seeds))
		}
		return out, nil
	}
}

func TestMaximizeFindsAHill(t *testing.T) {
	space := []search.Dimension{{Low: 0.5, High: 1}, {Low: 1, High: 1000, Log: true},
		{Low: 10, High: 100}}
	top := []float64{0.83, 40, 30}
	tries, least := 0, 9
	best, err := search.Maximize(space, []float64{0.5, 1, 100},
		search.Options{Budget: 300, Seeds: 3}, hill(top, 0.002, &tries, &least))
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range best.Point {
		if math.Abs(x/top[i]-1) > 0.15 {
			t.Errorf("dimension %d is %v, the top at %v", i, x, top[i])
		}
	}
	if best.Spent != tries || tries > 300 {
		t.Errorf("%d tries counted, %d made, 300 allowed", best.Spent, tries)
	}
	if least < 2 {
		t.Error("something was decided on one seed")
	}
	again, _ := search.Maximize(space, []float64{0.5, 1, 100},
		search.Options{Budget: 300, Seeds: 3}, hill(top, 0.002, &tries, &least))
	if diff := cmp.Diff(best, again); diff != "" {
		t.Errorf("the same search found something else (-first +second):\n%s", diff)
	}
}

func TestMaximizeKeepsAStartThatNothingBeats(t *testing.T) {
	tries, least := 0, 9
	best, err := search.Maximize([]search.Dimension{{Low: 0, High: 1}}, []float64{0.3},
		search.Options{Budget: 40, Seeds: 2}, hill([]float64{0.3}, 0, &tries, &least))
	if err != nil || math.Abs(best.Point[0]-0.3) > 1e-12 || best.Value != 1 {
		t.Errorf("%+v, %v; want 0.3", best, err)
	}
}

func TestMaximizeStaysWithinItsBudgetAndRanges(t *testing.T) {
	for budget := 8; budget < 60; budget += 7 {
		tries := 0
		_, err := search.Maximize([]search.Dimension{{Low: 1, High: 2},
			{Low: 1, High: 2, Log: true}}, []float64{5, 0}, search.Options{Budget: budget,
			Seeds: 2},
			func(points [][]float64, seeds int) ([]float64, error) {
				tries += len(points) * seeds
				for _, p := range points {
					if slices.Min(p) < 1-1e-12 || slices.Max(p) > 2+1e-12 {
						t.Errorf("%v lies outside", p)
					}
				}
				return make([]float64, len(points)), nil
			})
		if err != nil || tries > budget {
			t.Errorf("budget %d: %d tries, %v", budget, tries, err)
		}
	}
}

func TestMaximizeRefuses(t *testing.T) {
	one := []search.Dimension{{Low: 0, High: 1}}
	for name, test := range map[string]struct {
		space []search.Dimension
		o     search.Options
	}{
		"one seed":  {one, search.Options{Budget: 100, Seeds: 1}},
		"no budget": {one, search.Options{Budget: 5, Seeds: 3}},
		"range down": {[]search.Dimension{{Low: 1, High: 0}},
			search.Options{Budget: 100, Seeds: 2}},
		"logarithm of 0": {[]search.Dimension{{Low: 0, High: 1, Log: true}},
			search.Options{Budget: 100, Seeds: 2}},
		"nothing to search": {nil, search.Options{Budget: 100, Seeds: 2}},
	} {
		if _, err := search.Maximize(test.space, make([]float64, len(test.space)), test.o,
			nil); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
