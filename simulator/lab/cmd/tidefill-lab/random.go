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
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/shellword"
	"github.com/tidefill/tidefill/internal/simflags"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/lab/randompools"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// randomPools holds the flags of random and of the commands below it.
type randomPools struct {
	simflags.Policies
	seed    uint64
	family  string
	only    []int
	horizon string // as for config.ParseDuration
	traces  string // directory
	metrics string // off, or a time as for config.ParseDuration; empty: as drawn
	out     string // directory
	workers int

	// The flags of random alone.
	noReference bool
	oracles     int // number of pools
	oracleRuns  int
	json        bool
}

// defaultHorizon is long enough for several bursts and short enough to run hundreds of pools.
const defaultHorizon = "30m"

// tracesVariable names the directory of traces if --traces is not given.
const tracesVariable = "TIDEFILL_TRACES"

func randomCommand() *cobra.Command {
	var r randomPools
	cmd := &cobra.Command{
		Use:   "random N | --only NUMBERS",
		Short: "Judge a policy on random pools",
		Long: `Run a policy on the pools 1 to N of a seed, drawn at random, and compare it with the best safe static setting of each.
simulator/lab/docs/random-pools.md says what is drawn and how to read the report.`,
		Example: `  tidefill-lab random 100 --seed 1 --policy headroom --out study
  tidefill-lab random --only 17 --seed 1 --policy headroom
  tidefill-lab random explain 12m --only 17`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.judge(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "explain TIME [N]",
		Short: "Print why the policy decided as it did around a time of each pool",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			moment, err := simflags.Moment(args[0])
			if err != nil {
				return err
			}
			study, err := r.study(args[1:], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return study.Explain(cmd.Context(), moment, cmd.OutOrStdout())
		},
	}, &cobra.Command{
		Use:   "write DIR [N]",
		Short: "Write the scenarios of the pools into a directory, and run nothing",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			study, err := r.study(args[1:], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return study.WriteScenarios(cmd.Context(), args[0])
		},
	}, &cobra.Command{
		Use:   "minimize NUMBER",
		Short: "Simplify a pool as long as the policy loses more than a point, and print it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[0])
			if err != nil {
				return compare.RequestErrorf("the number is %q; numbers begin at 1", args[0])
			}
			r.only = []int{number}
			study, err := r.study(nil, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return study.Minimize(cmd.Context(), number, cmd.OutOrStdout())
		},
	})
	r.register(cmd.PersistentFlags())
	flags := cmd.Flags()
	flags.BoolVar(&r.noReference, "no-reference", false,
		"do not search for the best static setting")
	flags.IntVar(&r.oracles, "oracle-sample", 0,
		"also compare this `number` of pools, the first ones, with oracle G")
	flags.IntVar(&r.oracleRuns, "oracle-runs", 60,
		"maximum `number` of simulations by oracle G for a pool")
	flags.BoolVar(&r.json, "json", false, "print the report as JSON")
	return cmd
}

// register adds the flags of all commands.
func (r *randomPools) register(flags *pflag.FlagSet) {
	var names []string
	for _, f := range random.Families() {
		names = append(names, f.Name)
	}
	r.Register(flags)
	flags.Uint64Var(&r.seed, "seed", 1, "the `seed` that pools are drawn from")
	flags.StringVar(&r.family, "family", names[0],
		"the `family` of the pools: "+strings.Join(names, ", "))
	flags.IntSliceVar(&r.only, "only", nil, "run the pools of these `numbers` only")
	flags.StringVar(&r.horizon, "horizon", defaultHorizon, "the simulated `time` of a pool")
	flags.StringVar(&r.traces, "traces", "",
		"replay the traces azure* and mooncake* in this `DIR` in some pools; "+noTraces+
			": replay none (default: $"+tracesVariable+", or "+noTraces+")")
	flags.StringVar(&r.metrics, "metrics", "",
		"read engines' metrics in all pools with this `PERIOD`, such as 1s; off: neither engines "+
			"nor a gateway show metrics (default: as drawn)")
	flags.IntVarP(&r.workers, "jobs", "j", runtime.GOMAXPROCS(0),
		"run this `number` of pools at a time")
	flags.StringVar(&r.out, "out", "",
		"keep pools, references and results in this `DIR`, and use what it has")
}

// study checks the flags and returns the study to run, of --only or of the pools 1 to the number
// that args have.
func (r *randomPools) study(args []string, stderr io.Writer) (*randompools.Study, error) {
	horizon, err := config.ParseDuration(r.horizon)
	switch {
	case err != nil || horizon < 5*scenario.Edge:
		return nil, compare.RequestErrorf("--horizon is %q; write a time of at least 5m, such as "+
			"30m or 2h", r.horizon)
	case r.oracles < 0 || r.oracleRuns < 1:
		return nil, compare.RequestErrorf("--oracle-sample is %d and --oracle-runs %d, want at "+
			"least 0 and 1", r.oracles, r.oracleRuns)
	case r.workers < 1:
		return nil, compare.RequestErrorf("--jobs is %d, want at least 1", r.workers)
	case len(r.Names) > 1:
		return nil, compare.RequestErrorf("random takes one --policy; there are %d", len(r.Names))
	}
	numbers, err := r.numbers(args)
	if err != nil {
		return nil, err
	}
	family, err := random.LookupFamily(r.family)
	if err != nil {
		return nil, compare.RequestErrorf("--family: %w", err)
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
	candidates, err := r.Candidates()
	if err != nil {
		return nil, err
	}
	return &randompools.Study{
		Source: random.Source{Seed: r.seed, Family: family, Horizon: horizon, Traces: traces,
			Metrics: metrics},
		Numbers: numbers, Candidate: candidates[0], NoReference: r.noReference,
		Workers: r.workers, Dir: r.out, Oracles: r.oracles, OracleRuns: r.oracleRuns,
		Command: r.repeat(), Flags: r.policyFlags(), Log: stderr,
	}, nil
}

// numbers returns those of the pools.
func (r *randomPools) numbers(args []string) ([]int, error) {
	if (len(args) == 0) == (len(r.only) == 0) {
		return nil, compare.RequestErrorf("give a number of pools, or --only with their numbers")
	}
	for i, number := range r.only {
		if number < 1 {
			return nil, compare.RequestErrorf("--only has %d; numbers begin at 1", number)
		}
		if slices.Contains(r.only[:i], number) {
			return nil, compare.RequestErrorf("--only has %d twice; give each number once", number)
		}
	}
	if len(args) == 0 {
		return r.only, nil
	}
	count, err := strconv.Atoi(args[0])
	if err != nil || count < 1 || count > 10_000 {
		return nil, compare.RequestErrorf("the number is %q, want 1 to 10000", args[0])
	}
	var numbers []int
	for i := range count {
		numbers = append(numbers, i+1)
	}
	return numbers, nil
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
		return random.Metrics{}, compare.RequestErrorf("--metrics is %q; write a time of %s to "+
			"%s, such as 1s, or off", r.metrics, scenario.ShortestPeriod, scenario.LongestPeriod)
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
func (r *randomPools) repeat() string {
	command := fmt.Sprintf("tidefill-lab random --seed %d", r.seed)
	if r.family != random.Families()[0].Name {
		command += " --family " + r.family
	}
	if r.horizon != defaultHorizon {
		command += " --horizon " + shellword.Of(r.horizon)
	}
	if r.metrics != "" {
		command += " --metrics " + shellword.Of(r.metrics)
	}
	command += r.policyFlags()
	// The variable may have another value where the command is repeated.
	traces := cmp.Or(r.tracesDir(), noTraces)
	return command + " --traces " + shellword.Of(traces) + " --only"
}

// policyFlags returns the flags that choose the policy, each after a space.
func (r *randomPools) policyFlags() string {
	var flags strings.Builder
	for _, p := range r.Names {
		fmt.Fprintf(&flags, " --policy %s", shellword.Of(p))
	}
	if r.Config != "" {
		fmt.Fprintf(&flags, " --config %s", shellword.Of(r.Config))
	}
	for _, set := range r.Settings {
		fmt.Fprintf(&flags, " --set %s", shellword.Quoted(set))
	}
	return flags.String()
}

// rareGC is the garbage collector's target while pools run. They hold some megabytes each, and make
// garbage with every request; this takes a fifth of the time away.
const rareGC = 400

// judge runs the policy on all pools and prints the report.
func (r *randomPools) judge(ctx context.Context, args []string, out, stderr io.Writer) error {
	study, err := r.study(args, stderr)
	if err != nil {
		return err
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
	if r.json {
		return errors.Join(printJSON(out, report), report.Err())
	}
	return errors.Join(report.Text(out), report.Err())
}
