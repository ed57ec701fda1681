package scaling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/simulator/workload"
)

// threeDays is the scenario of docs/designs/scaling.md: a day to learn, then three days of chat
// traffic at a mean of 14 requests a second with a regular daily curve (irregular if surprising),
// on 70B models on A100, and 20 batches due in 1, 4 or 24 hours. The batches have tokens thousand
// million tokens together, prompts included.
func threeDays(seed uint64, tokens float64, surprising bool) fluidScenario {
	const days, mean = 4, 14
	rng := func(cause string) *rand.Rand { return workload.Seed(seed).Rand("three days/" + cause) }
	curve := workload.Diurnal(days, rng("shape"))
	if surprising {
		curve = workload.Wandering(days, rng("shape"))
	}
	chat := autoscale.PoolState{
		Pool: registry.Pool{Name: "chat", Max: 25},
		SLO:  flowcontrol.DefaultConfig().SLO.WithUsual(),
		Interactive: autoscale.Interactive{Served: true, PerReplica: 1.06,
			Mix: costmodel.Mix{Prompt: 1155, Output: 211}},
		Engine: flowcontrol.Engine{
			CostModel: costmodel.Model{C0: 33.0, C1: 0.1120, C2: 0.0714, N0: 112, KV: 5.25e-5,
				P1: 0.0052, P2: 5.14e-6},
			KVTokens: 440_000, MaxSeqs: 256, MaxBatchedTokens: 512,
		},
		Lines: autoscale.Lines{Mix: costmodel.Mix{Prompt: 950, Output: 255}, Work: 220},
	}
	cold := rng("cold starts")
	s := fluidScenario{
		Pools: []autoscale.PoolState{chat}, Rate: func(t time.Duration) float64 {
			return mean * curve.At(t)
		},
		Warm: 24 * time.Hour, Length: 72 * time.Hour, Achieved: 0.8, Drain: time.Minute,
		Step: 30 * time.Second, Rand: rng("reclaims"),
		// A 70B model on a warm node: 150 s in the median, between 60 and 300 s.
		Cold: func() time.Duration {
			return time.Duration(min(max(150*portable.Exp(0.25*normal(cold)), 60), 300) * float64(
				time.Second))
		},
	}
	windows := rng("windows")
	total := 0.0
	var sizes []float64
	for i := range 20 {
		hours := 24.0
		switch {
		case i%20 < 3:
			hours = 1
		case i%20 < 8:
			hours = 4
		}
		window := time.Duration(hours * float64(time.Hour))
		at := s.Warm + time.Duration(windows.Float64()*float64(s.Length-window)).Truncate(
			time.Second)
		// Users submit more where they allow more time.
		sizes = append(sizes, hours*portable.Exp(0.6*normal(windows)))
		total += sizes[i]
		s.Jobs = append(s.Jobs, job{ID: fmt.Sprintf("job-%02d", i), At: at, Deadline: at + window})
	}
	perLine := chat.Lines.Mix.Prompt + chat.Lines.Mix.Output
	for i := range s.Jobs {
		lines := math.Ceil(sizes[i] / total * tokens * 1e9 / perLine)
		s.Jobs[i].Lines, s.Jobs[i].Work = int(lines), lines*chat.Lines.Work
	}
	return s
}

func normal(rng *rand.Rand) float64 {
	x, _ := portable.Normals(rng)
	return x
}

// withBatchPool adds a pool like the first one for batches alone, for policies that want one.
func (s fluidScenario) withBatchPool() fluidScenario {
	p := s.Pools[0]
	p.Name, p.Interactive = "batch", autoscale.Interactive{}
	s.Pools = append(append([]autoscale.PoolState(nil), s.Pools...), p)
	return s
}
