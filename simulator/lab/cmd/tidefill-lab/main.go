// Command tidefill-lab is for those who develop policies: it compares policies with each other,
// with oracles, on random pools and in real time, and measures the daemon.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/bench"
	_ "github.com/tidefill/tidefill/simulator/lab/policies"
)

func main() {
	if isChild, err := bench.RunRole(); isChild {
		if err != nil {
			fmt.Fprintln(os.Stderr, "tidefill-lab:", err)
			os.Exit(exitError)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit statuses.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run is the program without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	root := &cobra.Command{
		Use:           "tidefill-lab",
		Short:         "Compare and measure policies of Tidefill",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(simulateCommand(), randomCommand(), liveCommand(), benchCommand(),
		clusterscaleCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	parsed := false // an error before a command runs is a usage error
	root.PersistentPreRun = func(*cobra.Command, []string) { parsed = true }
	err := root.ExecuteContext(ctx)
	refused := (*compare.RequestError)(nil)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	case !parsed, errors.As(err, &refused):
		status = exitUsage
	default:
		status = exitError
	}
	for _, fault := range config.Faults(err) {
		fmt.Fprintln(stderr, "tidefill-lab:", humanize.Printable(fault.Error()))
	}
	return status
}

func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
