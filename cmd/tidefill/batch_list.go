package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
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
	flags.StringVar(&filter.sort, "sort", "", "order by this `field`: created_at or deadline")
	completeFlags(cmd, map[string][]string{"sort": {"created_at", "deadline"},
		"status": {"validating", "in_progress", "finalizing", "completed", "failed", "expired",
			"cancelling", "cancelled"}})
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

// list prints batches as they are received. It aligns the columns of some rows at a time, so that
// memory does not grow with the length of the list.
func list(ctx context.Context, c *client.Client, r *remote, f *batchFilter, out io.Writer) error {
	const alignedRows = 100
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !r.json {
		fmt.Fprintln(table, "BATCH\tSTATUS\tLINES\tDONE\tFAILED\tCREATED\tDUE\tVERDICT\tMODEL")
	}
	rows := 0
	for b, err := range c.AllBatches(ctx, f.query(), f.limit) {
		if err != nil {
			return err
		}
		if r.json {
			if err := printJSON(out, b.Raw); err != nil {
				return err
			}
			continue
		}
		printf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", b.ID, statusText(b),
			b.Counts.Total, b.Counts.Completed, b.Counts.Failed, humanize.Instant(b.CreatedAt),
			humanize.Instant(b.ExpiresAt), verdictColumn(b), modelText(b))
		if rows++; rows%alignedRows == 0 {
			if err := table.Flush(); err != nil {
				return err
			}
		}
	}
	return table.Flush()
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
