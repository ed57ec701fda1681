package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

// run is the program without its process: it returns the exit status.
func run(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
) (status int) {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)

	parsed := false // an error before a command runs is a usage error
	root.PersistentPreRun = func(*cobra.Command, []string) { parsed = true }

	command, err := root.ExecuteContextC(ctx)
	if own := (exit{}); err != nil && !parsed && !errors.As(err, &own) {
		err = usageErrorf("%w; see %s --help", err, command.CommandPath())
	}
	return report(ctx, stderr, err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tidefill",
		Short: "Run batch work on the idle capacity of an LLM inference pool",
		Long: `Tidefill runs beside an LLM inference pool, takes batches through the OpenAI Batch API, and sends their lines while interactive
traffic leaves capacity idle.

Exit status: 0 success; 1 error; 2 error in the command line; 3 the batch ended without completing; 4 the batch completed and some
of its lines failed; 130 interrupted.`,
		Example: `  tidefill demo                                            try it without a GPU
  tidefill serve --upstream http://gpu-1:8000              a daemon in front of a pool
  tidefill batch submit requests.jsonl --wait --out .      run a batch and fetch its results`,
		Version:       version(),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		demoCommand(),
		serveCommand(),
		batchCommand(),
		batchesCommand(),
		filesCommand(),
		explainCommand(),
		getItemsCommand(),
		describeItemsCommand(),
		checkCommand(),
		verifyCommand(),
		migrateCommand(),
		storeCommand(),
		runnerCommand(),
		workerCommand(),
		profileCommand(),
		simulateCommand(),
		tuneCommand(),
		keyCommand(),
		tenantCommand(),
		usageCommand(),
		contextCommand(),
		versionCommand(),
		environmentTopic(),
	)
	root.SetVersionTemplate(clientVersion() + "\n")
	root.SetFlagErrorFunc(explainFlagError)
	suggestCommands(root)
	return root
}
