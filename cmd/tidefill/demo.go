package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/demo"
	"github.com/tidefill/tidefill/internal/httpserver"
)

func demoCommand() *cobra.Command {
	d := demo.Demo{Version: version()}
	var sets settings
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try it without a GPU",
		Long: `Start the daemon in front of two emulated model servers that have interactive traffic of their own, run a sample batch through
the API, and print its progress and results, and what interactive users feel of it. They are compared with the same users of two equal
servers without batch work. Then serve until Ctrl-C, so that you can try the API.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&d.Once, "once", false,
		"end when the batch has ended, with the exit status of batch submit --wait")
	cmd.Flags().IntVar(&d.Lines, "lines", 300, "how many lines the sample batch has")
	cmd.Flags().StringVar(&d.Data, "data", "",
		"`directory` for all data (default: a temporary one; only --once keeps it)")
	cmd.Flags().StringVar(&d.Listen, "listen", "127.0.0.1:8080",
		"`address` of the API; another port if it is taken")
	cmd.Flags().StringVar(&d.AdminListen, "admin-listen", "127.0.0.1:8081",
		"`address` of health and metrics; another port if it is taken")
	cmd.Flags().Float64Var(&d.Speedup, "speedup", 5,
		"how many `times` faster than real GPUs the emulated ones are")
	sets.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case d.Lines < 1:
			return usageErrorf("--lines is %d; give 1 or more", d.Lines)
		case d.Speedup <= 0:
			return usageErrorf("--speedup is %g; give more than 0", d.Speedup)
		case !httpserver.IsLoopback(d.Listen):
			return usageErrorf(
				"--listen is %s; the demo requires no keys, so give it a loopback address",
				d.Listen)
		}
		settings, err := sets.parse()
		if err != nil {
			return err
		}
		if d.Config, err = config.Load("", settings...); err != nil {
			return err
		}
		d.Out = cmd.OutOrStdout()
		d.Progress = newBatchProgress(d.Out).show
		d.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(),
			&slog.HandlerOptions{Level: slog.LevelWarn}))
		b, err := d.Run(cmd.Context())
		if err != nil || !d.Once {
			return err
		}
		return ending(b)
	}
	return cmd
}
