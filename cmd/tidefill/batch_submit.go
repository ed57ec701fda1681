package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func submitCommand() *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit FILE",
		Short: "Upload a batch file and run it",
		Long: `Upload a batch file and run it. FILE has one request a line, in the format of OpenAI's Batch API; "-" is standard input.

Print the batch. With --wait, its progress goes to standard error and the exit status depends on its end.`,
		Example: `  tidefill batch submit requests.jsonl
  tidefill batch submit requests.jsonl --window 2h --meta project=nightly --wait --out results/
  make-requests | tidefill batch submit - --wait --json`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&s.endpoint, "endpoint", "",
		"the `url` of all lines (default: that of the first line)")
	flags.StringVar(&s.window, "window", "24h",
		"`time` within which the batch must be done: 24h, 90m, 7d, best_effort")
	flags.StringArrayVar(&s.meta, "meta", nil, "metadata `key=value`; may be repeated")
	flags.IntVar(&s.extensions.Priority, "priority", 0,
		"`rank` among your batches where the scheduling policy uses it; higher first")
	flags.StringVar(&s.extensions.Deadline, "deadline", "",
		"a `time`, RFC 3339 or from now (45m), by which the batch must be done")
	flags.BoolVar(&s.wait, "wait", false, "wait until the batch has ended")
	flags.StringVar(&s.dir, "out", "",
		"`directory` for the result files, created if need be; implies --wait")
	return remoteCommand(cmd, func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error {
		s.progress = cmd.ErrOrStderr()
		return s.run(ctx, c, r, args[0], cmd.InOrStdin(), out)
	})
}

type submission struct {
	endpoint, window string
	meta             []string
	extensions       client.RequestExtensions
	wait             bool
	dir              string
	progress         io.Writer
}

func (s *submission) run(
	ctx context.Context, c *client.Client, r *remote, name string, stdin io.Reader, out io.Writer,
) error {
	metadata, err := readMetadata(s.meta)
	if err != nil {
		return err
	}
	in, size := stdin, int64(-1)
	if name == "-" {
		name = "stdin.jsonl"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		in = f
		if info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	if s.endpoint == "" {
		if s.endpoint, in, err = client.FirstEndpoint(in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	file, err := c.Upload(ctx, jsonl(filepath.Base(name)), in, size)
	if err != nil {
		return err
	}
	request := client.BatchRequest{InputFileID: file.ID, Endpoint: s.endpoint,
		CompletionWindow: s.window, Metadata: metadata}
	if s.extensions != (client.RequestExtensions{}) {
		request.Tidefill = &s.extensions
	}
	b, err := c.CreateBatch(ctx, request)
	if err != nil {
		return err
	}
	if !s.wait && s.dir == "" {
		if err := show(out, r, b); err != nil || !b.Ended() {
			return err
		}
		return ending(b)
	}
	fmt.Fprintf(s.progress, "%s submitted, %s\n", b.ID, humanize.Bytes(file.Bytes))
	if b, err = c.Watch(ctx, b.ID, newBatchProgress(s.progress).show); err != nil {
		return err
	}
	if s.dir != "" {
		files, err := c.Download(ctx, b, s.dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			fmt.Fprintf(s.progress, "wrote %s\n", f)
		}
	}
	if err := show(out, r, b); err != nil {
		return err
	}
	return ending(b)
}

// jsonl adds the extension that the API requires of batch files.
func jsonl(name string) string {
	if strings.HasSuffix(name, ".jsonl") {
		return name
	}
	return name + ".jsonl"
}

func readMetadata(pairs []string) (map[string]string, error) {
	metadata := make(map[string]string)
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageErrorf("--meta %s: write --meta key=value", pair)
		}
		metadata[key] = value
	}
	return metadata, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
