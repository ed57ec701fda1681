package search

import (
	"errors"
	"math"
	"testing"
)

// climb runs the method from an origin, and returns the best vertex and the number of evaluations.
func climb(
	t *testing.T, f func(x []float64) float64, origin []float64, evaluations int,
) (best vertex, spent int) {
	t.Helper()
	best.value = math.Inf(-1)
	s := simplex{evaluate: func(points ...[]float64) ([]float64, error) {
		var values []float64
		for _, p := range points[:min(len(points), evaluations-spent)] {
			spent++
			value := f(p)
			values = append(values, value)
			if value > best.value {
				best = vertex{append([]float64(nil), p...), value}
			}
		}
		return values, nil
	}}
	for i := range len(origin) + 1 {
		at := append([]float64(nil), origin...)
		if i > 0 {
			at[i-1]++
		}
		values, _ := s.evaluate(at)
		s.vertices = append(s.vertices, vertex{at, values[0]})
	}
	for {
		more, err := s.step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return best, spent
		}
	}
}

// The functions, negated, and their minima are those that methods without gradients are usually
// tried on.
func TestNelderMeadFindsKnownMaxima(t *testing.T) {
	square := func(x float64) float64 { return x * x }
	for name, test := range map[string]struct {
		f           func(x []float64) float64
		origin, top []float64
		evaluations int
	}{
		"parabola": {func(x []float64) float64 { return -square(x[0] - 3) },
			[]float64{0}, []float64{3}, 80},
		"sphere": {func(x []float64) float64 {
			sum := 0.0
			for i, v := range x {
				sum -= square(v - float64(i))
			}
			return sum
		}, []float64{5, 5, 5, 5, 5}, []float64{0, 1, 2, 3, 4}, 1000},
		"Rosenbrock": {func(x []float64) float64 {
			return -100*square(x[1]-square(x[0])) - square(1-x[0])
		}, []float64{-1.2, 1}, []float64{1, 1}, 300},
		"Booth": {func(x []float64) float64 {
			return -square(x[0]+2*x[1]-7) - square(2*x[0]+x[1]-5)
		}, []float64{-5, 5}, []float64{1, 3}, 200},
		"Powell": {func(x []float64) float64 {
			return -square(x[0]+10*x[1]) - 5*square(x[2]-x[3]) - square(square(x[1]-2*x[2])) -
				10*square(square(x[0]-x[3]))
		}, []float64{3, -1, 0, 1}, []float64{0, 0, 0, 0}, 1000},
		"a corner": {func(x []float64) float64 {
			return -math.Abs(x[0] - 1)
		}, []float64{4}, []float64{1}, 80},
	} {
		best, spent := climb(t, test.f, test.origin, test.evaluations)
		if spent != test.evaluations {
			t.Errorf("%s: %d evaluations, want %d", name, spent, test.evaluations)
		}
		for i, x := range best.at {
			if math.Abs(x-test.top[i]) > 1e-3 {
				t.Errorf("%s: found %v with %v, want %v", name, best.at, best.value, test.top)
				break
			}
		}
	}
}

func TestNelderMeadReturnsTheErrorOfAnEvaluation(t *testing.T) {
	broken := errors.New("broken")
	for good := range 6 {
		left := good
		s := simplex{vertices: []vertex{{[]float64{0, 0}, 1}, {[]float64{1, 0}, 0},
			{[]float64{0, 1}, 0}}, evaluate: func(points ...[]float64) ([]float64, error) {
			if left -= len(points); left < 0 {
				return nil, broken
			}
			return make([]float64, len(points)), nil
		}}
		for {
			more, err := s.step()
			if more {
				continue
			}
			if !errors.Is(err, broken) {
				t.Errorf("after %d evaluations: %v, want %v", good, err, broken)
			}
			break
		}
	}
}
