package simulator

import (
	"testing"
	"time"
)

// BenchmarkDay measures the simulation speed, which should be a day of twelve replicas in a minute.
// It simulates four hours of that, with the policy that observes the most.
func BenchmarkDay(b *testing.B) {
	const part = 4 * time.Hour
	s := bundled(b, "s1-steady.yaml", horizon(part), func(s *Setup) {
		s.Scenario.Pool.Replicas, s.Scenario.Interactive.Rate = 12, 11
		s.Policy.Flow.Policy = "headroom"
	})
	for b.Loop() {
		result(b, s)
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*float64(24*time.Hour/part), "s/day")
}
