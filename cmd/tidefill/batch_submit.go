package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func submitCommand() *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit FILE...",
		Short: "Upload batch files and run them",
		Long: `Upload batch files and run them as one batch. A FILE has one request a line, in the format of OpenAI's Batch API; "-" is standard
input.

Print the batch. With --wait, its progress goes to standard error and the exit status depends on its end.

With --dry-run, nothing runs: print whether the window can be met, the work, and the replicas needed. The files are uploaded, and
deleted afterwards. The exit status is 3 if the batch would be refused or fail at once, or can't meet its deadline.`,
		Example: `  tidefill batch submit requests.jsonl
  tidefill batch submit requests.jsonl --window 2h --meta project=nightly --wait --out results/
  tidefill batch submit requests.jsonl --window 1h --dry-run
  tidefill batch submit part-*.jsonl --outputs per_input --overrides '{"temperature": 0}'
  make-requests | tidefill batch submit - --wait --json`,
		Args: cobra.MinimumNArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.endpoint, "endpoint", "",
		"the `url` of all lines (default: that of the first line)")
	flags.StringVar(&s.window, "window", "24h",
		"`time` within which the batch must be done: 24h, 90m, 7d, best_effort")
	flags.StringArrayVar(&s.meta, "meta", nil, "metadata `key=value`; may be repeated")
	flags.BoolVar(&s.wait, "wait", false, "wait until the batch has ended")
	flags.StringVar(&s.dir, "out", "",
		"`directory` for the result files, created if need be; implies --wait")
	flags.BoolVar(&s.dryRun, "dry-run", false,
		"print what would become of the batch, and create none")
	s.options.register(cmd)
	r := new(remote)
	cmd = r.command(cmd, func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error {
		s.progress, s.stdin = cmd.ErrOrStderr(), cmd.InOrStdin()
		return s.run(ctx, c, r, args, out)
	})
	groupFlags(cmd, append([]flagGroup{{"Batch", []string{"endpoint", "window", "meta", "wait",
		"out", "dry-run"}}}, submitGroups...))
	completeSubmit(cmd, r)
	return cmd
}

type submission struct {
	endpoint, window string
	meta             []string
	options          submitOptions
	wait, dryRun     bool
	dir              string
	progress         io.Writer
	stdin            io.Reader
}

func (s *submission) run(
	ctx context.Context, c *client.Client, r *remote, names []string, out io.Writer,
) error {
	if s.dryRun && (s.wait || s.dir != "") {
		return usageErrorf("--dry-run creates no batch, so there is none for --wait and --out")
	}
	request, err := s.request()
	if err != nil {
		return err
	}
	ids, bytes, err := s.upload(ctx, c, names)
	if err != nil {
		return err
	}
	request.setInputs(ids)
	request.Endpoint = s.endpoint
	if s.dryRun {
		err := s.preview(ctx, c, r, request.BatchRequest, out)
		return errors.Join(err, deleteFiles(ctx, c, ids))
	}
	b, err := c.CreateBatch(ctx, request.BatchRequest)
	if err != nil {
		return err
	}
	if !s.wait && s.dir == "" {
		if err := show(out, r, b); err != nil || !b.Ended() {
			return err
		}
		return ending(b)
	}
	printf(s.progress, "%s submitted, %s\n", b.ID, humanize.Bytes(bytes))
	if b, err = c.Watch(ctx, b.ID, newBatchProgress(s.progress).show); err != nil {
		return err
	}
	if s.dir != "" {
		files, err := c.Download(ctx, b, s.dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			printf(s.progress, "wrote %s\n", f)
		}
	}
	if err := show(out, r, b); err != nil {
		return err
	}
	return ending(b)
}

// upload uploads the files in order. It reads the endpoint of the first one if none is given.
func (s *submission) upload(
	ctx context.Context, c *client.Client, names []string,
) (ids []string, bytes int64, err error) {
	if err := checkInputs(names); err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		file, err := s.uploadOne(ctx, c, name)
		if err != nil {
			return nil, 0, errors.Join(err, deleteFiles(ctx, c, ids))
		}
		ids, bytes = append(ids, file.ID), bytes+file.Bytes
	}
	return ids, bytes, nil
}

// deleteFiles deletes uploaded files, so that they don't count against the user's quota.
func deleteFiles(ctx context.Context, c *client.Client, ids []string) (err error) {
	for _, id := range ids {
		err = errors.Join(err, c.DeleteFile(context.WithoutCancel(ctx), id))
	}
	return err
}

// checkInputs finds faults before anything is uploaded.
func checkInputs(names []string) error {
	first := map[string]bool{}
	for _, name := range names {
		if first[name] {
			return usageErrorf("%s is named twice", name)
		}
		first[name] = true
		if name == "-" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return usageErrorf("%s is a directory; name its files", name)
		}
	}
	return nil
}

func (s *submission) uploadOne(
	ctx context.Context, c *client.Client, name string,
) (client.File, error) {
	in, size := s.stdin, int64(-1)
	if name == "-" {
		name = "stdin.jsonl"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return client.File{}, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return client.File{}, err
		}
		in = f
		if info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	if s.endpoint == "" {
		var err error
		if s.endpoint, in, err = client.FirstEndpoint(in); err != nil {
			return client.File{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.Upload(ctx, jsonl(filepath.Base(name)), in, size)
}

// jsonl adds the extension that the API requires of batch files.
func jsonl(name string) string {
	if strings.HasSuffix(name, ".jsonl") {
		return name
	}
	return name + ".jsonl"
}
