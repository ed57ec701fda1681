package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/bench"
	"github.com/tidefill/tidefill/simulator/lab/clusterscale"
)

func benchCommand() *cobra.Command {
	o := bench.Options{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the speed and memory of the daemon",
		Long: `Build tidefill, run it as users do, and print a table of its speed and memory.
simulator/lab/docs/benchmarks.md says how each figure is measured. It needs Linux.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Only, "only", nil,
		"run only the benchmarks of these `names`: "+strings.Join(bench.Names(), ", "))
	flags.IntVar(&o.Runs, "runs", 3,
		"`number` of measurements of each figure; the table shows medians")
	flags.BoolVar(&o.JSON, "json", false, "print the figures as JSON")
	flags.BoolVar(&o.Check, "check", false, "exit with status 1 if a goal is missed")
	flags.StringVar(&o.Dir, "dir", "",
		"work in a temporary directory below this `directory` (default: the system's)")
	flags.StringVar(&o.Profiles, "profiles", "",
		"keep CPU and heap profiles of the daemon in this `directory`, at some cost to the figures")
	return cmd
}

func clusterscaleCommand() *cobra.Command {
	load := clusterscale.DefaultLoad
	cmd := &cobra.Command{
		Use:   "clusterscale",
		Short: "Compute what a cluster asks PostgreSQL and a bucket, and what saturates first",
		Long: `Compute what a cluster of daemons asks PostgreSQL and a bucket, how long that takes, and what saturates first. The requests follow
from the code of the store; their costs were measured, or are published for what can't be measured on one machine.`,
		Example: `  tidefill-lab clusterscale                                          200 pools, 20,000 lines per second
  tidefill-lab clusterscale --pools 1 --lines 6500 --processes 1     what one machine can check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := load.Validate(); err != nil {
				return &compare.RequestError{Err: err}
			}
			return clusterscale.Print(cmd.OutOrStdout(), load)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&load.Pools, "pools", load.Pools, "`number` of pools")
	flags.IntVar(&load.Processes, "processes", load.Processes,
		"`number` of daemons that dispatch")
	flags.Float64Var(&load.Lines, "lines", load.Lines, "`lines` per second, over all pools")
	flags.Float64Var(&load.BatchLines, "batch", load.BatchLines, "mean `lines` of a batch")
	flags.DurationVar(&load.Commit, "commit", load.Commit,
		"the `time` for which results are gathered")
	flags.Float64Var(&load.Polls, "polls", load.Polls, "`requests` of users per second")
	return cmd
}
