package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/workload"
)

// simulation holds the flags of the command.
type simulation struct {
	mode        simulateMode
	settings    settings
	config      string // file
	policies    []string
	baselines   bool
	oracles     bool
	oracleRuns  int
	oracleSeeds int
	cache       string // directory of the results of oracles
	seed        uint64
	seeds       int
	trace       string // file of interactive traffic
	format      string // of the trace
	out         string // directory of the report
	json        bool
	events      bool
	explain     string // time, as for config.ParseDuration
	random      randomPools

	recordings []string // files to compare with
	profile    string   // of the engines of the recorded pool
	decisions  string   // file of recorded decisions
}

func simulateCommand() *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use: "simulate SCENARIO.yaml... | --random N | --compare RECORDING [SCENARIO.yaml] | " +
			"--decisions FILE",
		Short: "Try policies on a simulated pool, faster than real time",
		Long: `Run the daemon's own scheduling, flow control and scaling against a model of the pool, and report the effect on interactive users
and on batches. Each scenario runs without batch work and with each policy, with the same arrivals; the difference is the cost of
batch work. docs/scenarios.md describes the keys of a scenario, docs/simulate.md the report, docs/simulation-model.md the limits of the model.

With --compare, simulate what serve --record has recorded, with the recorded policy, and compare each measure of the simulation
with the recorded one. The pool is that of the scenario, if one is given; otherwise the cost model of its engines is --profile, or
is fitted to the recording.

With --decisions, decide again how many replicas there should be, on what a daemon has recorded in autoscale.record, and print where
the number changes. With the daemon's configuration the decisions are the recorded ones.

With --random, run a policy on pools drawn at random and compare it with the best safe static
setting of each. docs/random-pools.md says what is drawn and how to read the report.

The same scenarios, configuration and seeds give the same bytes on standard output. Progress goes to standard error.`,
		Example: `  tidefill simulate simulator/scenarios/s1-steady.yaml
  tidefill simulate s1.yaml --policy headroom --policy fixed,per_runner=16 --seeds 5 --out report
  tidefill simulate s1.yaml --config tidefill.yaml --baselines --oracles --json
  tidefill simulate s1.yaml --explain 20m
  tidefill simulate --random 100 --seed 1 --out study
  tidefill simulate --random 1 --only 17 --explain 12m
  tidefill simulate --compare recording.jsonl --profile ours.yaml
  tidefill simulate --decisions decisions.jsonl --config tidefill.yaml --set autoscale.deadline.guard=5m`,
		Args: func(cmd *cobra.Command, args []string) error {
			s.mode = simulateModeOf(cmd.Flags())
			if err := checkSimulateFlags(cmd, s.mode); err != nil {
				return err
			}
			switch {
			case s.mode&ofPools != 0:
				return cobra.NoArgs(cmd, args)
			case s.mode == decideAgain && len(args) > 0:
				return usageErrorf("--decisions takes no scenario, and no --policy or --compare; " +
					"set what differs with --set autoscale.")
			case s.mode&(decideAgain|compareRecording) != 0:
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case s.mode&ofPools != 0:
				return s.runRandom(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			case s.mode == decideAgain:
				return s.decideAgain(cmd.OutOrStdout())
			case s.mode == compareRecording:
				return s.compareRecording(cmd.Context(), args, cmd.OutOrStdout(),
					cmd.ErrOrStderr())
			}
			return s.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.registerFlags(cmd)
	return cmd
}

func (s *simulation) registerFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&s.policies, "policy", nil,
		"try this flow-control `policy`, with settings of its own after commas "+
			"(fixed,per_runner=16); repeat it to compare (default: the configuration's)")
	flags.StringVar(&s.config, "config", "",
		"read the policies' settings from this `file`, a configuration of the daemon "+
			"(default: the daemon's defaults)")
	flags.BoolVar(&s.baselines, "baselines", false,
		"compare with published policies, each with its published and with its best settings")
	flags.BoolVar(&s.oracles, "oracles", false,
		"search for the best result that any policy could have reached")
	flags.IntVar(&s.oracleRuns, "oracle-runs", 60,
		"maximum `number` of simulations by an oracle for a scenario of one hour; "+
			"for a longer scenario it is lower in proportion")
	flags.IntVar(&s.oracleSeeds, "oracle-seeds", 0,
		"let oracles search this `number` of seeds, from the first (default: all)")
	flags.StringVar(&s.cache, "oracle-results", "",
		"cache the results of oracles in this `DIR`, and search again only if a cached result "+
			"does not match its inputs (default: the directory oracles in --out)")
	flags.Uint64Var(&s.seed, "seed", 1, "the first `seed` of everything random")
	flags.IntVar(&s.seeds, "seeds", 1,
		"run this `number` of seeds, from --seed on, and report mean and worst")
	flags.StringVar(&s.trace, "trace", "",
		"read interactive traffic from this `FILE` instead of the scenario's")
	flags.StringVar(&s.format, "format", "", "the trace's `format`: azure, mooncake or csv")
	flags.StringVar(&s.out, "out", "",
		"write report.html and result.json into this `DIR`, and keep finished runs there, so that "+
			"a command that was stopped continues when it is repeated")
	flags.BoolVar(&s.json, "json", false, "print the content of result.json")
	flags.BoolVar(&s.events, "events", false,
		"write every decision of the first policy with the first seed into events.log; needs --out")
	flags.StringVar(&s.explain, "explain", "",
		"print only why the first policy decided as it did around this `time` of the first seed, "+
			"such as 20m")
	flags.StringArrayVar(&s.recordings, "compare", nil,
		"simulate this recorded `FILE` and print the error of the simulation; repeat it for all "+
			"files that one start of the daemon has written, the oldest first")
	flags.StringVar(&s.decisions, "decisions", "",
		"decide again on this `FILE` of recorded decisions about replicas")
	flags.StringVar(&s.profile, "profile", "",
		"with --compare: the profile of the recorded engines, a bundled one or a `FILE`")
	s.random.registerFlags(flags)
	s.settings.register(cmd)
}

func (s *simulation) run(ctx context.Context, files []string, out, stderr io.Writer) error {
	c, err := s.comparison(files, stderr)
	if err != nil {
		return err
	}
	if s.mode == explainScenarios {
		moment, err := s.explainMoment()
		if err != nil {
			return err
		}
		return c.Explain(ctx, moment, out)
	}
	result, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if s.out != "" {
		if err := errors.Join(compare.WriteReport(s.out, &result),
			c.WriteReplays(filepath.Join(s.out, "replay"), result)); err != nil {
			return err
		}
	}
	if s.json {
		return printJSON(out, result)
	}
	return result.Text(out)
}

// explainMoment reads --explain.
func (s *simulation) explainMoment() (time.Duration, error) {
	moment, err := config.ParseDuration(s.explain)
	if err != nil || moment < 0 {
		return 0, usageErrorf("--explain is %q; write a time from the beginning, such as 20m or "+
			"90s", s.explain)
	}
	return moment, nil
}

// comparison checks the flags, reads the scenarios and returns the comparison to run.
func (s *simulation) comparison(files []string, stderr io.Writer) (*compare.Comparison, error) {
	switch {
	case s.seeds < 1 || s.seeds > 1000:
		return nil, usageErrorf("--seeds is %d, want 1 to 1000", s.seeds)
	case s.oracleRuns < 1:
		return nil, usageErrorf("--oracle-runs is %d, want at least 1", s.oracleRuns)
	case s.oracleSeeds < 0:
		return nil, usageErrorf("--oracle-seeds is %d, want at least 1, or 0 for all",
			s.oracleSeeds)
	case (s.trace == "") != (s.format == ""):
		return nil, usageErrorf("--trace and --format go together; give both")
	case s.format != "" && !slices.Contains(workload.Formats, workload.Format(s.format)):
		return nil, usageErrorf("--format is %q, want one of %q", s.format, workload.Formats)
	case s.events && s.out == "":
		return nil, usageErrorf("--events needs --out DIR, where events.log goes")
	}
	candidates, err := s.candidates()
	if err != nil {
		return nil, err
	}
	scenarios, err := compare.OpenScenarios(files, compare.Trace{File: s.trace,
		Format: workload.Format(s.format)})
	if err != nil {
		return nil, err
	}
	c := &compare.Comparison{Scenarios: scenarios, Candidates: candidates, Oracles: s.oracles,
		OracleRuns: s.oracleRuns, OracleSeeds: s.oracleSeeds, Spread: true,
		Timelines: s.out != "", Log: stderr}
	if s.events {
		c.Events = s.out
	}
	if s.out != "" {
		if c.Runs, err = compare.OpenRuns(filepath.Join(s.out, "runs")); err != nil {
			return nil, err
		}
	}
	switch {
	case s.cache != "":
		c.Cache = &compare.Cache{Dir: s.cache, Log: stderr}
	case s.out != "":
		c.Cache = &compare.Cache{Dir: filepath.Join(s.out, "oracles"), Log: stderr}
	}
	for i := range s.seeds {
		c.Seeds = append(c.Seeds, s.seed+uint64(i))
	}
	return c, nil
}

func (s *simulation) configuration() (compare.Configuration, error) {
	given, err := s.settings.parse()
	return compare.Configuration{File: s.config, Settings: given}, err
}

// candidates returns the policies to compare: those of --policy, then the baselines.
func (s *simulation) candidates() ([]compare.Candidate, error) {
	cfg, err := s.configuration()
	if err != nil {
		return nil, err
	}
	policies := s.policies
	if len(policies) == 0 {
		policies = []string{""}
	}
	var all []compare.Candidate
	for _, text := range policies {
		candidate, err := cfg.Candidate(text)
		if err != nil && text != "" {
			err = fmt.Errorf("--policy %s: %w", text, err)
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(c compare.Candidate) bool {
			return c.Name == candidate.Name
		}) {
			return nil, usageErrorf("--policy %s is given twice", candidate.Name)
		}
		all = append(all, candidate)
	}
	if s.baselines {
		return cfg.Baselines(all, policies[0])
	}
	return all, nil
}

// compareRecording simulates a recording and prints the recorded and the simulated measures.
func (s *simulation) compareRecording(
	ctx context.Context, scenarios []string, out, stderr io.Writer,
) error {
	if len(scenarios) > 1 {
		return usageErrorf("--compare takes the pool from one scenario at most; there are %d",
			len(scenarios))
	}
	cfg, err := s.configuration()
	if err != nil {
		return err
	}
	if len(s.policies) > 1 {
		return usageErrorf("--compare takes one --policy; there are %d", len(s.policies))
	}
	c := compare.RecordingComparison{Files: s.recordings, Profile: s.profile,
		Configuration: cfg, Seed: s.seed, Log: stderr}
	if len(s.policies) > 0 {
		c.Policy = s.policies[0]
	}
	if len(scenarios) == 1 {
		c.Scenario = scenarios[0]
	}
	r, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if s.json {
		return printJSON(out, r)
	}
	return r.Text(out)
}
