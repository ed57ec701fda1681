package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func filesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "files",
		Aliases: []string{"file"},
		Short:   "Manage uploaded files and results",
		Long: `Manage files: inputs of batches that were uploaded, and their results. They count against the quota of the tenant until they are deleted or
expire.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(filesListCommand(), filesGetCommand(), filesUploadCommand(),
		filesDownloadCommand(), filesDeleteCommand())
	return cmd
}

// fileRows returns the table of files.
func fileRows(o *output, now time.Time) *listing[client.File] {
	type file = client.File
	return &listing[file]{output: o, columns: []column[file]{
		{title: "FILE", cell: func(f file) string { return f.ID }},
		{title: "NAME", cell: func(f file) string { return f.Filename }},
		{title: "PURPOSE", cell: func(f file) string { return f.Purpose }},
		{title: "SIZE", cell: func(f file) string { return humanize.Bytes(f.Bytes) }},
		{title: "CREATED", cell: func(f file) string {
			return humanize.Relative(f.CreatedAt, now)
		}},
		{title: "EXPIRES", wide: true, cell: func(f file) string {
			return humanize.Relative(f.ExpiresAt, now)
		}},
	}, name: func(f file) string { return f.ID }, raw: func(f file) any { return f.Raw }}
}

func filesListCommand() *cobra.Command {
	var limit int
	var purpose string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List files",
		Example: `  tidefill files list --purpose batch_output
  tidefill files list --limit 0 -q`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "the `number` of files to show; 0: all")
	cmd.Flags().StringVar(&purpose, "purpose", "",
		"only those of this `purpose`: batch, batch_output and others of OpenAI's")
	completeFlags(cmd, map[string][]string{"purpose": {"batch", "batch_output"}})
	return new(remote).command(cmd, tableFormats, func(ctx context.Context, c *client.Client,
		r *remote, _ []string, out io.Writer) error {
		if limit < 0 {
			return usageErrorf("--limit is %d; give 0 for all", limit)
		}
		q := url.Values{}
		if purpose != "" {
			q.Set("purpose", purpose)
		}
		counted := limit
		if limit > 0 && !r.data() && r.format != formatName {
			counted += maxCounted
		}
		rows, n := fileRows(&r.output, time.Now()), 0
		for f, err := range c.AllFiles(ctx, q, counted) {
			if err != nil {
				return err
			}
			if n++; limit > 0 && n > limit {
				continue
			}
			if err := rows.add(out, f); err != nil {
				return err
			}
		}
		return errors.Join(rows.end(), r.note(cmd.ErrOrStderr(), "files", n, limit, purpose != ""))
	})
}

func filesGetCommand() *cobra.Command {
	r := new(remote)
	cmd := &cobra.Command{
		Use:               "get FILE...",
		Aliases:           []string{"show"},
		Short:             "Show files",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeArguments(r, true, fileIDs),
	}
	return r.command(cmd, tableFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		rows := fileRows(&r.output, time.Now())
		err := each(args, func(id string) error {
			f, err := c.File(ctx, id)
			if err != nil {
				return err
			}
			return rows.add(out, f)
		})
		return errors.Join(rows.end(), err)
	})
}

func filesUploadCommand() *cobra.Command {
	var purpose string
	cmd := &cobra.Command{
		Use:   "upload FILE...",
		Short: "Upload files",
		Long: `Upload files, which batches of any client may name. tidefill batch submit uploads by itself; tidefill check finds faults without a
daemon. "-" is standard input.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&purpose, "purpose", "batch",
		"the `purpose`: batch, or another one of OpenAI's")
	return new(remote).command(cmd, tableFormats, func(ctx context.Context, c *client.Client,
		r *remote, args []string, out io.Writer) error {
		if err := checkInputs(args); err != nil {
			return err
		}
		rows := fileRows(&r.output, time.Now())
		err := each(args, func(name string) error {
			in, size, err := openInput(name, cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer in.Close()
			remoteName := filepath.Base(name)
			if name == "-" {
				remoteName = "stdin"
			}
			if purpose == "batch" {
				remoteName = jsonl(remoteName)
			}
			f, err := c.UploadFor(ctx, purpose, remoteName, in, size)
			if err != nil {
				return err
			}
			return rows.add(out, f)
		})
		return errors.Join(rows.end(), err)
	})
}

func filesDownloadCommand() *cobra.Command {
	var to string
	r := new(remote)
	cmd := &cobra.Command{
		Use:   "download FILE",
		Short: "Fetch the content of a file",
		Long: "Write the content of a file to standard output, or to --out, which gets its name " +
			"when it is complete.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeArguments(r, false, fileIDs),
	}
	cmd.Flags().StringVar(&to, "out", "", "the local `file`; a directory: the file's own name "+
		"in it, which must be new")
	return r.command(cmd, objectFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		if to == "" {
			return c.CopyFile(ctx, args[0], out)
		}
		if info, err := os.Stat(to); err == nil && info.IsDir() {
			f, err := c.File(ctx, args[0])
			if err != nil {
				return err
			}
			to = filepath.Join(to, filepath.Base(filepath.Clean("/"+f.Filename)))
			if _, err := os.Lstat(to); err == nil { // whoever uploaded the file chose the name
				return fmt.Errorf("download %s: %s exists; give --out its name to replace it",
					args[0], to)
			}
		}
		if err := c.DownloadFile(ctx, args[0], to); err != nil {
			return err
		}
		return r.print(out, []string{to}, func(w io.Writer) error {
			printf(w, "%s\n", to)
			return nil
		})
	})
}

func filesDeleteCommand() *cobra.Command {
	r := new(remote)
	cmd := &cobra.Command{
		Use:     "delete FILE...",
		Aliases: []string{"rm"},
		Short:   "Delete files",
		Long: "Delete files, which frees their bytes in the tenant's quota. The input of a " +
			"running batch may be deleted: the batch goes on.",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeArguments(r, true, fileIDs),
	}
	return r.command(cmd, tableFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		return each(args, func(id string) error {
			answer, err := c.DeleteFile(ctx, id)
			if err != nil {
				return err
			}
			return r.deleted(out, id, answer)
		})
	})
}

// openInput opens a local file, or standard input for "-". size is in bytes; -1: unknown.
func openInput(name string, stdin io.Reader) (in io.ReadCloser, size int64, err error) {
	if name == "-" {
		return io.NopCloser(stdin), -1, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, -1, nil
	}
	return f, info.Size(), nil
}
