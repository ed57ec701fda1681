package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/shellword"
	"github.com/tidefill/tidefill/simulator/compare/randompools"
	"github.com/tidefill/tidefill/simulator/random"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// randomPools holds the flags of simulate --random.
type randomPools struct {
	count       int
	family      string
	only        []int
	horizon     string // as for config.ParseDuration
	traces      string // directory
	metrics     string // off, or a time as for config.ParseDuration; empty: as drawn
	noReference bool
	oracles     int // how many pools
	workers     int
	write       string // directory
	minimize    int    // number of a pool; 0: none
}

// defaultHorizon is long enough for several bursts and short enough to run hundreds of pools.
const defaultHorizon = "30m"

// tracesVariable names the directory of traces if --traces is not given.
const tracesVariable = "TIDEFILL_TRACES"

func (r *randomPools) registerFlags(flags *pflag.FlagSet) {
	var names []string
	for _, f := range random.Families() {
		names = append(names, f.Name)
	}
	flags.IntVar(&r.count, "random", 0,
		"run the policy on this `number` of random pools, drawn from --seed, and compare it with "+
			"the best safe static setting of each; docs/random-pools.md")
	flags.StringVar(&r.family, "family", names[0],
		"with --random: the `family` of the pools: "+strings.Join(names, ", "))
	flags.IntSliceVar(&r.only, "only", nil, "with --random: run these `numbers` only")
	flags.StringVar(&r.horizon, "horizon", defaultHorizon,
		"with --random: the simulated `time` of a pool")
	flags.StringVar(&r.traces, "traces", "",
		"with --random: replay the traces azure* and mooncake* in this `DIR` in some pools "+
			"; "+noTraces+": replay none (default: $"+tracesVariable+", or "+noTraces+")")
	flags.StringVar(&r.metrics, "metrics", "",
		"with --random: read engines' metrics in all pools with this `PERIOD`, such as 1s; off: "+
			"neither engines nor a gateway show metrics (default: as drawn)")
	flags.BoolVar(&r.noReference, "no-reference", false,
		"with --random: do not search for the best static setting")
	flags.IntVar(&r.oracles, "oracle-sample", 0,
		"with --random: also compare this `number` of pools, the first ones, with oracle G, which "+
			"may spend --oracle-runs on each")
	flags.IntVarP(&r.workers, "jobs", "j", runtime.GOMAXPROCS(0),
		"with --random: run this `number` of pools at a time")
	flags.StringVar(&r.write, "write", "",
		"with --random: write the scenarios into this `DIR` and run nothing")
	flags.IntVar(&r.minimize, "minimize", 0,
		"with --random: simplify the scenario of this `number` as long as the policy loses more "+
			"than a point, and print it")
}

// study checks the flags and returns the study to run.
func (s *simulation) study(stderr io.Writer) (*randompools.Study, error) {
	r := &s.random
	horizon, err := config.ParseDuration(r.horizon)
	switch {
	case err != nil || horizon < 5*scenario.Edge:
		return nil, usageErrorf("--horizon is %q; write a time of at least 5m, such as 30m or 2h",
			r.horizon)
	case r.count < 1 || r.count > 10_000:
		return nil, usageErrorf("--random is %d, want 1 to 10000", r.count)
	case s.mode == minimizePool && r.minimize < 1:
		return nil, usageErrorf("--minimize is %d; numbers begin at 1", r.minimize)
	case r.oracles < 0 || s.oracleRuns < 1:
		return nil, usageErrorf("--oracle-sample is %d and --oracle-runs %d, want at least 0 and 1",
			r.oracles, s.oracleRuns)
	case r.workers < 1:
		return nil, usageErrorf("--jobs is %d, want at least 1", r.workers)
	case len(s.policies) > 1:
		return nil, usageErrorf("--random takes one --policy; there are %d", len(s.policies))
	}
	family, err := random.LookupFamily(r.family)
	if err != nil {
		return nil, usageErrorf("--family: %w", err)
	}
	metrics, err := r.readMetrics()
	if err != nil {
		return nil, err
	}
	traces, err := randompools.OpenTraces(r.tracesDir())
	if err != nil && r.traces == "" {
		err = fmt.Errorf("$%s: %w", tracesVariable, err)
	}
	if err != nil {
		return nil, err
	}
	candidates, err := s.candidates()
	if err != nil {
		return nil, err
	}
	study := &randompools.Study{
		Source: random.Source{Seed: s.seed, Family: family, Horizon: horizon, Traces: traces,
			Metrics: metrics},
		Numbers:   slices.Clone(r.only),
		Candidate: candidates[0], NoReference: r.noReference, Workers: r.workers, Dir: s.out,
		Oracles: r.oracles, OracleRuns: s.oracleRuns,
		Command: s.repeat(), Flags: s.policyFlags(), Log: stderr,
	}
	if len(r.only) == 0 {
		for number := range r.count {
			study.Numbers = append(study.Numbers, number+1)
		}
	}
	for i, number := range r.only {
		if number < 1 {
			return nil, usageErrorf("--only has %d; numbers begin at 1", number)
		}
		if slices.Contains(r.only[:i], number) {
			return nil, usageErrorf("--only has %d twice; give each number once", number)
		}
	}
	return study, nil
}

// readMetrics reads --metrics.
func (r *randomPools) readMetrics() (random.Metrics, error) {
	switch r.metrics {
	case "":
		return random.Metrics{}, nil
	case "off":
		return random.Metrics{Off: true}, nil
	}
	period, err := config.ParseDuration(r.metrics)
	if err != nil || period < scenario.ShortestPeriod || period > scenario.LongestPeriod {
		return random.Metrics{}, usageErrorf("--metrics is %q; write a time of %s to %s, such as "+
			"1s, or off", r.metrics, scenario.ShortestPeriod, scenario.LongestPeriod)
	}
	return random.Metrics{Period: period}, nil
}

// noTraces is the value of --traces for none, whatever the variable names.
const noTraces = "none"

// tracesDir returns the directory of traces; empty: none.
func (r *randomPools) tracesDir() string {
	if r.traces == noTraces {
		return ""
	}
	return cmp.Or(r.traces, os.Getenv(tracesVariable))
}

// repeat returns the command that runs one pool; its number follows.
func (s *simulation) repeat() string {
	r := &s.random
	command := fmt.Sprintf("tidefill simulate --random 1 --seed %d", s.seed)
	if r.family != random.Families()[0].Name {
		command += " --family " + r.family
	}
	if r.horizon != defaultHorizon {
		command += " --horizon " + shellword.Of(r.horizon)
	}
	if r.metrics != "" {
		command += " --metrics " + shellword.Of(r.metrics)
	}
	command += s.policyFlags()
	// The variable may have another value where the command is repeated.
	traces := cmp.Or(r.tracesDir(), noTraces)
	return command + " --traces " + shellword.Of(traces) + " --only"
}

// policyFlags returns the flags that choose the policy, each after a space.
func (s *simulation) policyFlags() string {
	var flags strings.Builder
	for _, p := range s.policies {
		fmt.Fprintf(&flags, " --policy %s", shellword.Of(p))
	}
	if s.config != "" {
		fmt.Fprintf(&flags, " --config %s", shellword.Of(s.config))
	}
	for _, set := range s.settings.given {
		fmt.Fprintf(&flags, " --set %s", shellword.Quoted(set))
	}
	return flags.String()
}

// rareGC is the garbage collector's target while pools run. They hold some megabytes each, and make
// garbage with every request; this takes a fifth of the time away.
const rareGC = 400

func (s *simulation) runRandom(ctx context.Context, out, stderr io.Writer) error {
	study, err := s.study(stderr)
	if err != nil {
		return err
	}
	switch s.mode {
	case writePools:
		return study.WriteScenarios(ctx, s.random.write)
	case minimizePool:
		return study.Minimize(ctx, s.random.minimize, out)
	case explainPools:
		moment, err := s.explainMoment()
		if err != nil {
			return err
		}
		return study.Explain(ctx, moment, out)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(rareGC)
	}
	began := time.Now()
	report, err := study.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d pools in %s\n", len(study.Numbers),
		time.Since(began).Round(time.Second/10))
	if s.json {
		return errors.Join(printJSON(out, report), report.Err())
	}
	return errors.Join(report.Text(out), report.Err())
}
