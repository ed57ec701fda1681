package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit/profile"
)

func profileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Fit and show the cost models of engines",
		Long: `A profile is the cost model of an engine's iterations, in milliseconds, with the engine's limits:

  T = c0 + c1*n + c2*max(0, n-n0) + kv*S + sum over prefill chunks [ p1*c + p2*c*(k + c/2) ]

n is the number of tokens in an iteration, S the number of context tokens that decoding requests attend to, c the number of tokens
of a chunk and k the number of tokens of its prompt computed before.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(profileFitCommand(), profileListCommand(), profileShowCommand())
	return cmd
}

func profileListCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the bundled profiles",
		Long: `List the bundled profiles: the model and the GPUs that each is of, and whether its cost model is fitted to iterations of a server or
composed from timings of operators. ALONE is the time per token of a request that is alone on the engine, below which no objective can be. TOKENS/S
are those of answers, by the cost model, of an engine full of requests with 700 prompt tokens and 200 tokens of answer. -o wide has the
coefficients of the cost model.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			rows := profileRows(&o)
			for _, p := range engine.Profiles() {
				if err := rows.add(cmd.OutOrStdout(), p); err != nil {
					return err
				}
			}
			return rows.end()
		},
	}
	o.register(cmd, tableFormats)
	return cmd
}

// profileRows returns the table of bundled profiles.
func profileRows(o *output) *listing[engine.Profile] {
	rows := &listing[engine.Profile]{output: o, columns: []column[engine.Profile]{
		{title: "PROFILE", cell: func(p engine.Profile) string { return p.Name }},
		{title: "MODEL", cell: func(p engine.Profile) string {
			return engine.OriginOf(p.Name).Model
		}},
		{title: "GPUS", cell: func(p engine.Profile) string {
			return engine.OriginOf(p.Name).GPUs
		}},
		{title: "ALONE", cell: func(p engine.Profile) string {
			return fmt.Sprintf("%.1f ms", p.CostModel.Iteration(1, 0, 0))
		}},
		{title: "TOKENS/S", cell: func(p engine.Profile) string {
			return humanize.Thousands(int64(p.Throughput(costmodel.Mix{Prompt: 700, Output: 200})))
		}},
		{title: "FROM", cell: func(p engine.Profile) string {
			if p.Measured {
				return "iterations"
			}
			return "operators"
		}},
	}, name: func(p engine.Profile) string { return p.Name },
		raw: func(p engine.Profile) any { return profile.Bundled(p) }}
	for _, c := range []struct {
		title string
		of    func(engine.Profile) float64
	}{
		{"C0", func(p engine.Profile) float64 { return p.CostModel.C0 }},
		{"C1", func(p engine.Profile) float64 { return p.CostModel.C1 }},
		{"C2", func(p engine.Profile) float64 { return p.CostModel.C2 }},
		{"N0", func(p engine.Profile) float64 { return p.CostModel.N0 }},
		{"KV", func(p engine.Profile) float64 { return p.CostModel.KV }},
		{"P1", func(p engine.Profile) float64 { return p.CostModel.P1 }},
		{"P2", func(p engine.Profile) float64 { return p.CostModel.P2 }},
	} {
		rows.columns = append(rows.columns, column[engine.Profile]{title: c.title, wide: true,
			cell: func(p engine.Profile) string { return fmt.Sprintf("%g", c.of(p)) }})
	}
	rows.columns = append(rows.columns, column[engine.Profile]{title: "KV TOKENS", wide: true,
		cell: func(p engine.Profile) string { return humanize.Thousands(int64(p.KVTokens)) }})
	return rows
}

func profileShowCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "show NAME|FILE",
		Short: "Print a bundled or a fitted profile",
		Long: "Print a bundled profile, or one that profile fit has written, as the YAML that a " +
			"simulation reads.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			f, err := compare.OpenProfile(args[0])
			if err != nil {
				return err
			}
			return writeProfile(cmd.OutOrStdout(), f, o.format == formatJSON)
		},
		ValidArgs: profileNames(),
	}
	o.register(cmd, objectFormats)
	return cmd
}

func writeProfile(out io.Writer, f profile.File, asJSON bool) error {
	if asJSON {
		return printJSON(out, f)
	}
	text, err := f.YAML()
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}
