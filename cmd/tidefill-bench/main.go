// Command tidefill-bench runs the benchmarks of docs/benchmarks.md on this machine and prints their
// table.
//
// It builds tidefill and runs it as users do, in a separate process. What the daemon is compared
// with (a bare client loop, a handler that only writes) and what it sends to (an upstream that
// answers at once) are separate processes too, so that CPU time and memory of each can be measured.
// Where possible a figure is the ratio of two sides measured in turns within the same run, because
// a machine that slows down slows both.
//
// CPU time and memory come from /proc, so Linux is needed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
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
	{"planner", time.Minute, benchPlanner},
	{"restart", 3 * time.Minute, benchRestart},
	{"listing", 3 * time.Minute, benchListing},
	{"scrape", 2 * time.Minute, benchScrape},
	{"fleet", 15 * time.Minute, benchFleet},
	{"simulate", 15 * time.Minute, benchSimulate},
	{"cluster", 10 * time.Minute, benchCluster},
}

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		exitOn(runRole(role))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "live" {
		exitOn(runLive(ctx, os.Args[2:], os.Stdout, os.Stderr))
		return
	}
	exitOn(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func exitOn(err error) {
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tidefill-bench:", err)
		os.Exit(1)
	}
}

var errMissed = errors.New("a figure misses its goal")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("tidefill-bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "comma-separated `names` of benchmarks to run: "+strings.Join(
		names(), ", ")+" (default all)")
	runs := flags.Int("runs", 3, "how often each figure is measured; the table shows medians")
	asJSON := flags.Bool("json", false, "print the figures as JSON")
	check := flags.Bool("check", false, "exit with status 1 if a goal is missed")
	dir := flags.String("dir", "",
		"work in a temporary directory below this `directory` (default: the system's)")
	profiles := flags.String("profiles", "",
		"keep CPU and heap profiles of the daemon in this `directory`, at some cost to the figures")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if *runs < 1 {
		return fmt.Errorf("--runs is %d, must be at least 1", *runs)
	}
	l, err := newEnvironment(ctx, *dir, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	l.runs, l.profiles, l.sizes = *runs, *profiles, fullSizes

	figures, err := measure(ctx, l, chosen)
	if err != nil {
		return err
	}
	if *asJSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(figures)
	} else {
		err = writeTable(stdout, figures)
	}
	if err == nil && *check && slices.ContainsFunc(figures, figure.missed) {
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

func names() []string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return all
}

func choose(only string) ([]benchmark, error) {
	if only == "" {
		return benchmarks, nil
	}
	var chosen []benchmark
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names(), name)
		if i < 0 {
			return nil, fmt.Errorf("unknown benchmark %q; choose from %s", name,
				strings.Join(names(), ", "))
		}
		chosen = append(chosen, benchmarks[i])
	}
	return chosen, nil
}
