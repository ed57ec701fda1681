package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/simflags"
	"github.com/tidefill/tidefill/simulator/compare"
)

// simulation holds the flags of the command.
type simulation struct {
	simflags.Comparison
	explain    string   // time, as for config.ParseDuration
	terms      bool     // explain with all terms of the policy
	recordings []string // files to compare with
	profile    string   // of the engines of the recorded pool
	decisions  string   // file of recorded decisions
	whatIf     []string // changes of the scenario, each as for compare.ParseChanges
	recording  string   // file or directory to replay
	since      string   // time before the recording's end, as for config.ParseDuration
}

func simulateCommand() *cobra.Command {
	var s simulation
	var mode *simulateMode
	cmd := &cobra.Command{
		Use: "simulate SCENARIO.yaml... | --recording PATH [SCENARIO.yaml] | " +
			"--compare RECORDING [SCENARIO.yaml] | --decisions FILE",
		Short: "Try policies on a simulated pool, faster than real time",
		Long: `Run the daemon's own scheduling, flow control and scaling against a model of the pool, and report the effect on interactive users
and on batches. Each scenario runs without batch work and with each policy, with the same arrivals; the difference is the cost of
batch work. docs/scenarios.md describes the keys of a scenario, docs/simulate.md the report, docs/simulation-model.md the limits of the model.

With --what-if, simulate each scenario as given and with other values of its keys, and print what would be different. Values may be
relative: -1, +2, 1.5x.

With --recording, replay what serve --record has recorded: the same jobs, and as much interactive traffic. With --what-if, this says
what users would have felt with one GPU fewer.

With --compare, simulate what serve --record has recorded, with the recorded policy, and compare each measure of the simulation
with the recorded one. The pool is that of the scenario, if one is given; otherwise the cost model of its engines is --profile, or
is fitted to the recording.

With --decisions, decide again how many replicas there should be, on what a daemon has recorded in autoscale.record, and print where
the number changes. With the daemon's configuration the decisions are the recorded ones.

Upper bounds (oracles), random pools and further published policies are in tidefill-lab: simulator/lab/README.md.

The same scenarios, configuration and seeds give the same bytes on standard output. Progress goes to standard error.`,
		Example: `  tidefill simulate simulator/scenarios/s1-steady.yaml
  tidefill simulate s1.yaml --policy headroom --policy fixed,per_runner=16 --seeds 5 --out report
  tidefill simulate s1.yaml --config tidefill.yaml --baselines --json
  tidefill simulate s1.yaml --explain 20m
  tidefill simulate s1.yaml --what-if pool.replicas=5,interactive.rate=1.2x
  tidefill simulate --recording recordings/ --since 7d --what-if replicas=-1
  tidefill simulate --compare recording.jsonl --profile ours.yaml
  tidefill simulate --decisions decisions.jsonl --config tidefill.yaml --set autoscale.down.hold=20m`,
		Args: func(cmd *cobra.Command, args []string) error {
			mode = simulateModeOf(cmd.Flags())
			if err := mode.check(cmd.Flags()); err != nil {
				return err
			}
			switch {
			case mode == decisionsMode && len(args) > 0:
				return usageErrorf("--decisions takes no scenario, and no --policy or --compare; " +
					"set what differs with --set autoscale.")
			case (mode == recordingMode || mode == replayMode) && len(args) > 1:
				return usageErrorf("%s takes the pool from one scenario at most; there are %d",
					mode.name, len(args))
			case mode == decisionsMode || mode == recordingMode || mode == replayMode:
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			switch mode {
			case decisionsMode:
				return s.decideAgain(out)
			case recordingMode:
				return s.compareRecording(ctx, args, out, stderr)
			case explainMode:
				return s.explainScenarios(ctx, args, out, stderr)
			case replayMode:
				return s.replay(ctx, args, out, stderr)
			case whatIfMode:
				return s.runWhatIf(ctx, args, out, stderr)
			}
			return s.run(ctx, args, out, stderr)
		},
	}
	flags := cmd.Flags()
	s.Register(flags)
	completeFlags(cmd, map[string][]string{"policy": flowcontrol.Policies()})
	completeSettings(cmd)
	flags.StringVar(&s.explain, "explain", "",
		"print only why the first policy decided as it did around this `time` of the first seed, "+
			"such as 20m")
	flags.BoolVar(&s.terms, "terms", false, "with --explain: print all terms of the policy, too")
	flags.StringArrayVar(&s.recordings, "compare", nil,
		"simulate this recorded `FILE` and print the error of the simulation; repeat it for all "+
			"files that one start of the daemon has written, the oldest first")
	flags.StringVar(&s.decisions, "decisions", "",
		"decide again on this `FILE` of recorded decisions about replicas")
	flags.StringArrayVar(&s.whatIf, "what-if", nil,
		"compare with another value of a key of the scenario (`KEY=VALUE`, or relative: +2, -1, "+
			"1.5x); several after commas, or repeat it")
	flags.StringVar(&s.recording, "recording", "",
		"replay a recording (`PATH` of a file or of a directory)")
	flags.StringVar(&s.since, "since", "",
		"with --recording: only this `time` until its end, such as 7d")
	flags.StringVar(&s.profile, "profile", "",
		"with --recording and --compare: the profile of the recorded engines, a bundled one "+
			"or a `FILE`")
	return cmd
}

func (s *simulation) run(ctx context.Context, files []string, out, stderr io.Writer) error {
	c, err := s.Open(files, stderr)
	if err != nil {
		return err
	}
	return s.compare(ctx, c, out)
}

// compare runs a comparison and prints its report.
func (s *simulation) compare(ctx context.Context, c *compare.Comparison, out io.Writer) error {
	result, err := c.Run(ctx)
	if err != nil {
		return err
	}
	return s.print(out, &result)
}

// simulatedReport is the result of a simulation.
type simulatedReport interface {
	Text(io.Writer) error
	HTML(io.Writer) error
}

// print prints a result, and writes its report with --out.
func (s *simulation) print(out io.Writer, result simulatedReport) error {
	if s.Out != "" {
		if err := compare.WriteReport(s.Out, result); err != nil {
			return err
		}
	}
	if s.JSON {
		return printJSON(out, result)
	}
	return result.Text(out)
}

func (s *simulation) explainScenarios(
	ctx context.Context, files []string, out, stderr io.Writer,
) error {
	c, err := s.Open(files, stderr)
	if err != nil {
		return err
	}
	moment, err := simflags.Moment(s.explain)
	if err != nil {
		return err
	}
	return c.Explain(ctx, moment, s.terms, out)
}

// compareRecording simulates a recording and prints the recorded and the simulated measures.
func (s *simulation) compareRecording(
	ctx context.Context, scenarios []string, out, stderr io.Writer,
) error {
	cfg, err := s.Configuration()
	if err != nil {
		return err
	}
	if len(s.Names) > 1 {
		return usageErrorf("--compare takes one --policy; there are %d", len(s.Names))
	}
	c := compare.RecordingComparison{Files: s.recordings, Profile: s.profile,
		Configuration: cfg, Seed: s.Seed, Log: stderr}
	if len(s.Names) > 0 {
		c.Policy = s.Names[0]
	}
	if len(scenarios) == 1 {
		c.Scenario = scenarios[0]
	}
	r, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if s.JSON {
		return printJSON(out, r)
	}
	return r.Text(out)
}
