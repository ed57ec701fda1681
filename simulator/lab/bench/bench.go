// Package bench measures the speed and memory of a daemon on this machine.
// simulator/lab/docs/benchmarks.md says how.
//
// It builds tidefill and runs it as users do, in a separate process. What the daemon is compared
// with (a bare client loop, a handler that only writes) and what it sends to (an upstream that
// answers at once) are separate processes too, so that CPU time and memory of each can be measured.
// Where possible a figure is the ratio of two sides measured in turns within the same run, because
// a machine that slows down slows both.
//
// CPU time and memory come from /proc, so Linux is needed.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// benchmark is one subject of the table.
type benchmark struct {
	name  string
	limit time.Duration // of all its runs
	run   func(context.Context, *environment) ([]figure, error)
}

var benchmarks = []benchmark{
	{"dispatch", 4 * time.Minute, benchDispatch},
	{"streams", 6 * time.Minute, benchStreams},
	{"upload", 2 * time.Minute, benchUpload},
	{"start", time.Minute, benchStart},
	{"small", time.Minute, benchSmall},
	{"memory", 4 * time.Minute, benchMemory},
	{"answers", 5 * time.Minute, benchAnswers},
	{"restart", 3 * time.Minute, benchRestart},
	{"listing", 3 * time.Minute, benchListing},
	{"scrape", 2 * time.Minute, benchScrape},
	{"fleet", 15 * time.Minute, benchFleet},
	{"simulate", 15 * time.Minute, benchSimulate},
	{"cluster", 10 * time.Minute, benchCluster},
}

// Options choose benchmarks and set the number of their runs, and where they run.
type Options struct {
	// Only names the benchmarks to run. Empty: all.
	Only []string
	// Runs is the number of measurements of each figure, at least 1. The table shows medians.
	Runs int
	// JSON prints the figures as JSON.
	JSON bool
	// Check returns an error if a figure misses its goal.
	Check bool
	// Dir is a directory for temporary ones. Empty: the system's.
	Dir string
	// Profiles is a directory for CPU and heap profiles of the daemon. Empty: none are kept.
	Profiles string
}

var errMissed = errors.New("a figure misses its goal")

// Run runs benchmarks and prints their table. Progress goes to stderr.
func Run(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	chosen, err := choose(o.Only)
	if err != nil {
		return err
	}
	if o.Runs < 1 {
		return fmt.Errorf("--runs is %d, must be at least 1", o.Runs)
	}
	l, err := newEnvironment(ctx, o.Dir, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	l.runs, l.profiles, l.sizes = o.Runs, o.Profiles, fullSizes

	figures, err := measure(ctx, l, chosen)
	if err != nil {
		return err
	}
	if o.JSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(figures)
	} else {
		err = writeTable(stdout, figures)
	}
	if err == nil && o.Check && slices.ContainsFunc(figures, figure.missed) {
		return errMissed
	}
	return err
}

func measure(ctx context.Context, l *environment, chosen []benchmark) ([]figure, error) {
	var all []figure
	for _, b := range chosen {
		begun := time.Now()
		figures, err := measureOne(ctx, l, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		l.logf("%s took %v", b.name, time.Since(begun).Round(time.Second))
		for i := range figures {
			figures[i].Benchmark = b.name
		}
		all = append(all, figures...)
	}
	return all, nil
}

func measureOne(ctx context.Context, l *environment, b benchmark) ([]figure, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit,
		fmt.Errorf("took longer than its limit of %v", b.limit))
	defer cancel()
	figures, err := b.run(ctx, l)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return figures, err
}

// Names returns the names of all benchmarks.
func Names() []string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return all
}

func choose(only []string) ([]benchmark, error) {
	if len(only) == 0 {
		return benchmarks, nil
	}
	var chosen []benchmark
	for _, name := range only {
		i := slices.Index(Names(), name)
		if i < 0 {
			return nil, fmt.Errorf("unknown benchmark %q; choose from %s", name,
				strings.Join(Names(), ", "))
		}
		chosen = append(chosen, benchmarks[i])
	}
	return chosen, nil
}
