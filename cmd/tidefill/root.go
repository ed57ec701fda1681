package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

// run is the whole program but for the process around it.
func run(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
) (status int) {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)

	understood := false // what fails before a command begins is the caller's mistake
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }

	command, err := root.ExecuteContextC(ctx)
	if own := (exit{}); err != nil && !understood && !errors.As(err, &own) {
		err = usageErrorf("%w; see %s --help", err, command.CommandPath())
	}
	return complain(ctx, stderr, err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tidefill",
		Short: "Fill the ebb of an LLM inference pool with batch work",
		Long: `Tidefill sits beside an LLM inference pool, takes batches through the OpenAI Batch API, and sends their lines while
interactive traffic leaves room.

Exit status: 0 done; 1 an error; 2 a mistake in the command line; 3 the batch ended other than completed;
4 the batch completed, but lines of it failed; 130 interrupted.`,
		Example: `  tidefill demo                                            see it work, without a GPU
  tidefill serve --upstream http://gpu-1:8000              a daemon in front of a pool
  tidefill batch submit requests.jsonl --wait --out .      run a batch and fetch its results`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		demoCommand(),
		serveCommand(),
		batchCommand(),
		checkCommand(),
		verifyCommand(),
		runnerCommand(),
		profileCommand(),
		simulateCommand(),
		tuneCommand(),
		versionCommand(),
	)
	return root
}
