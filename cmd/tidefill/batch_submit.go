package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/csvlines"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/internal/shellword"
)

func submitCommand() *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit FILE...|s3://BUCKET/NAME",
		Short: "Upload batch files and run them",
		Long: `Upload batch files and run them as one batch. A FILE has one request a line, in the format of OpenAI's Batch API; "-" is standard
input.

s3://BUCKET/NAME is an object of a bucket that the daemon is configured for, and s3://BUCKET/NAME/ is all objects *.jsonl and *.csv below it. The
daemon imports them; set --endpoint if they are no chat completions.

Each row of a file *.csv becomes a line as --csv-body says, such as {"model": "m", "messages": [{"role": "user", "content": "{{question}}"}]}. The
first row names the columns. A string that is only "{{column|json}}" becomes the JSON value of the cell.

The options are checked before the upload, and what was uploaded is deleted if the batch is refused or fails at once by faults of its files.

Print the batch. With --wait, its progress goes to standard error and the exit status depends on its end.

With --dry-run, nothing runs: print whether the window can be met, the work, and the replicas needed. The files are uploaded, and
deleted afterwards. The exit status is 3 if the batch would be refused or fail at once, or can't meet its deadline.`,
		Example: `  tidefill batch submit requests.jsonl
  tidefill batch submit requests.jsonl --window 2h --meta project=nightly --wait --out results/
  tidefill batch submit requests.jsonl --window 1h --dry-run
  tidefill batch submit s3://team-a-data/batch/in.jsonl --output-url s3://team-a-data/batch/out/
  tidefill batch submit questions.csv --csv-id id --csv-body body.json
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
	s.waitFlags.register(cmd)
	flags.BoolVar(&s.dryRun, "dry-run", false,
		"print what would become of the batch, and create none")
	s.options.register(cmd)
	r := new(remote)
	cmd = r.command(cmd, submitFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
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
	dryRun           bool
	rows             *csvlines.Template // of files whose names end in .csv
	waitFlags
	progress io.Writer
	stdin    io.Reader
}

// submitFormats are those of a command that prints the batch that it has created.
var submitFormats = []string{formatJSON, formatYAML, formatName}

func (s *submission) run(
	ctx context.Context, c *client.Client, r *remote, names []string, out io.Writer,
) error {
	if s.dryRun && s.waits() {
		return usageErrorf("--dry-run creates no batch, so there is none for --wait and --out")
	}
	request, err := s.request()
	if err != nil {
		return err
	}
	if err := checkInputs(names); err != nil {
		return err
	}
	csv, err := s.options.csv()
	if err != nil {
		return err
	}
	request.Endpoint = cmp.Or(s.endpoint, client.DefaultEndpoint)
	var ids []string
	submitted := ""
	if inBucket(names[0]) {
		request.extensions().InputURL, request.extensions().CSV = names[0], csv
		names = nil
	} else {
		if s.rows, err = rowsOf(names, csv); err != nil {
			return err
		}
		if err := c.CheckOptions(ctx, request.BatchRequest, len(names)); err != nil {
			return err
		}
		var bytes int64
		if ids, bytes, err = s.upload(ctx, c, names); err != nil {
			return err
		}
		request.setInputs(ids)
		request.Endpoint, submitted = s.endpoint, ", "+humanize.Bytes(bytes)
	}
	if s.dryRun {
		err := s.preview(ctx, c, r, request.BatchRequest, out)
		return errors.Join(err, deleteFiles(ctx, c, ids))
	}
	b, err := c.CreateBatch(ctx, request.BatchRequest)
	if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Status < 500 {
		return errors.Join(err, deleteFiles(ctx, c, ids))
	}
	if err != nil {
		return err
	}
	if b.Status == "failed" { // its input is faulty, as the batch says
		if err := deleteFiles(ctx, c, ids); err != nil {
			return err
		}
	}
	if s.waits() {
		printf(s.progress, "%s submitted%s\n", b.ID, submitted)
	}
	files := make([]string, len(names))
	for i, name := range names {
		files[i] = shellword.Of(name)
	}
	return s.waitFlags.run(ctx, c, r, b, out, s.progress, files...)
}

// upload uploads the files in order. It reads the endpoint of the first one if none is given.
func (s *submission) upload(
	ctx context.Context, c *client.Client, names []string,
) (ids []string, bytes int64, err error) {
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
		_, deleteErr := c.DeleteFile(context.WithoutCancel(ctx), id)
		err = errors.Join(err, deleteErr)
	}
	return err
}

// inBucket reports whether an input is in a bucket, from which the daemon imports it.
func inBucket(name string) bool { return strings.HasPrefix(name, "s3://") }

// checkInputs finds faults before anything is uploaded.
func checkInputs(names []string) error {
	first := map[string]bool{}
	for _, name := range names {
		if first[name] {
			return usageErrorf("%s is named twice", name)
		}
		first[name] = true
		if inBucket(name) {
			if len(names) > 1 {
				return usageErrorf("%s is in a bucket; name it alone, or all objects below by a "+
					"URL that ends in a slash", name)
			}
			continue
		}
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
	file, size, err := openInput(name, s.stdin)
	if err != nil {
		return client.File{}, err
	}
	defer file.Close()
	if name == "-" {
		name = "stdin.jsonl"
	}
	var in io.Reader = file
	if isCSV(name) {
		return s.uploadRows(ctx, c, name, file)
	}
	if s.endpoint == "" {
		if s.endpoint, in, err = client.FirstEndpoint(in); err != nil {
			return client.File{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.Upload(ctx, jsonl(filepath.Base(name)), in, size)
}

// isCSV reports whether a file has rows, which become lines.
func isCSV(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".csv") }

// rowsOf returns the template by which rows of files become lines.
func rowsOf(names []string, csv *client.RequestCSV) (*csvlines.Template, error) {
	switch at := slices.IndexFunc(names, isCSV); {
	case csv == nil && at >= 0:
		return nil, usageErrorf("%s is a CSV file; say by --csv-body how its rows become lines",
			names[at])
	case csv != nil && at < 0:
		return nil, usageErrorf("--csv-body is for files whose names end in .csv")
	case csv == nil:
		return nil, nil
	}
	template, err := csvlines.Parse(csv.CustomID, csv.Body)
	if err != nil {
		return nil, usageErrorf("--csv-body: %v", err)
	}
	return template, nil
}

// uploadRows converts the rows of a file while it uploads their lines. It keeps no file if a row
// becomes no line.
func (s *submission) uploadRows(
	ctx context.Context, c *client.Client, name string, file io.Reader,
) (client.File, error) {
	s.endpoint = cmp.Or(s.endpoint, client.DefaultEndpoint)
	rows, err := csvlines.NewReader(file, s.rows, s.endpoint)
	if err != nil {
		return client.File{}, fmt.Errorf("%s: %w", name, err)
	}
	uploaded, err := c.Upload(ctx, jsonl(filepath.Base(name)), rows, -1)
	if err != nil {
		return client.File{}, err
	}
	first, count := rows.Faults()
	if count == 0 {
		return uploaded, nil
	}
	faults := []error{deleteFiles(ctx, c, []string{uploaded.ID})}
	for _, fault := range first[:min(len(first), shownFaults)] {
		faults = append(faults, fmt.Errorf("%s: %s", name, fault.Message))
	}
	if more := count - shownFaults; more > 0 {
		faults = append(faults, fmt.Errorf("%s: %s more rows can't be read", name,
			humanize.Thousands(int64(more))))
	}
	return client.File{}, errors.Join(faults...)
}

// jsonl adds the extension that the API requires of batch files.
func jsonl(name string) string {
	if strings.HasSuffix(name, ".jsonl") {
		return name
	}
	return name + ".jsonl"
}
