package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func listCommand() *cobra.Command {
	var filter batchFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List batches",
		Example: `  tidefill batch list --status in_progress,validating
  tidefill batch list --meta project=nightly --sort deadline --ascending
  tidefill batch list --limit 0 --json | jq -r .id`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.IntVar(&filter.limit, "limit", 20, "how many to show; 0: all")
	flags.StringSliceVar(&filter.status, "status", nil, "only these `states`")
	flags.StringVar(&filter.model, "model", "", "only those with lines for this `model`")
	flags.StringVar(&filter.meta, "meta", "", "only those with this metadata `key or key=value`")
	flags.StringVar(&filter.sort, "sort", "", "`created_at` or deadline")
	flags.BoolVar(&filter.ascending, "ascending", false, "earliest first")
	for _, name := range []string{"created-after", "created-before", "deadline-after",
		"deadline-before"} {
		filter.times = append(filter.times,
			namedTime{name, flags.String(name, "", "a `time` as RFC 3339 or Unix seconds")})
	}
	return remoteCommand(cmd, func(ctx context.Context, c *client.Client, r *remote, _ []string,
		out io.Writer) error {
		if filter.limit < 0 {
			return usageErrorf("--limit is %d; give 0 for all", filter.limit)
		}
		return list(ctx, c, r, &filter, out)
	})
}

type batchFilter struct {
	limit     int
	status    []string
	model     string
	meta      string
	sort      string
	ascending bool
	times     []namedTime
}

type namedTime struct {
	flag  string
	value *string
}

func (f *batchFilter) query() url.Values {
	q := url.Values{}
	if len(f.status) > 0 {
		q.Set("status", strings.Join(f.status, ","))
	}
	if f.model != "" {
		q.Set("model", f.model)
	}
	if key, value, _ := strings.Cut(f.meta, "="); key != "" {
		q.Set("metadata["+key+"]", value)
	}
	if f.sort != "" {
		q.Set("sort", f.sort)
	}
	if f.ascending {
		q.Set("order", "asc")
	}
	for _, t := range f.times {
		if *t.value != "" {
			q.Set(strings.ReplaceAll(t.flag, "-", "_"), *t.value)
		}
	}
	return q
}

// list prints page after page, so that a listing of any length takes a page of memory.
func list(ctx context.Context, c *client.Client, r *remote, f *batchFilter, out io.Writer) error {
	const largestPage = 100
	q := f.query()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !r.json {
		fmt.Fprintln(table, "BATCH\tSTATUS\tLINES\tDONE\tFAILED\tCREATED\tDUE\tMODEL")
	}
	for left := f.limit; ; {
		size := largestPage
		if f.limit > 0 {
			size = min(size, left)
		}
		q.Set("limit", strconv.Itoa(size))
		page, err := c.Batches(ctx, q)
		if err != nil {
			return err
		}
		for _, b := range page.Data {
			if r.json {
				if err := printJSON(out, b.Raw); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", b.ID, statusText(b),
				b.Counts.Total, b.Counts.Completed, b.Counts.Failed, humanize.Instant(b.CreatedAt),
				humanize.Instant(b.ExpiresAt), modelText(b))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		left -= len(page.Data)
		if !page.More || len(page.Data) == 0 || f.limit > 0 && left <= 0 {
			return nil
		}
		q.Set("after", page.Data[len(page.Data)-1].ID)
	}
}

func statusText(b client.Batch) string {
	if b.Tidefill.Paused {
		return b.Status + " (paused)"
	}
	return b.Status
}

func modelText(b client.Batch) string {
	if more := len(b.Tidefill.Models) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", b.Tidefill.Models[0].Model, more)
	}
	return b.Model
}
