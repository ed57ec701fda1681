package bench

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestMain runs the roles of children, which are started from the test binary.
func TestMain(m *testing.M) {
	if isChild, err := RunRole(); isChild {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestEveryBenchmark runs every benchmark on a small scale and checks that it returns figures.
func TestEveryBenchmark(t *testing.T) {
	l, err := newEnvironment(t.Context(), t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.runs = 1
	l.sizes = sizes{
		dispatchLines: 300, concurrencies: []int{4}, uploadLines: 100, starts: 1, smallBatches: 3,
		smallLines:     5,
		waitingBatches: 20, endedBatches: 200, memoryLines: []int{10, 20, 30}, largeAnswers: 3,
		largeBytes: 3_000_000, listings: 2,
		idle: 10 * time.Millisecond, simulated: 3 * time.Minute, fleetLines: 1000,
		streamsInFlight: 4,
		fleetInFlight:   50,
		fleetSpan:       100 * time.Millisecond,
		sharedBatches:   1, sharedSteady: 2000, sharedLarge: []int{20, 40},
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
