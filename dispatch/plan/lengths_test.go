package plan

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// answers are distributions of the lengths of answers.
var answers = []struct {
	name  string
	draw  func(r *rand.Rand) float64
	limit float64
}{
	{"equal", func(*rand.Rand) float64 { return 300 }, 0},
	{"nearly equal", func(r *rand.Rand) float64 { return 1000 * math.Exp(0.1*r.NormFloat64()) }, 0},
	{"similar", func(r *rand.Rand) float64 { return 1000 * math.Exp(0.25*r.NormFloat64()) }, 0},
	{"various", func(r *rand.Rand) float64 { return 700 * math.Exp(0.5*r.NormFloat64()) }, 0},
	{"essays", func(r *rand.Rand) float64 {
		return min(6144, 1500*math.Exp(1.1*r.NormFloat64()))
	}, 0},
	{"yes or no", func(*rand.Rand) float64 { return 5 }, 0},
	{"any length up to a limit", func(r *rand.Rand) float64 { return 2000 * r.Float64() }, 0},
	{"cut at a limit", func(r *rand.Rand) float64 {
		return min(512, 900*math.Exp(0.8*r.NormFloat64()))
	}, 512},
	{"refusals and reports", func(r *rand.Rand) float64 {
		if r.IntN(3) == 0 {
			return 20
		}
		return 800
	}, 0},
	{"yes, no, and essays", func(r *rand.Rand) float64 {
		if r.IntN(10) > 0 {
			return 3
		}
		return 2000 * math.Exp(0.7*r.NormFloat64())
	}, 0},
}

// The lines of a job run on slots that open one after another. For all distributions, the lower
// bound rarely exceeds the true mean.
func TestLeastRarelyExceedsTheMean(t *testing.T) {
	const slots, runs, checks = 300, 60, 40
	for _, kind := range answers {
		t.Run(kind.name, func(t *testing.T) {
			truth, r := 0.0, rand.New(rand.NewPCG(1, 1))
			for range 200_000 {
				truth += max(1, math.Round(kind.draw(r))) / 200_000
			}
			over, worst, last := 0, 0.0, 0.0
			for scenario := range runs {
				r := rand.New(rand.NewPCG(2, uint64(scenario)))
				ramp := r.IntN(600)
				var life lengths
				type line struct{ from, tokens int64 }
				running := make([]line, slots)
				for i := range running {
					running[i] = line{int64(i * ramp / slots), int64(
						max(1, math.Round(kind.draw(r))))}
				}
				until := int64(3 * truth)
				for check := range int64(checks) {
					now := until * (check + 1) / checks
					life.running = life.running[:0]
					for i := range running {
						l := &running[i]
						for l.from+l.tokens <= now {
							life.add(int(l.tokens))
							*l = line{l.from + l.tokens, int64(max(1, math.Round(kind.draw(r))))}
						}
						if l.from < now {
							life.running = count(life.running, now-l.from)
						}
					}
					least := life.least(kind.limit) / truth
					worst = max(worst, least)
					if least > 1 {
						over++
					}
					last = least
				}
			}
			if over > runs*checks/1000 || worst > 1.1 {
				t.Errorf("the mean is %.0f; least exceeded it %d times in %d, by up to %.0f %%",
					truth, over, runs*checks, 100*(worst-1))
			}
			if truth > 100 && last < 0.2 {
				t.Errorf(
					"the mean is %.0f; least is only %.2f of it after three times as long "+
						"with 300 lines", truth, last)
			}
		})
	}
}

// The lower bound grows with the ages of lines in flight.
func TestLeastGrowsWithAges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l lengths
		for range rapid.IntRange(0, enoughEnded-1).Draw(t, "ended") {
			l.add(rapid.IntRange(1, 500).Draw(t, "answer"))
		}
		ages := rapid.SliceOfN(rapid.Int64Range(0, 3000), 1, 200).Draw(t, "ages")
		before := 0.0
		for range 10 {
			l.running = l.running[:0]
			sum := 0.0
			for i := range ages {
				ages[i] += rapid.Int64Range(0, 300).Draw(t, "grown")
				l.running = count(l.running, ages[i])
				sum += float64(ages[i])
			}
			got := l.least(0)
			if got < before {
				t.Fatalf("at least %v tokens a line, then %v", before, got)
			}
			before = got
		}
		if limit := before / 2; l.least(limit) > limit {
			t.Fatalf("at least %v tokens a line of %v at most", l.least(limit), limit)
		}
	})
}

func TestBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(0, 1<<40).Draw(t, "tokens")
		bin := binOf(tokens)
		if from, to := binFrom(bin), binFrom(bin+1); float64(tokens) < from ||
			float64(tokens) >= to || bin > 15 && to-from > from/binsPerOctave {
			t.Fatalf("%d tokens are in bin %d, of %v to %v", tokens, bin, from, to)
		}
	})
}
