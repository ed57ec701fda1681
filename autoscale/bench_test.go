package autoscale

import (
	"fmt"
	"testing"
	"time"
)

// A step for a thousand jobs over a day and a pool of up to 100 replicas that serves chat. The aim
// is less than a millisecond.
func BenchmarkStep(b *testing.B) {
	for _, jobs := range []int{10, 1000} {
		for _, needy := range []bool{false, true} {
			b.Run(fmt.Sprintf("jobs=%d/needy=%v", jobs, needy), func(b *testing.B) {
				p := with(chatPool(100, 30), 30)
				s := State{Pools: []Pool{p}}
				each := 200.0 / float64(jobs)
				if needy {
					each *= 5
				}
				for i := range jobs {
					s.Jobs = append(s.Jobs, job(fmt.Sprintf("job-%04d", i), time.Hour+time.Duration(
						i)*23*time.Hour/time.Duration(jobs), each))
				}
				c := law(b)
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
