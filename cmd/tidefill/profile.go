package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the bundled profiles",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				for _, p := range engine.Profiles() {
					if err := printJSON(cmd.OutOrStdout(), profile.Bundled(p)); err != nil {
						return err
					}
				}
				return nil
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "PROFILE\tFROM\tC0\tC1\tC2\tN0\tKV\tP1\tP2\tKV TOKENS")
			for _, p := range engine.Profiles() {
				from := "operators"
				if p.Measured {
					from = "iterations"
				}
				l := p.CostModel
				fmt.Fprintf(w, "%s\t%s\t%g\t%g\t%g\t%g\t%g\t%g\t%g\t%s\n", p.Name, from, l.C0, l.C1,
					l.C2, l.N0, l.KV, l.P1, l.P2, humanize.Thousands(int64(p.KVTokens)))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per profile")
	return cmd
}

func profileShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME|FILE",
		Short: "Print a bundled or a fitted profile",
		Long: "Print a bundled profile, or one that profile fit has written, as the YAML that a " +
			"simulation reads.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := compare.OpenProfile(args[0])
			if err != nil {
				return err
			}
			return writeProfile(cmd.OutOrStdout(), f, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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
