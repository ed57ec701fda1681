package main

import (
	"bufio"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func verifyCommand() *cobra.Command {
	r, choice := new(remote), &batchChoice{one: true, may: client.Batch.Ended}
	cmd := &cobra.Command{
		Use:   "verify BATCH",
		Short: "Prove that a batch lost no line and doubled none",
		Long: `Prove that a batch lost no line and doubled none: download its input and result files and compare their custom_ids. Every
line of the input must be in the output or the error file, once.

Exit status 1 means that this is not so; the lines are named.`,
	}
	choice.register(cmd, r)
	return r.command(cmd, objectFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		id, err := choice.id(ctx, c, args)
		if err != nil {
			return err
		}
		b, err := c.Batch(ctx, id)
		if err != nil {
			return err
		}
		v, err := c.Verify(ctx, b)
		if err != nil {
			return err
		}
		err = r.print(out, v, func(out io.Writer) error { return printVerification(out, v) })
		if err == nil && !v.OK {
			err = exit{status: exitError}
		}
		return err
	})
}

func printVerification(out io.Writer, v client.Verification) error {
	w := bufio.NewWriter(out)
	printf(w, "%s  %s\n", v.Batch, v.Status)
	printf(w, "  input   %s\n", humanize.Count(v.InputLines, "line"))
	printf(w, "  output  %s\n", humanize.Count(v.OutputLines, "line"))
	printf(w, "  errors  %s\n", humanize.Count(v.ErrorLines, "line"))
	for _, o := range []struct {
		what string
		client.Offenders
	}{
		{"missing from the results", v.Missing},
		{"more than once in the results", v.Repeated},
		{"in the results and not in the input", v.Unknown},
	} {
		if o.Count == 0 {
			continue
		}
		printf(w, "  %s: %s\n", o.what, humanize.Thousands(int64(o.Count)))
		for _, name := range o.First {
			printf(w, "    %s\n", name)
		}
		if more := o.Count - len(o.First); more > 0 {
			printf(w, "    and %s more\n", humanize.Thousands(int64(more)))
		}
	}
	for _, fault := range v.Faults {
		printf(w, "  %s\n", fault)
	}
	if v.OK {
		printf(w, "proven: every line of the input is in the results, once\n")
	}
	return w.Flush()
}
