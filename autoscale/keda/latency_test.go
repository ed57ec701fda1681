package keda_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tidefill/tidefill/autoscale"
)

// KEDA asks again and again for all of its ScaledObjects over one connection. The limit is 5 ms. On
// a machine that is busy with something else, calls may take as long as those of the health
// service, which does nothing.
func TestAThousandScaledObjectsAreAnsweredAtOnce(t *testing.T) {
	const objects, rounds, limit = 1000, 5, 5 * time.Millisecond
	w := start(t)
	var streams []chan bool
	for i := range objects {
		active, _ := w.activity(object("o", poolName(i)))
		streams = append(streams, active)
	}
	w.decide(objects, 1)
	for i, active := range streams {
		if <-active != (i%7 > 0) {
			t.Fatalf("%s: its stream says the contrary", poolName(i))
		}
	}
	health := grpc_health_v1.NewHealthClient(w.conn)
	for round := 1; ; round++ {
		var took, least []time.Duration
		for i := range objects {
			if i%100 == 0 {
				w.decide(objects, round)
			}
			begun := time.Now()
			value, active, err := w.observe(object("o", poolName(i)))
			took = append(took, time.Since(begun)/3)
			if err != nil || value != float64(i%7*round) || active != (i%7 > 0) {
				t.Fatalf("%s: got %v, %v, %v", poolName(i), value, active, err)
			}
			begun = time.Now()
			for range 3 {
				if _, err := health.Check(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			least = append(least, time.Since(begun)/3)
		}
		p99, p99Health := percentile(took, 99), percentile(least, 99)
		t.Logf("a call takes %v (p50), %v (p99); one of the health service %v, %v",
			percentile(took, 50), p99, percentile(least, 50), p99Health)
		if p99 <= max(limit, 3*p99Health/2) {
			return
		}
		if round == rounds {
			t.Fatalf("p99 is %v, want %v at most", p99, limit)
		}
	}
}

func percentile(took []time.Duration, p int) time.Duration {
	slices.Sort(took)
	return took[(len(took)-1)*p/100]
}

// decide decides a number of replicas for every pool.
func (w *world) decide(objects, factor int) {
	var pools []autoscale.PoolSnapshot
	for i := range objects {
		pools = append(pools, wanted(poolName(i), i%7*factor, 0, 0))
	}
	w.d.set(pools...)
}

// BenchmarkObservation measures one observation of KEDA, three calls, beside 1,000 streams.
func BenchmarkObservation(b *testing.B) {
	w := start(b)
	w.decide(1000, 1)
	for i := range 1000 {
		w.activity(object("o", poolName(i)))
	}
	took := make([]time.Duration, 0, 1<<16)
	i := 0
	for b.Loop() {
		begun := time.Now()
		if _, _, err := w.observe(object("o", poolName(i%1000))); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun)/3)
		i++
	}
	b.ReportMetric(float64(percentile(took, 99).Nanoseconds()), "p99-ns/call")
}

// BenchmarkDecision measures what a decision costs 1,000 streams whose pools do not change.
func BenchmarkDecision(b *testing.B) {
	w := start(b)
	w.decide(1000, 1)
	for i := range 1000 {
		w.activity(object("o", poolName(i)))
	}
	for b.Loop() {
		w.decide(1000, 1)
	}
}
