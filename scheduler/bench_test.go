package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/scheduler/schedulertest"
)

// BenchmarkQueue starts lines of 100,000 jobs of 1,000 tenants with Next, Charge and Put, while
// time passes and jobs become urgent and late. It reports the 99th percentile too.
func BenchmarkQueue(b *testing.B) {
	for _, policy := range []string{"slack", "expression"} {
		b.Run(policy, func(b *testing.B) {
			jobs := map[string]scheduler.Job{}
			q := newQueue(b, configOf(policy))
			for i, j := range schedulertest.Jobs(1, 100_000) {
				j.Tenant = fmt.Sprintf("tenant-%d", i%1000)
				jobs[j.ID] = j
				q.Put(j)
			}
			var took []time.Duration
			now := noon
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				id, _ := q.Next(now)
				q.Charge(id, 20_000)
				j := jobs[id]
				j.Work = max(0, j.Work-20_000)
				q.Put(j)
				took = append(took, time.Since(began))
				jobs[id] = j
				now = now.Add(time.Millisecond)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}
