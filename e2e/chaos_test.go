package e2e

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

var (
	chaos = flag.Bool("chaos", false,
		"run the fault suite in full, judge the peaks of memory, and print the table "+
			"\"reliability\"")
	kills = flag.Int("kills", 60, "how often the daemon is killed at random moments")
	// seedFlag repeats a run that failed.
	seedFlag = flag.String("seed", os.Getenv("TIDEFILL_E2E_SEED"),
		"the seed of the random choices; default: a new one, which the test logs")
)

// The memory of a daemon for any input of users and runners. Only make chaos checks it: the short
// form runs beside other tests, partly with the race detector.
const (
	maxPeak = 128 * MiB // with the embedded store
	// maxPeakOnBucket includes the parts of objects that writers and readers hold; see
	// docs/object-storage.md#memory.
	maxPeakOnBucket = 350 * MiB
)

var trials Trials

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http logs errors of hostile scenarios
	status := Main(m)
	if *chaos {
		fmt.Println()
		trials.Write(os.Stdout)
	}
	os.Exit(status)
}

// long leaves a test to make test-all.
func long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() && !*chaos {
		t.Skip("left to make test-all: " + why)
	}
}

// inShort returns the first value in make test, and the second in make test-all and make chaos.
func inShort[T any](short, all T) T {
	if testing.Short() && !*chaos {
		return short
	}
	return all
}

// begin starts the trial of a scenario on the embedded store. Only make chaos checks its peak of
// memory.
func begin(t *testing.T, scenario string) *Trial {
	return trials.Begin(t, scenario, sized[int64](0, maxPeak))
}

// beginOnBucket starts the trial of a scenario whose daemons store objects in a bucket.
func beginOnBucket(t *testing.T, scenario string) *Trial {
	return trials.Begin(t, scenario, sized[int64](0, maxPeakOnBucket))
}

// sized returns the first value in make test and the second in make chaos.
func sized[T any](bounded, full T) T {
	if *chaos {
		return full
	}
	return bounded
}

// seeded returns a source of randomness whose seed it logs. -seed or TIDEFILL_E2E_SEED repeats a
// run.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if *seedFlag != "" {
		var err error
		if seed, err = strconv.ParseUint(*seedFlag, 10, 64); err != nil {
			t.Fatalf("the seed: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
