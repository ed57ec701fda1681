package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// bootstrap fits resamples of the data and records how the coefficients vary. Runs stay complete
// and are drawn from in blocks, so that what lasts some seconds counts once.
func (r *Result) bootstrap(all []Observation, opt Options) {
	rng := rand.New(rand.NewPCG(opt.Seed, 0x7469646566696c6c))
	blocks := blocksByRun(all)
	values := make([][]float64, len(r.Coefficients))
	near := []float64{r.structure.knee}
	if slices.Contains(r.structure.active, perTokenBeyond) {
		near = refinedKnees(r.structure.knee, kneesNear(r.structure.knee, kneeCandidates(all)))
	}
	for range opt.Resamples {
		sample := resample(blocks, rng)
		st := r.structure
		if len(near) > 1 {
			st.knee, _ = st.scan(sample, near, max(r.Noise, minScale))
		}
		m := newModel(sample, st.knee, st.held, st.active)
		for i, c := range coefficients(m.costModel(m.robust().coefficients), st,
			opt.Prior.CostModel) {
			values[i] = append(values[i], c.Value)
		}
	}
	for i := range r.Coefficients {
		c := &r.Coefficients[i]
		if c.Origin != FromData {
			continue
		}
		c.Low, c.High = quantile(values[i], 0.05), quantile(values[i], 0.95)
		c.Error = standardDeviation(values[i])
		if c.Name != "n0" && c.Name != "c2" && c.Value > 0 && c.Error > c.Value/2 {
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("%s is uncertain: %.2g with a standard error of %.2g", c.Name, c.Value,
					c.Error))
		}
	}
}

// blockLength is the number of neighboring intervals drawn together.
const blockLength = 10

func blocksByRun(all []Observation) [][][]Observation {
	var runs [][][]Observation
	for start := 0; start < len(all); {
		end := start
		for end < len(all) && all[end].Run == all[start].Run {
			end++
		}
		runs = append(runs, slices.Collect(slices.Chunk(all[start:end], blockLength)))
		start = end
	}
	return runs
}

func resample(runs [][][]Observation, rng *rand.Rand) []Observation {
	var sample []Observation
	for _, blocks := range runs {
		for range blocks {
			sample = append(sample, blocks[rng.IntN(len(blocks))]...)
		}
	}
	return sample
}

func standardDeviation(values []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(max(1, len(values)-1)))
}
