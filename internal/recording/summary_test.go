package recording

import (
	"math"
	"testing"
)

func figure(t *testing.T, d *Summary, name string) float64 {
	t.Helper()
	for _, f := range d.Figures() {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("no figure %q", name)
	return 0
}

func TestSummary(t *testing.T) {
	var d Summary
	nan := Number(math.NaN())
	sample := func(at float64, runner int, running Number) {
		d.Add(Entry{At: at, Reading: &Reading{Source: "metrics", Runner: runner, Running: running,
			Waiting: nan}})
	}
	sample(0, 1, 10)
	sample(0, 2, 4)
	sample(30, 1, 30) // 10 for 30 s, then 30
	sample(60, 2, nan)
	sample(60, 1, 30)
	for i := range 100 {
		d.Add(Entry{At: 60, Line: &Line{Job: 1, Runner: 1, End: "succeeded", Took: 1,
			First: float64(i+1) / 100, Prompt: 50, Output: 10}})
	}
	d.Add(Entry{At: 60, Line: &Line{Job: 1, Runner: 1, End: "recalled", Prompt: 50}})
	d.Add(Entry{At: 60, Gaps: &Gaps{Runner: 1, Count: 90, Took: 0.9}})
	d.Add(Entry{At: 60, Gaps: &Gaps{Runner: 1, Count: 10, Took: 0.5}})
	// the first histogram, which does not count
	d.Add(Entry{At: 60, Latencies: &Latencies{Runner: 1, TTFT: Histogram{{1, 100}, {2, 100}, {
		-1, 100}}}})
	d.Add(Entry{At: 90, Latencies: &Latencies{Runner: 1, TTFT: Histogram{{1, 150}, {2, 200}, {
		-1, 200}}}})
	// a restart
	d.Add(Entry{At: 95, Latencies: &Latencies{Runner: 1, TTFT: Histogram{{1, 5}, {2, 5}, {-1, 5}}}})
	d.Add(Entry{At: 100, Latencies: &Latencies{Runner: 1, TTFT: Histogram{{1, 5}, {2, 5}, {
		-1, 5}}}})
	for name, want := range map[string]float64{
		"requests running, all runners":   20 + 4,
		"requests waiting, all runners":   math.NaN(),
		"harvest":                         60,
		"TTFT of all requests p50":        1,
		"TTFT of all requests p90":        1.8,
		"TTFT of batch lines p50":         0.51,
		"TTFT of batch lines p99":         1,
		"iteration, mean of a second p50": 0.01,
		"iteration, mean of a second p99": 0.05,
		"interactive TTFT p50":            math.NaN(),
	} {
		if got := figure(t, &d, name); math.Abs(got-want) > 1e-9 ||
			math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if ttft, tpot := d.Bounds(); len(ttft) != 3 || ttft[1] != 2 || len(tpot) != 0 {
		t.Errorf("bounds %v, %v", ttft, tpot)
	}
	var empty Summary
	for _, f := range empty.Figures() {
		if !math.IsNaN(f.Value) {
			t.Errorf("%s of nothing is %v", f.Name, f.Value)
		}
	}
}

func TestLatenciesAreCountedByBounds(t *testing.T) {
	l := NewLatency([]float64{1, 2, math.Inf(1)})
	for _, s := range []float64{0.5, 1, 1.5, 9} {
		l.Observe(s)
	}
	got := l.Buckets()
	if got[0].Count != 2 || got[1].Count != 3 || got[2].Count != 4 {
		t.Errorf("got %v", got)
	}
}
