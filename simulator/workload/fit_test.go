package workload

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// The published statistics of traces/README, which the populations are fitted to.
var published = []struct {
	population    func() Population
	rate          float64
	dispersion    [3]float64 // over 1, 10 and 60 s; LongConversation with its ticks spread
	input, output [8]float64 // at 1, 10, 25, 50, 75, 90, 95, 99 %
	means         [2]float64 // tokens in and out
	// of 512-token blocks; of prompts that repeat more than the common block
	reused, next float64
}{
	{Conversation, 5.53, [3]float64{1.4, 3.9, 16},
		[8]float64{29, 207, 396, 1020, 1189, 2734, 4083, 4142}, [8]float64{16, 54, 85, 129, 395,
			424, 451, 601}, [2]float64{1155, 211}, 0, 0},
	{LongConversation, 3.40, [3]float64{1.04, 1.5, 2.9},
		[8]float64{894, 964, 2306, 6909, 15367, 27367, 39550, 85400},
		[8]float64{3, 24, 156, 350, 472, 597, 698, 1118}, [2]float64{12035, 343}, 0.366, 0.387},
}

var fitShares = []float64{0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99}

func TestPopulationsFitThePublished(t *testing.T) {
	const seeds = 20
	for _, p := range published {
		t.Run(p.population().Name, func(t *testing.T) {
			var rate, means, reuse [2]float64
			var dispersion [3]float64
			var input, output []int
			var next float64
			for seed := range Seed(seeds) {
				hour := trace(t, "hour", Until(generator(t, p.population(), seed).Arrivals(),
					time.Hour))
				s := hour.Statistics()
				rate[0] += s.Rate / seeds
				means[0] += s.MeanInput / seeds
				means[1] += s.MeanOutput / seeds
				for i, d := range s.Dispersion {
					dispersion[i] += d.VarMean / seeds
				}
				for _, a := range hour.arrivals {
					input, output = append(input, a.Input), append(output, a.Output)
				}
				blocks, turns := reused(hour)
				reuse[0] += blocks / seeds
				next += turns / seeds
			}
			slices.Sort(input)
			slices.Sort(output)

			t.Logf("%-26s %8s %8s", "", "trace", "here")
			within := func(what string, got, want, tolerance float64) {
				t.Helper()
				t.Logf("%-26s %8.4g %8.4g", what, want, got)
				if math.Abs(got-want) > tolerance*want {
					t.Errorf("%s is %.4g, published is %.4g", what, got, want)
				}
			}
			within("requests a second", rate[0], p.rate, 0.03)
			for i, w := range Windows {
				within(fmt.Sprintf("var/mean over %v", w), dispersion[i], p.dispersion[i], 0.15)
			}
			for i, share := range fitShares {
				at := int(share * float64(len(input)-1))
				within(fmt.Sprintf("input tokens, %g %%", share*100), float64(
					input[at]), p.input[i], 0.04)
				within(fmt.Sprintf("output tokens, %g %%", share*100), float64(
					output[at]), p.output[i], 0.04)
			}
			within("input tokens, mean", means[0], p.means[0], 0.05)
			within("output tokens, mean", means[1], p.means[1], 0.05)
			within("blocks seen before", reuse[0], p.reused, 0.1)
			within("prompts that go on", next, p.next, 0.1)
		})
	}
}

// reused returns which share of prefix names was seen before in a trace, and which
// share of prompts repeats more than its first.
func reused(t *Trace) (blocks, turns float64) {
	seen := map[uint64]bool{}
	all, hits, next := 0, 0, 0
	for _, a := range t.arrivals {
		n := 0
		for n < len(a.Prefix) && seen[a.Prefix[n]] {
			n++
		}
		for _, id := range a.Prefix {
			seen[id] = true
		}
		all += len(a.Prefix)
		hits += n
		if n > 1 {
			next++
		}
	}
	return float64(hits) / max(1, float64(all)), float64(next) / float64(t.Len())
}
