package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/tune"
)

// tuning is one run of the command.
type tuning struct {
	settings settings
	config   string
	params   []string
	budget   int
	seeds    int
	seed     uint64
	out      string
}

func tuneCommand() *cobra.Command {
	var t tuning
	cmd := &cobra.Command{
		Use:   "tune SCENARIO.yaml... --param KEY=LOW:HIGH",
		Short: "Search the parameters of a policy by simulation",
		Long: `Simulate all scenarios with several seeds and with many values of configuration keys. If the best values are better than the
configuration on seeds that the search did not use too, write them as a configuration file. The objective is the harvest as a
share of the configuration's, reduced for interactive loss beyond the scenario's goal, missed deadlines and additional GPU hours;
the geometric mean over scenarios counts. docs/tune-a-policy.md describes the search.`,
		Example: `  tidefill tune simulator/scenarios/s1-steady.yaml simulator/scenarios/s5-burst.yaml --set flowcontrol.policy=headroom \
    --param flowcontrol.headroom.tuning.target_share.max=0.8:1.1 \
    --param flowcontrol.headroom.tuning.pace.gain=0.02:0.4:log --out tuned`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&t.params, "param", nil,
		"search `KEY=LOW:HIGH`; durations have units, integers stay integers, "+
			":log at the end spaces values by ratio; may be repeated")
	flags.IntVar(&t.budget, "budget", 200,
		"number of `runs`, each of all scenarios with one setting and one seed")
	flags.IntVar(&t.seeds, "seeds", 3,
		"search with this `number` of seeds, at least 2; as many others confirm the result")
	flags.Uint64Var(&t.seed, "seed", 1, "the first seed")
	flags.StringVar(&t.config, "config", "",
		"start from the configuration of this `file` (default: the daemon's defaults)")
	flags.StringVar(&t.out, "out", "", "write patch.yaml with the evidence into this `DIR`")
	t.settings.register(cmd)
	return cmd
}

func (t *tuning) run(ctx context.Context, files []string, out, stderr io.Writer) error {
	search, err := t.prepare(files, stderr)
	if err != nil {
		return err
	}
	tuned, err := search.Run(ctx)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := tuned.Write(&text); err != nil {
		return err
	}
	if t.out != "" && tuned.Better() {
		if err := os.MkdirAll(t.out, 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.out, "patch.yaml"), text.Bytes(),
			0o666); err != nil {
			return err
		}
	}
	_, err = out.Write(text.Bytes())
	return err
}

// prepare checks the flags and reads all files.
func (t *tuning) prepare(files []string, stderr io.Writer) (*tune.Tuning, error) {
	switch {
	case len(t.params) == 0:
		return nil, usageErrorf("nothing to search: give --param KEY=LOW:HIGH")
	case t.seeds < 2 || t.seeds > 100:
		return nil, usageErrorf(
			"--seeds is %d, want 2 to 100: what is good on one seed may be luck",
			t.seeds)
	case t.budget < 4*t.seeds:
		return nil, usageErrorf("--budget is %d, want at least four times --seeds", t.budget)
	}
	given, err := t.settings.parse()
	if err != nil {
		return nil, err
	}
	search := &tune.Tuning{
		Configuration: compare.Configuration{File: t.config, Settings: given},
		Budget:        t.budget, Log: stderr,
	}
	for i := range uint64(t.seeds) {
		search.SearchSeeds = append(search.SearchSeeds, t.seed+i)
		search.ConfirmSeeds = append(search.ConfirmSeeds, t.seed+uint64(t.seeds)+i)
	}
	var errs []error
	for _, text := range t.params {
		p, err := tune.ParseParameter(text)
		if err != nil {
			errs = append(errs, usageErrorf("--param %s: %w", text, err))
			continue
		}
		search.Parameters = append(search.Parameters, p)
	}
	if err := search.Check(); err != nil {
		errs = append(errs, fmt.Errorf("--param: %w", err))
	}
	search.Scenarios, err = compare.OpenScenarios(files, compare.Trace{})
	return search, errors.Join(append(errs, err)...)
}
