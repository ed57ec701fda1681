package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit"
)

// profileFit is one run of the command.
type profileFit struct {
	name, priorName, aheadText, out, plot string
	json                                  bool

	// prior gives the coefficients that the measurements do not show. Zero: none.
	prior engine.Profile
	ahead fit.Ahead
	// meanContext is the mean number of context tokens of a decoding request, for files without
	// the column context_tokens. 0: unknown.
	meanContext float64
	seed        uint64 // of the resampling behind the errors
}

func profileFitCommand() *cobra.Command {
	var p profileFit
	cmd := &cobra.Command{
		Use:   "fit FILE...",
		Short: "Fit a profile to measured engine iterations",
		Long: `Fit a profile to the scheduler steps of a real engine. The files are CSV files, plain or gzipped, with the columns that
docs/profiles.md lists, or recordings of serve --record under a policy that streams lines, the oldest first. The fit is robust
against outliers and is judged on iterations that it did not use. Coefficients that the measurements do not show are reported;
they are taken from --prior, or are 0.`,
		Example: `  tidefill profile fit steps.csv.gz --prior llama-70b-h100 --out profile.yaml --plot profile.svg
  tidefill profile fit recording.jsonl.2 recording.jsonl.1 recording.jsonl --prior llama-70b-h100 --out ours.yaml
  tidefill profile show profile.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(args, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.out, "out", "", "write the profile to this `FILE`")
	flags.StringVar(&p.plot, "plot", "", "draw cost model and measurements into this SVG `FILE`")
	flags.StringVar(&p.name, "name", "",
		"`name` of the profile (default: that of --out, or of the first file)")
	flags.StringVar(&p.priorName, "prior", "",
		"bundled profile or `FILE` for coefficients that the measurements do not show")
	flags.Float64Var(&p.meanContext, "mean-context", 0,
		"mean context `tokens` of a decoding request, for files without context_tokens")
	flags.StringVar(&p.aheadText, "ahead", "auto",
		"steps the scheduler runs ahead of the GPU: 0, 1 or auto")
	flags.Uint64Var(&p.seed, "seed", 1, "seed of the resampling behind the errors")
	flags.BoolVar(&p.json, "json", false, "print the profile as JSON")
	return cmd
}

func (p *profileFit) run(files []string, out io.Writer) error {
	var ok bool
	p.ahead, ok = map[string]fit.Ahead{"auto": fit.AheadUnknown, "0": fit.AheadNone,
		"1": fit.AheadOne}[p.aheadText]
	switch {
	case !ok:
		return usageErrorf("--ahead is %q, want 0, 1 or auto", p.aheadText)
	case p.meanContext < 0:
		return usageErrorf("--mean-context is %g, want 0 (not known) or more", p.meanContext)
	}
	if p.priorName != "" {
		f, err := compare.OpenProfile(p.priorName)
		if err != nil {
			return fmt.Errorf("--prior: %w", err)
		}
		if p.prior, err = f.Profile(); err != nil {
			return fmt.Errorf("--prior %s: %w", p.priorName, err)
		}
	}
	fitted, err := p.fit(files)
	if err != nil {
		return err
	}
	if err := p.write(fitted); err != nil {
		return err
	}
	if p.json {
		return printJSON(out, fitted.file)
	}
	return fitted.text(out)
}

func (p *profileFit) profileName(first string) string {
	base := filepath.Base(cmp.Or(p.out, first))
	for _, extension := range []string{".gz", ".csv", ".yaml", ".yml"} {
		base = strings.TrimSuffix(base, extension)
	}
	return cmp.Or(p.name, base)
}

func (p *profileFit) write(fitted fittedProfile) error {
	if p.out != "" {
		text, err := fitted.file.YAML()
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.out, text, 0o644); err != nil {
			return err
		}
	}
	if p.plot != "" {
		var drawing bytes.Buffer
		if err := fitted.draw(&drawing); err != nil {
			return err
		}
		return os.WriteFile(p.plot, drawing.Bytes(), 0o644)
	}
	return nil
}
