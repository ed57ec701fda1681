package randompools

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// BenchmarkRestart measures what a restart of the daemon in the middle of a run costs: the loss of
// interactive requests in the five minutes after it, and the harvest of the ten minutes after it.
// docs/designs/headroom.md has its results.
func BenchmarkRestart(b *testing.B) {
	candidate, err := compare.Configuration{}.Candidate("headroom")
	if err != nil {
		b.Fatal(err)
	}
	pools := map[string][]random.Pool{"S1": s1(b), "random": drawn(b, 10)}
	for _, of := range []string{"S1", "random"} {
		for _, restart := range []string{"none", "learned", "forgotten"} {
			b.Run(of+"/"+restart, func(b *testing.B) {
				var sum, worst, harvest float64
				for b.Loop() {
					sum, worst, harvest = 0, math.Inf(-1), 0
					for _, pool := range pools[of] {
						loss, tokens := afterRestart(b, pool, candidate.Policy, restart)
						sum, worst, harvest = sum+loss, max(worst, loss), harvest+tokens
					}
				}
				b.ReportMetric(sum/float64(len(pools[of])), "loss-points")
				b.ReportMetric(worst, "worst-points")
				b.ReportMetric(harvest/1e6, "Mtokens")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// s1 returns the scenario S1 with three seeds.
func s1(b *testing.B) (pools []random.Pool) {
	opened, err := compare.OpenScenarios([]string{"../../scenarios/s1-steady.yaml"},
		compare.Trace{})
	if err != nil {
		b.Fatal(err)
	}
	for seed := range uint64(3) {
		pool := random.Pool{Scenario: opened[0].Scenario, Seed: seed + 1}
		if pool.NoBatch, err = simulator.RunNoBatch(pool.Setup(), until(b.Context())); err != nil {
			b.Fatal(err)
		}
		pools = append(pools, pool)
	}
	return pools
}

// drawn returns random pools on which nothing was developed.
func drawn(b *testing.B, count int) (pools []random.Pool) {
	source := random.Source{Seed: 71, Family: random.Families()[0], Horizon: time.Hour}
	for number := range count {
		pool, err := source.Draw(number + 1)
		if err != nil {
			b.Fatal(err)
		}
		pools = append(pools, pool)
	}
	return pools
}

// afterRestart returns the loss and the harvest after the middle of a run.
func afterRestart(
	b *testing.B, pool random.Pool, policy simulator.Policy, restart string,
) (loss, tokens float64) {
	middle := pool.Scenario.Horizon / 2
	s := pool.Setup()
	s.Policy, s.Outputs.Timeline = policy, true
	if restart != "none" {
		s.Scenario.Faults = append(s.Scenario.Faults, scenario.Fault{At: middle,
			Kind: scenario.Restart, For: 5 * time.Second, Forget: restart == "forgotten"})
	}
	r, err := simulator.RunAgainst(pool.NoBatch, s, until(b.Context()))
	if err != nil {
		b.Fatal(err)
	}
	const lossOver, harvestOver = 5, 10 * time.Minute
	first := int((middle - scenario.Edge) / time.Minute)
	late, requests := 0, 0
	for i := first; i < first+lossOver; i++ {
		late += r.LateByMinute()[i] - pool.NoBatch.LateByMinute()[i]
		requests += pool.NoBatch.RequestsByMinute()[i]
	}
	mean := r.Timeline.Mean(r.Timeline.Harvest, middle, middle+harvestOver)
	return 100 * float64(late) / float64(max(requests, 1)), mean * harvestOver.Seconds()
}
