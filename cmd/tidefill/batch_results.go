package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func resultsCommand() *cobra.Command {
	var follow bool
	var dir string
	cmd := &cobra.Command{
		Use:   "results BATCH",
		Short: "Fetch the results of a batch",
		Long: `Fetch the results of a batch. Without --out they go to standard output: of an ended batch the lines of its output and
error files, of a running one those finished so far, or with --follow all as they finish, in no particular order. What a
cancelled or expired batch never ran stands in its error file alone.

With --out, the output and error files are written into a directory.`,
		Example: `  tidefill batch results batch_123 --follow | jq -r .custom_id
  tidefill batch results batch_123 --out results/`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until the batch has ended")
	cmd.Flags().StringVar(&dir, "out", "", "`directory` for the result files, made if need be")
	return remoteCommand(cmd, func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error {
		b, err := c.Batch(ctx, args[0])
		if err != nil {
			return err
		}
		switch {
		case dir == "" && b.Ended():
			return cat(ctx, c, b, out)
		case dir == "":
			return followResults(ctx, c, b.ID, follow, out)
		case !b.Ended() && !follow:
			return fmt.Errorf(
				"batch %s is %s and has no files yet; add --follow to wait for them, or leave out --out to see the lines so far",
				b.ID, b.Status)
		}
		if !b.Ended() {
			if b, err = watch(ctx, c, b, newBatchProgress(cmd.ErrOrStderr()).show); err != nil {
				return err
			}
		}
		files, err := download(ctx, c, b, dir)
		if err != nil {
			return err
		}
		if r.json {
			return printJSON(out, files)
		}
		for _, f := range files {
			fmt.Fprintln(out, f)
		}
		return nil
	})
}

// cat writes the result files of an ended batch one after the other.
func cat(ctx context.Context, c *client.Client, b client.Batch, out io.Writer) error {
	for _, output := range b.Results() {
		for _, id := range []string{output.OutputFileID, output.ErrorFileID} {
			if id == "" {
				continue
			}
			if err := copyFile(ctx, c, id, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(ctx context.Context, c *client.Client, id string, out io.Writer) error {
	content, err := c.Content(ctx, id)
	if err != nil {
		return err
	}
	defer content.Close()
	if _, err := io.Copy(out, content); err != nil {
		return fmt.Errorf("download %s: %w", id, err)
	}
	return nil
}

// followResults writes the finished lines of a batch, with follow until there are no more to come.
func followResults(
	ctx context.Context, c *client.Client, id string, follow bool, out io.Writer,
) error {
	for after := ""; ; {
		var page client.ResultPage
		err := patiently(ctx, func() (err error) {
			page, err = c.Results(ctx, id, after)
			return err
		})
		if err != nil {
			return err
		}
		_, err = io.Copy(out, page.Lines)
		page.Lines.Close()
		if err != nil {
			return fmt.Errorf("results of batch %s: %w", id, err)
		}
		after = page.Next
		if page.More {
			continue
		}
		if !follow || (client.Batch{Status: page.Status}).Ended() {
			return nil
		}
		if err := sleep(ctx, watchEvery); err != nil {
			return err
		}
	}
}

// download writes the result files of an ended batch into dir, each appearing under its name only
// when it is whole, and returns their names.
func download(ctx context.Context, c *client.Client, b client.Batch, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var written []string
	for _, output := range b.Results() {
		prefix := b.ID
		if output.InputFileID != "" {
			prefix += "_" + output.InputFileID
		}
		for _, file := range []struct{ id, name string }{
			{output.OutputFileID, prefix + "_output.jsonl"},
			{output.ErrorFileID, prefix + "_errors.jsonl"},
		} {
			if file.id == "" {
				continue
			}
			name := filepath.Join(dir, file.name)
			if err := fetch(ctx, c, file.id, name); err != nil {
				return written, err
			}
			written = append(written, name)
		}
	}
	return written, nil
}

func fetch(ctx context.Context, c *client.Client, id, name string) (err error) {
	part, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, part.Close(), os.Remove(part.Name()))
		}
	}()
	if err := copyFile(ctx, c, id, part); err != nil {
		return err
	}
	if err := part.Chmod(0o644); err != nil {
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	return os.Rename(part.Name(), name)
}
