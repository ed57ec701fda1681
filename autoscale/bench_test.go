package autoscale

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkStep measures a step for jobs over a day and a pool of up to 100 replicas with chat
// traffic. The aim is less than a millisecond for 1,000 jobs.
func BenchmarkStep(b *testing.B) {
	for _, jobs := range []int{10, 1000} {
		for _, short := range []bool{false, true} {
			b.Run(fmt.Sprintf("jobs=%d/short=%v", jobs, short), func(b *testing.B) {
				p := with(chatPool(100, 30), 30)
				s := State{Pools: []PoolState{p}}
				each := 200.0 / float64(jobs)
				if short {
					each *= 5
				}
				for i := range jobs {
					s.Jobs = append(s.Jobs, job(fmt.Sprintf("job-%04d", i), time.Hour+time.Duration(
						i)*23*time.Hour/time.Duration(jobs), each))
				}
				c := build(b)
				now := noon
				for b.Loop() {
					now = now.Add(time.Second)
					d := c.Step(now, s)
					if d.Pools[0].Replicas < 30 {
						b.Fatal(d.Pools[0])
					}
				}
			})
		}
	}
}
