package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/internal/simflags"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/compare/results"
	"github.com/tidefill/tidefill/simulator/lab/behaviour"
	"github.com/tidefill/tidefill/simulator/lab/bounds"
	"github.com/tidefill/tidefill/simulator/lab/policies"
)

// simulation holds the flags of the command.
type simulation struct {
	simflags.Comparison
	oracles     bool
	oracleRuns  int
	oracleSeeds int
	cache       string // directory of the results of oracles
}

func simulateCommand() *cobra.Command {
	s := simulation{Comparison: simflags.Comparison{Published: policies.Published}}
	cmd := &cobra.Command{
		Use:   "simulate SCENARIO.yaml...",
		Short: "Compare policies with published ones and with oracles",
		Long: `Simulate scenarios as tidefill simulate does, also with the policies of the laboratory. The report states which deadlines no policy
could meet, the results at the edges of a fitted profile's confidence intervals and, with --oracles, the best that anyone could have done.
simulator/lab/docs/oracles.md describes the oracles.`,
		Example: `  tidefill-lab simulate simulator/scenarios/s1-steady.yaml --policy headroom --oracles --oracle-runs 40 --out report
  tidefill-lab simulate simulator/scenarios/*.yaml --policy headroom --seeds 5 --baselines --oracles --out report`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	s.Register(flags)
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
	return cmd
}

func (s *simulation) run(ctx context.Context, files []string, out, stderr io.Writer) error {
	switch {
	case s.oracleRuns < 1:
		return compare.RequestErrorf("--oracle-runs is %d, want at least 1", s.oracleRuns)
	case s.oracleSeeds < 0:
		return compare.RequestErrorf("--oracle-seeds is %d, want at least 1, or 0 for all",
			s.oracleSeeds)
	}
	opened, err := s.Open(files, stderr)
	if err != nil {
		return err
	}
	if opened.Runs != nil {
		opened.Runs.Version = version
	}
	c := bounds.Comparison{Comparison: opened, Oracles: s.oracles, OracleRuns: s.oracleRuns,
		OracleSeeds: s.oracleSeeds}
	switch {
	case s.cache != "":
		c.Cache = &bounds.Cache{Dir: s.cache, Log: stderr}
	case s.Out != "":
		c.Cache = &bounds.Cache{Dir: filepath.Join(s.Out, "oracles"), Log: stderr}
	}
	result, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if s.Out != "" {
		if err := errors.Join(compare.WriteReport(s.Out, result),
			c.WriteReplays(filepath.Join(s.Out, "replay"), result)); err != nil {
			return err
		}
	}
	if s.JSON {
		return printJSON(out, result)
	}
	return result.Text(out)
}

// version identifies the code that a run depends on. That of a baseline is what the policy does to
// a few short pools, so that a change of one policy does not cost hours for the others.
func version(c compare.Candidate) (string, error) {
	if c.Baseline && !c.Scaling {
		return behaviour.Of(c.Policy)
	}
	return results.Program()
}
