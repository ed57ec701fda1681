package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	days "github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit"
	"github.com/tidefill/tidefill/simulator/fit/profile"
)

// profileFit is one run of the command.
type profileFit struct {
	name, prior, out, plot string
	ahead                  string
	meanContext            float64
	seed                   uint64
	json                   bool
}

func profileFitCommand() *cobra.Command {
	var p profileFit
	cmd := &cobra.Command{
		Use:   "fit FILE...",
		Short: "Fit a profile to measured engine steps",
		Long: `Fit a profile to the scheduler steps of a real engine: csv files, plain or gzipped, with the columns that docs/simulator.md
lists, or what serve --record wrote under a policy that streams lines, a file after the other. The fit is robust against outliers
and is judged on iterations it has not seen. What the data can't tell is said aloud, and is taken from --prior, or is 0.`,
		Example: `  tidefill profile fit steps.csv.gz --prior llama-70b-h100 --out profile.yaml --plot profile.svg
  tidefill profile fit day.jsonl.2 day.jsonl.1 day.jsonl --prior llama-70b-h100 --out ours.yaml
  tidefill profile show profile.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(args, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.out, "out", "", "write the profile to this `FILE`")
	flags.StringVar(&p.plot, "plot", "", "draw law and points into this SVG `FILE`")
	flags.StringVar(&p.name, "name", "",
		"`name` of the profile (default: that of --out, or of the first file)")
	flags.StringVar(&p.prior, "prior", "",
		"bundled profile or `FILE` that tells what the data can't")
	flags.Float64Var(&p.meanContext, "mean-context", 0,
		"mean `tokens` of context a decoding request, where the files don't have context_tokens")
	flags.StringVar(&p.ahead, "ahead", "auto",
		"steps the scheduler runs ahead of the GPU: 0, 1 or auto")
	flags.Uint64Var(&p.seed, "seed", 1, "of the resampling behind the errors")
	flags.BoolVar(&p.json, "json", false, "print the profile as JSON")
	return cmd
}

func (p *profileFit) run(files []string, out io.Writer) error {
	ahead, ok := map[string]fit.Ahead{"auto": fit.AheadUnknown, "0": fit.AheadNone,
		"1": fit.AheadOne}[p.ahead]
	switch {
	case !ok:
		return usageFault("--ahead is %q, want 0, 1 or auto", p.ahead)
	case p.meanContext < 0:
		return usageFault("--mean-context is %g, want 0 (not known) or more", p.meanContext)
	}
	var prior engine.Profile
	if p.prior != "" {
		f, err := profileAt(p.prior)
		if err != nil {
			return fmt.Errorf("--prior: %w", err)
		}
		if prior, err = f.Profile(); err != nil {
			return fmt.Errorf("--prior %s: %w", p.prior, err)
		}
	}
	obs, sources, err := p.observe(files, ahead)
	if err != nil {
		return err
	}
	options := fit.Options{Prior: prior, Seed: p.seed}
	result, err := fit.Fit(obs, options)
	if err != nil {
		return fmt.Errorf("fit %s: %w", strings.Join(files, ", "), err)
	}
	held := fit.CrossValidate(obs, options)
	file := profile.Of(p.profileName(files[0]), result, obs, held, prior, p.seed, sources)
	if err := p.write(file, result, obs); err != nil {
		return err
	}
	if p.json {
		return printJSON(out, file)
	}
	return printFit(out, file, result, obs, held)
}

// observe reads all files, so that all their faults are told at once.
func (p *profileFit) observe(
	files []string, ahead fit.Ahead,
) (obs fit.Observations, sources []profile.Source, err error) {
	var faults []error
	var steps []fit.Step
	var recorded fit.RecordingReader
	recordings := 0
	seen := map[string]bool{}
	for _, name := range files {
		if seen[name] {
			return obs, nil, usageFault("%s is given twice", name)
		}
		seen[name] = true
		content, err := os.ReadFile(name)
		if err != nil {
			return obs, nil, err
		}
		if days.Is(content) {
			recordings++
			_, err = days.Read(name, bytes.NewReader(content), func(e days.Entry) error {
				recorded.Add(e)
				return nil
			})
		} else {
			var more []fit.Step
			more, err = fit.ReadSteps(name, bytes.NewReader(content))
			steps = append(steps, more...)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		sum := sha256.Sum256(content)
		sources = append(sources, profile.Source{File: filepath.Base(name),
			SHA256: hex.EncodeToString(sum[:])})
	}
	switch {
	case len(faults) > 0:
		return obs, nil, errors.Join(faults...)
	case recordings > 0 && recordings < len(files):
		return obs, nil, usageFault(
			"recordings of serve --record and files of steps tell different things; fit one kind at a time")
	case recordings > 0:
		obs, err = recorded.Observations()
	default:
		obs, err = fit.Observe(steps, p.meanContext, ahead)
	}
	if err != nil {
		return obs, nil, fmt.Errorf("fit %s: %w", strings.Join(files, ", "), err)
	}
	return obs, sources, nil
}

func (p *profileFit) profileName(first string) string {
	base := filepath.Base(cmp.Or(p.out, first))
	for _, extension := range []string{".gz", ".csv", ".yaml", ".yml"} {
		base = strings.TrimSuffix(base, extension)
	}
	return cmp.Or(p.name, base)
}

func (p *profileFit) write(file profile.File, result fit.Result, obs fit.Observations) error {
	if p.out != "" {
		text, err := file.YAML()
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.out, text, 0o644); err != nil {
			return err
		}
	}
	if p.plot != "" {
		var drawing bytes.Buffer
		if err := fit.Plot(&drawing, file.Name, result.CostModel, obs.All); err != nil {
			return err
		}
		return os.WriteFile(p.plot, drawing.Bytes(), 0o644)
	}
	return nil
}

func printFit(
	out io.Writer, file profile.File, r fit.Result, obs fit.Observations, held []fit.HeldOut,
) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s: %s with a known time, %s, %d to %d decoding requests\n", file.Name,
		counted(r.Error.Points, "iteration"), counted(obs.Runs, "run"), r.Requests[0],
		r.Requests[1])
	fmt.Fprintf(w, "%s left without weight; context: %s; scheduler ahead by %d\n",
		counted(r.Outliers, "outlier"), obs.Context, obs.Ahead)
	if r.Wide > 0 {
		fmt.Fprintf(w, "%s used for the prefill in them\n", counted(r.Wide, "wider gap"))
	}
	if obs.Dropped > 0 {
		fmt.Fprintf(w, "%s beyond what a fit needs left out\n", counted(obs.Dropped, "iteration"))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\n\tvalue\terror\t5 %\t95 %\tfrom\tinflation\t")
	for _, c := range r.Coefficients {
		spread := "-\t-\t-"
		inflation := "-"
		if c.Origin == fit.FromData {
			spread = fmt.Sprintf("%.2g\t%.4g\t%.4g", c.Error, c.Low, c.High)
		}
		if c.Inflation > 0 {
			inflation = fmt.Sprintf("%.1f", c.Inflation)
		}
		fmt.Fprintf(t, "%s\t%.5g\t%s\t%s\t%s\t\n", c.Name, c.Value, spread, c.Origin, inflation)
	}
	fmt.Fprintf(t, "noise\t%.2f %%\t\t\t\t\t\t\n", 100*r.Noise)
	if err := t.Flush(); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ndecoding\tpoints\tmeasured\tlaw\terror\tp90\tbias\t")
	for _, g := range r.Ranges {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%s\n", g.Text(), g.Error.Points, g.Measured, g.Predicted,
			errorText(g.Error))
	}
	fmt.Fprintf(t, "all\t%d\t\t\t%s\n", r.Error.Points, errorText(r.Error))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nOn iterations not fitted:")
	for _, h := range held {
		if h.Fault != "" {
			fmt.Fprintf(w, "  %s: no figure: %s\n", h.Split, h.Fault)
			continue
		}
		fmt.Fprintf(w, "  %s: mean error %.1f %%, p90 %.1f %%, bias %+.1f %% (%s)\n",
			h.Split, 100*h.Error.Mean, 100*h.Error.P90, 100*h.Error.Bias,
			counted(h.Error.Points, "iteration"))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "\nwarning: %s\n", warning)
	}
	return w.Flush()
}

func errorText(e fit.Error) string {
	return fmt.Sprintf("%.1f %%\t%.1f %%\t%+.1f %%\t", 100*e.Mean, 100*e.P90, 100*e.Bias)
}
