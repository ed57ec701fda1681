package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/experiment/randompools"
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
	noReference bool
	workers     int
	write       string // directory
}

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
	flags.StringVar(&r.horizon, "horizon", "30m", "with --random: the simulated `time` of a pool")
	flags.StringVar(&r.traces, "traces", "",
		"with --random: replay the traces azure* and mooncake* in this `DIR` in some pools "+
			"(default: $"+tracesVariable+", or none)")
	flags.BoolVar(&r.noReference, "no-reference", false,
		"with --random: do not search for the best static setting")
	flags.IntVarP(&r.workers, "jobs", "j", runtime.GOMAXPROCS(0),
		"with --random: run this `number` of pools at a time")
	flags.StringVar(&r.write, "write", "",
		"with --random: write the scenarios into this `DIR` and run nothing")
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
	case r.workers < 1:
		return nil, usageErrorf("--jobs is %d, want at least 1", r.workers)
	case len(s.policies) > 1:
		return nil, usageErrorf("--random takes one --policy; there are %d", len(s.policies))
	case s.baselines || s.oracles || s.events || s.trace != "" || s.seeds != 1:
		return nil, usageErrorf(
			"--random goes without --baselines, --oracles, --events, --trace and --seeds")
	}
	family, err := random.LookupFamily(r.family)
	if err != nil {
		return nil, usageErrorf("--family: %w", err)
	}
	traces, err := randompools.OpenTraces(cmp.Or(r.traces, os.Getenv(tracesVariable)))
	if err != nil {
		return nil, err
	}
	candidates, err := s.candidates()
	if err != nil {
		return nil, err
	}
	study := &randompools.Study{
		Source:    random.Source{Seed: s.seed, Family: family, Horizon: horizon, Traces: traces},
		Numbers:   slices.Clone(r.only),
		Candidate: candidates[0], NoReference: r.noReference, Workers: r.workers, Dir: s.out,
		Command: s.repeat(), Log: stderr,
	}
	if len(r.only) == 0 {
		for number := range r.count {
			study.Numbers = append(study.Numbers, number+1)
		}
	}
	for _, number := range study.Numbers {
		if number < 1 {
			return nil, usageErrorf("--only has %d; numbers begin at 1", number)
		}
	}
	return study, nil
}

// repeat returns the command that runs one pool; its number follows.
func (s *simulation) repeat() string {
	words := []string{"tidefill simulate --random 1 --seed", strconv.FormatUint(s.seed, 10),
		"--family", s.random.family, "--horizon", s.random.horizon}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	for _, p := range s.policies {
		add("--policy", p)
	}
	add("--config", s.config)
	for _, set := range s.settings.given {
		add("--set", "'"+set+"'")
	}
	add("--traces", s.random.traces)
	return strings.Join(append(words, "--only"), " ")
}

func (s *simulation) runRandom(ctx context.Context, out, stderr io.Writer) error {
	study, err := s.study(stderr)
	if err != nil {
		return err
	}
	switch {
	case s.random.write != "":
		return study.WriteScenarios(ctx, s.random.write)
	case s.explain != "":
		moment, err := s.explainMoment()
		if err != nil {
			return err
		}
		return study.Explain(ctx, moment, out)
	}
	began := time.Now()
	report, err := study.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d pools in %s\n", len(study.Numbers),
		time.Since(began).Round(time.Second/10))
	if s.json {
		return printJSON(out, report)
	}
	return report.Text(out)
}
