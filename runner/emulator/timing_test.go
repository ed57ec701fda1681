package emulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

func TestLatenessHasQuantiles(t *testing.T) {
	total := timing{}
	c := clock{speedup: 2}
	begin := time.Unix(0, 0)
	for i := range 200 {
		it := engine.Iteration{Start: begin, End: begin.Add(20 * time.Millisecond),
			Steps: make([]time.Duration, 1)}
		total.add(&it, time.Duration(i+1)*100*time.Microsecond, c)
	}
	got := total.read()
	within := func(what string, got, least, most float64) {
		if got < least || got > most {
			t.Errorf("%s is %v ms, want %v to %v", what, got, least, most)
		}
	}
	within("the mean iteration", got.Mean, 10, 10)
	within("the median lateness", got.LateP50, 10, 10.5)
	within("the 99th percentile", got.LateP99, 19.8, 20)
	within("the greatest lateness", got.LateMax, 20, 20)
	if got.Iterations != 200 {
		t.Errorf("%d iterations, want 200", got.Iterations)
	}
	total.add(&engine.Iteration{Steps: make([]time.Duration, 1)}, time.Hour, c)
	within("an hour of lateness", total.read().LateMax, 3.6e6, 3.6e6)
}

// An engine that the machine does not let run shows how late it is.
func TestLateIterationsAreShown(t *testing.T) {
	s, url := start(t, func(c *Config) { c.Profile, c.Speedup = "llama-8b-a100", 1 })
	stop := hold(t, s, url, 1)
	defer stop()
	read := func() Timing {
		resp, body := get(t, url+"/admin/timing")
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %s", resp.Status, body)
		}
		return decode[Timing](t, body)
	}
	until(t, func() bool { return read().Iterations >= 5 })
	s.loop.mu.Lock()
	time.Sleep(200 * time.Millisecond) // the fault: iterations cannot end meanwhile
	s.loop.mu.Unlock()
	until(t, func() bool { return read().LateMax > 150 })
	if got := read(); got.Mean < 10 || got.Mean > 20 || got.LateP99 < got.LateP50 {
		t.Errorf("%+v, want iterations of about 12 ms", got)
	}
}
