package main

import (
	"os"
	"testing"
	"time"
)

// TestMain plays the children's roles: they are started from the binary that runs.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		exitOn(play(role))
		return
	}
	os.Exit(m.Run())
}

// TestEveryBenchmark runs all of them on a small scale. Figures mean nothing then; that there are
// any, with nothing lost on the way, does.
func TestEveryBenchmark(t *testing.T) {
	l, err := newLab(t.Context(), t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.runs = 1
	l.sizes = sizes{
		dispatchLines: 300, concurrencies: []int{4}, uploadLines: 100, starts: 1, smallBatches: 3,
		smallLines:     5,
		waitingBatches: 20, endedBatches: 200, memoryLines: []int{10, 20, 30}, largeAnswers: 3,
		largeBytes: 3_000_000, plannerJobs: 100, plannerSteps: 1000, listings: 2,
		idle: 10 * time.Millisecond, simulated: 3 * time.Minute,
	}
	for _, b := range benchmarks {
		t.Run(b.name, func(t *testing.T) {
			figures, err := measureOne(t.Context(), l, b)
			if err != nil {
				t.Fatal(err)
			}
			if len(figures) == 0 {
				t.Fatal("there are no figures")
			}
			for _, f := range figures {
				if f.What == "" || !(median(f.Values) >= 0) {
					t.Errorf("%q is %v; want a number", f.What, f.Values)
				}
			}
		})
	}
}
