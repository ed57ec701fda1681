package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// environment holds what benchmarks share: a temporary directory, the binary under test, and the
// amount of work to do.
type environment struct {
	dir      string
	binary   string
	runs     int
	profiles string // directory for profiles; empty: none are kept
	sizes    sizes
	stderr   io.Writer

	prepared string // data directory of prepareStore; empty: not yet prepared
}

// sizes holds the amounts of work that the benchmarks do.
type sizes struct {
	dispatchLines  int
	concurrencies  []int
	uploadLines    int // of lineBytes
	starts         int
	smallBatches   int
	smallLines     int
	waitingBatches int
	endedBatches   int
	memoryLines    []int // of lineBytes, by batch
	largeAnswers   int   // at once
	largeBytes     int   // of each
	listings       int
	simulated      time.Duration // horizon
	idle           time.Duration // the time for which the idle daemon is observed
	// streamsInFlight is the number of lines in flight in the benchmark of streams.
	streamsInFlight int
	fleetLines      int
	fleetInFlight   int           // of these
	fleetSpan       time.Duration // the time for which the daemon is observed
	// of the cluster
	sharedBatches int // of dispatchLines, one after the other
	sharedSlow    time.Duration
	sharedSteady  int   // lines
	sharedLarge   []int // lines of large batches
}

// lineBytes is the length of the lines of large files: 50,000 of them are 200 MB.
const lineBytes = 4_000

var fullSizes = sizes{
	dispatchLines:   50_000,
	concurrencies:   []int{10, 100, 500},
	uploadLines:     50_000,
	starts:          20,
	smallBatches:    100,
	smallLines:      100,
	waitingBatches:  10_000,
	endedBatches:    100_000,
	memoryLines:     []int{12_500, 50_000, 100_000},
	largeAnswers:    24,
	largeBytes:      60_000_000,
	listings:        50,
	simulated:       24 * time.Hour,
	idle:            3 * time.Second,
	streamsInFlight: 100,
	fleetLines:      20_000,
	fleetInFlight:   1000,
	fleetSpan:       10 * time.Second,
	sharedBatches:   4,
	sharedSlow:      10 * time.Millisecond,
	sharedSteady:    250_000,
	sharedLarge:     []int{125_000, 1_000_000},
}

func newEnvironment(ctx context.Context, parent string, stderr io.Writer) (*environment, error) {
	dir, err := os.MkdirTemp(parent, "tidefill-bench-")
	if err != nil {
		return nil, err
	}
	l := &environment{dir: dir, binary: filepath.Join(dir, "tidefill"), stderr: stderr}
	if err := Build(ctx, l.binary); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// Build builds tidefill as a file. The current directory must belong to its module, or to one that
// requires it.
func Build(ctx context.Context, file string) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/tidefill/tidefill").Output()
	if err != nil {
		return fmt.Errorf("find the module of tidefill: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", file, "./cmd/tidefill")
	build.Dir = strings.TrimSpace(string(dir))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build tidefill: %w\n%s", err, out)
	}
	return nil
}

func (l *environment) close() error { return os.RemoveAll(l.dir) }

func (l *environment) logf(format string, args ...any) {
	fmt.Fprintf(l.stderr, format+"\n",
		args...)
}

// newDir creates a new directory.
func (l *environment) newDir(name string) (string, error) { return os.MkdirTemp(l.dir, name+"-") }
