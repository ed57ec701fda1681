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

	"github.com/tidefill/tidefill/simulator/experiment"
	"github.com/tidefill/tidefill/simulator/fit"
)

// profileFit is one run of the command.
type profileFit struct {
	fit                           experiment.ProfileFit
	name, prior, ahead, out, plot string
	json                          bool
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
	flags.StringVar(&p.prior, "prior", "",
		"bundled profile or `FILE` for coefficients that the measurements do not show")
	flags.Float64Var(&p.fit.MeanContext, "mean-context", 0,
		"mean context `tokens` of a decoding request, for files without context_tokens")
	flags.StringVar(&p.ahead, "ahead", "auto",
		"steps the scheduler runs ahead of the GPU: 0, 1 or auto")
	flags.Uint64Var(&p.fit.Seed, "seed", 1, "seed of the resampling behind the errors")
	flags.BoolVar(&p.json, "json", false, "print the profile as JSON")
	return cmd
}

func (p *profileFit) run(files []string, out io.Writer) error {
	var ok bool
	p.fit.Ahead, ok = map[string]fit.Ahead{"auto": fit.AheadUnknown, "0": fit.AheadNone,
		"1": fit.AheadOne}[p.ahead]
	switch {
	case !ok:
		return usageErrorf("--ahead is %q, want 0, 1 or auto", p.ahead)
	case p.fit.MeanContext < 0:
		return usageErrorf("--mean-context is %g, want 0 (not known) or more", p.fit.MeanContext)
	}
	if p.prior != "" {
		f, err := experiment.OpenProfile(p.prior)
		if err != nil {
			return fmt.Errorf("--prior: %w", err)
		}
		if p.fit.Prior, err = f.Profile(); err != nil {
			return fmt.Errorf("--prior %s: %w", p.prior, err)
		}
	}
	p.fit.Files, p.fit.Name = files, p.profileName(files[0])
	fitted, err := p.fit.Run()
	if err != nil {
		return err
	}
	if err := p.write(fitted); err != nil {
		return err
	}
	if p.json {
		return printJSON(out, fitted.File)
	}
	return fitted.Text(out)
}

func (p *profileFit) profileName(first string) string {
	base := filepath.Base(cmp.Or(p.out, first))
	for _, extension := range []string{".gz", ".csv", ".yaml", ".yml"} {
		base = strings.TrimSuffix(base, extension)
	}
	return cmp.Or(p.name, base)
}

func (p *profileFit) write(fitted experiment.FittedProfile) error {
	if p.out != "" {
		text, err := fitted.File.YAML()
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.out, text, 0o644); err != nil {
			return err
		}
	}
	if p.plot != "" {
		var drawing bytes.Buffer
		if err := fitted.Plot(&drawing); err != nil {
			return err
		}
		return os.WriteFile(p.plot, drawing.Bytes(), 0o644)
	}
	return nil
}
