package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator/engine"
)

func runnerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "Run model servers for tests",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(emulateCommand())
	return cmd
}

func emulateCommand() *cobra.Command {
	c := emulator.DefaultConfig()
	var listen, faults, scheduling, engineName string
	cmd := &cobra.Command{
		Use:   "emulate",
		Short: "Serve an emulated model server, without a GPU",
		Long: `Serve the OpenAI-compatible routes, metrics and capabilities of an inference engine without a GPU. The timing follows a measured
model of a real engine. The answers are generated and repeatable.

With --engine it exports the metrics of vLLM, SGLang or TensorRT-LLM, with their names and at the times at which they update them.
TensorRT-LLM's are at /prometheus/metrics.

--faults has requests fail, always or in a part of each period; docs/emulator.md lists the faults.

Profiles: ` + strings.Join(profileNames(), ", ") + `. The profile "instant" answers at once.`,
		Example: `  tidefill runner emulate --profile llama-70b-a100 --speedup 10
  tidefill runner emulate --profile instant --listen 127.0.0.1:8000 --model small --model large
  tidefill runner emulate --engine sglang --interactive-rps 2
  tidefill runner emulate --interactive-rps 2 --faults '{"too_many_requests": 0.05, "retry_after": "2s"}'
  tidefill runner emulate --faults '{"server_error": 1, "period": "2m", "bad": "1m"}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Scheduling, c.Engine = engine.Scheduling(scheduling), emulator.Engine(engineName)
			if faults != "" {
				decoder := json.NewDecoder(strings.NewReader(faults))
				decoder.DisallowUnknownFields()
				if err := decoder.Decode(&c.Faults); err != nil {
					return usageErrorf("--faults: %w", err)
				}
			}
			if err := c.Validate(); err != nil {
				return exit{exitUsage, err}
			}
			c.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return emulate(cmd.Context(), c, listen, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:8000", "`address` to serve on")
	flags.StringVar(&c.Profile, "profile", c.Profile, "the model and GPU to emulate")
	flags.StringVar(&engineName, "engine", string(c.Engine),
		"the engine whose `metrics` it exports: vllm, sglang or trtllm")
	flags.StringArrayVar(&c.Models, "model", c.Models, "a model `name` to serve; may be repeated")
	flags.Float64Var(&c.Speedup, "speedup", c.Speedup,
		"run this many `times` faster than real time")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "`seed` of answers, their lengths and the noise")
	flags.Float64Var(&c.Interactive.RPS, "interactive-rps", 0,
		"interactive `requests` of its own per emulated second")
	flags.Float64Var(&c.Interactive.Swing, "interactive-swing", c.Interactive.Swing,
		"how far that rate rises and falls, 0 to 1")
	flags.Float64Var(&c.Interactive.Period, "interactive-period", c.Interactive.Period,
		"emulated `seconds` from peak to peak")
	flags.Float64Var(&c.Output.Median, "output-median", c.Output.Median,
		"median length of answers in `tokens`")
	flags.StringVar(&scheduling, "scheduling", string(c.Scheduling),
		"the engine's queue order: priority or fcfs")
	flags.IntVar(&c.MaxSeqs, "max-seqs", 0, "requests that run at once; 0: the profile's")
	flags.IntVar(&c.APIServers, "api-servers", c.APIServers,
		"`processes` of a vllm engine that answer clients; each counts iterations")
	flags.IntVar(&c.MaxQueueDepth, "max-queue-depth", c.MaxQueueDepth,
		"waiting requests beyond which more get 503")
	flags.StringVar(&c.RunnerID, "runner-id", c.RunnerID, "`name` of the runner in capabilities")
	flags.StringVar(&faults, "faults", "", "faults as `JSON`, as POST /admin/faults takes them")
	flags.BoolVar(&c.Record, "record", false, "count received bodies for GET /admin/requests")
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(profileNames(),
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func profileNames() []string {
	names := []string{emulator.Instant}
	for _, p := range engine.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// emulate serves an emulated runner until ctx ends.
func emulate(ctx context.Context, c emulator.Config, listen string, out io.Writer) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen for the emulated runner: %w", err)
	}
	fmt.Fprintf(out, "runner on http://%s, profile %s, models %s\n", listener.Addr(), c.Profile,
		strings.Join(c.Models, ", "))
	return emulator.Serve(ctx, c, listener)
}
