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
		"run the fault suite in full, judge the peaks of memory, and print the table \"reliability\"")
	kills = flag.Int("kills", 60, "how often the daemon is killed at random moments")
	// seedFlag repeats a run that failed.
	seedFlag = flag.String("seed", os.Getenv("TIDEFILL_E2E_SEED"),
		"the seed of the random choices; default: a new one, which the test logs")
)

// maxPeak is the memory that a daemon may use whatever users and upstreams send. make chaos judges
// by it; the bounded form runs beside other tests, with the race detector's leftovers and less
// memory pressure, and judges behaviour alone.
const maxPeak = 128 * MiB

var trials Trials

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http reports there what hostile scenarios do to its clients
	status := Main(m)
	if *chaos {
		fmt.Println()
		trials.Write(os.Stdout)
	}
	os.Exit(status)
}

// begin begins the trial of a scenario, whose peak only make chaos judges.
func begin(t *testing.T, scenario string) *Trial {
	return trials.Begin(t, scenario, sized[int64](0, maxPeak))
}

// sized chooses between the sizes of make test and make chaos.
func sized[T any](bounded, full T) T {
	if *chaos {
		return full
	}
	return bounded
}

// seeded is a source of randomness that a failing run can be repeated with: -seed or
// TIDEFILL_E2E_SEED.
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
