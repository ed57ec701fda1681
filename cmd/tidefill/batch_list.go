package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func listCommand() *cobra.Command {
	l := batchLister{remote: new(remote)}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List batches",
		Long: `List batches, the newest first. ETA is when a batch is expected to end, or when it ended. The table has the beginnings of ids, which
all commands take in place of ids; -o wide, -q and -o json have complete ones.`,
		Example: `  tidefill batch list --status in_progress,validating
  tidefill batch list --meta project=nightly --sort deadline --ascending
  tidefill batch list --limit 0 --json | jq -r .id
  tidefill batch list --all-tenants --status in_progress`,
		Args: cobra.NoArgs,
	}
	l.filter.register(cmd)
	flags := cmd.Flags()
	flags.IntVarP(&l.limit, "limit", "n", 20, "the `number` of batches to show; 0: all")
	flags.StringVar(&l.sort, "sort", "", "order by this `field`: created_at or deadline")
	flags.BoolVar(&l.ascending, "ascending", false, "earliest first")
	flags.BoolVarP(&l.all, "all-tenants", "A", false,
		"list the batches of all tenants, with a key of the role admin")
	flags.BoolVarP(&l.watch, "watch", "w", false, "list again every 2 s, until Ctrl-C")
	completeFlags(cmd, map[string][]string{"sort": {"created_at", "deadline"}})
	l.remote.command(cmd, tableFormats, func(ctx context.Context, c *client.Client, _ *remote,
		_ []string, out io.Writer) error {
		if l.limit < 0 {
			return usageErrorf("--limit is %d; give 0 for all", l.limit)
		}
		if l.all && l.flags.Changed("tenant") {
			return usageErrorf("--all-tenants and --tenant exclude each other")
		}
		return watching(ctx, l.watch, out, cmd.ErrOrStderr(), func(w io.Writer) error {
			return l.list(ctx, c, w, cmd.ErrOrStderr(), screenOf(out))
		})
	})
	completeModels(cmd, l.remote)
	return cmd
}

// batchesCommand is batch under the name by which kubectl's users know a list: alone, it lists.
func batchesCommand() *cobra.Command {
	cmd := listCommand()
	cmd.Use, cmd.Aliases, cmd.SuggestFor = "batches", nil, []string{"list", "ls"}
	cmd.Short = "List batches; batches COMMAND is batch COMMAND"
	cmd.AddCommand(listCommand())
	cmd.AddCommand(batchCommands()...)
	return cmd
}

// batchFilter selects batches.
type batchFilter struct {
	status []string
	model  string
	meta   string
	times  []namedTime
	flags  *pflag.FlagSet
}

type namedTime struct {
	flag  string
	value *string
}

var batchStates = []string{"validating", "in_progress", "finalizing", "completed", "failed",
	"expired", "cancelling", "cancelled"}

func (f *batchFilter) register(cmd *cobra.Command) {
	f.flags = cmd.Flags()
	f.flags.StringSliceVarP(&f.status, "status", "s", nil, "only those with these `states`")
	f.flags.StringVarP(&f.model, "model", "m", "", "only those with lines for this `model`")
	f.flags.StringVar(&f.meta, "meta", "", "only those with this metadata `key or key=value`")
	completeFlags(cmd, map[string][]string{"status": batchStates})
	for _, name := range []string{"created-after", "created-before", "deadline-after",
		"deadline-before"} {
		f.times = append(f.times,
			namedTime{name, f.flags.String(name, "", "a `time` as RFC 3339 or Unix seconds")})
	}
}

// given reports whether the filter leaves any batch out.
func (f *batchFilter) given() bool { return len(f.query()) > 0 }

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
	for _, t := range f.times {
		if *t.value != "" {
			q.Set(strings.ReplaceAll(t.flag, "-", "_"), *t.value)
		}
	}
	return q
}

type batchLister struct {
	*remote
	filter    batchFilter
	limit     int // 0: none
	sort      string
	ascending bool
	all       bool // of all tenants
	watch     bool
}

// maxCounted limits the batches beyond those of --limit that are counted.
const maxCounted = 100

// list prints batches as they are received.
func (l *batchLister) list(
	ctx context.Context, c *client.Client, out, errs io.Writer, on screen,
) error {
	q, limit := l.filter.query(), l.limit
	if l.sort != "" {
		q.Set("sort", l.sort)
	}
	if l.ascending {
		q.Set("order", "asc")
	}
	if limit > 0 && !l.data() && l.format != formatName {
		limit += maxCounted
	}
	rows, found := batchRows(&l.output, on, time.Now()), c.AllBatches(ctx, q, limit)
	if l.all {
		tenant := column[client.Batch]{title: "TENANT", cell: func(b client.Batch) string {
			return b.Tidefill.Tenant
		}}
		rows.columns = append([]column[client.Batch]{tenant}, rows.columns...)
		found = l.ofAllTenants(ctx, c, q, limit)
	}
	n := 0
	for b, err := range found {
		if err != nil {
			return err
		}
		if n++; l.limit > 0 && n > l.limit {
			continue
		}
		if err := rows.add(out, b); err != nil {
			return err
		}
	}
	return errors.Join(rows.end(), l.note(errs, "batches", n, l.limit, l.filter.given()))
}

// ofAllTenants returns the batches of all tenants in the order of the list, at most limit of each.
func (l *batchLister) ofAllTenants(
	ctx context.Context, c *client.Client, q url.Values, limit int,
) iter.Seq2[client.Batch, error] {
	tenants, err := c.Tenants(ctx)
	if err != nil {
		return func(yield func(client.Batch, error) bool) { yield(client.Batch{}, err) }
	}
	var lists []iter.Seq2[client.Batch, error]
	for _, t := range tenants {
		if t.Batches > 0 {
			lists = append(lists, c.For(t.ID).AllBatches(ctx, q, limit))
		}
	}
	return merged(lists, l.compare)
}

// compare compares batches by their places in a list.
func (l *batchLister) compare(a, b client.Batch) int {
	x, y := a.CreatedAt, b.CreatedAt
	if l.sort == "deadline" {
		x, y = a.ExpiresAt, b.ExpiresAt
		if x == 0 || y == 0 { // without a deadline they are last in either direction
			return cmp.Compare(y, x)
		}
	}
	if l.ascending {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(y, x)
}

// merged joins sequences that are in order into one. It ends after an error.
func merged[T any](
	of []iter.Seq2[T, error], compare func(a, b T) int,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var firsts []T
		var nexts []func() (T, error, bool)
		for _, s := range of {
			next, stop := iter.Pull2(s)
			defer stop()
			first, err, ok := next()
			if err != nil {
				yield(first, err)
				return
			}
			if ok {
				firsts, nexts = append(firsts, first), append(nexts, next)
			}
		}
		for len(firsts) > 0 {
			i := 0
			for j := range firsts {
				if compare(firsts[j], firsts[i]) < 0 {
					i = j
				}
			}
			if !yield(firsts[i], nil) {
				return
			}
			next, err, ok := nexts[i]()
			if err != nil {
				yield(next, err)
				return
			}
			if firsts[i] = next; !ok {
				firsts, nexts = slices.Delete(firsts, i, i+1), slices.Delete(nexts, i, i+1)
			}
		}
	}
}

// batchRows returns the table of batches. Without -o wide, it has at most 80 columns.
func batchRows(o *output, on screen, now time.Time) *listing[client.Batch] {
	number := func(n int) string { return humanize.Thousands(int64(n)) }
	type batch = client.Batch
	return &listing[batch]{output: o, screen: on, columns: []column[batch]{
		{title: "BATCH", cell: func(b batch) string {
			if o.format == formatWide {
				return b.ID
			}
			return shortID(b.ID)
		}},
		{title: "STATUS", cell: shortStatus, color: statusColor},
		{title: "PROGRESS", cell: func(b batch) string {
			if b.Counts.Total == 0 {
				return ""
			}
			return fmt.Sprintf("%s of %s", percent(b.Ran()), number(b.Counts.Total))
		}},
		{title: "FAILED", cell: func(b batch) string { return number(b.Ran().Failed) },
			color: failedColor},
		{title: "RATE", cell: rateText},
		{title: "ETA", cell: func(b batch) string {
			return humanize.Relative(max(expectedEnd(b), b.EndedAt()), now)
		}},
		{title: "VERDICT", cell: func(b batch) string { return b.Tidefill.Verdict },
			color: verdictColor},
		{title: "DONE", wide: true, cell: func(b batch) string {
			return number(b.Counts.Completed)
		}},
		{title: "NOT RUN", wide: true, cell: func(b batch) string {
			return number(b.Tidefill.NotRun)
		}},
		{title: "IN FLIGHT", wide: true, cell: func(b batch) string {
			return number(b.Tidefill.InFlight)
		}},
		{title: "CREATED", wide: true, cell: func(b batch) string {
			return humanize.Relative(b.CreatedAt, now)
		}},
		{title: "DUE", wide: true, cell: func(b batch) string {
			if b.Ended() {
				return ""
			}
			return humanize.Relative(b.ExpiresAt, now)
		}},
		{title: "MODEL", wide: true, cell: modelText},
	}, name: func(b batch) string { return b.ID }, raw: func(b batch) any { return b.Raw }}
}

// shownIDLength is the length of a shortened id: 8 random letters, which 10,000 batches have in
// common with a probability of 1 in 4 million.
const shownIDLength = len("batch_") + 8

func shortID(id string) string { return id[:min(len(id), shownIDLength)] }

// expectedEnd returns when a batch is expected to end; 0: unknown.
func expectedEnd(b client.Batch) int64 {
	if b.Ended() {
		return 0
	}
	return b.Tidefill.ETA
}

func rateText(b client.Batch) string {
	rate := b.Tidefill.Rate
	switch {
	case rate <= 0 || b.Tidefill.Paused:
		return ""
	case rate < 10:
		return fmt.Sprintf("%.1f/s", rate)
	}
	return fmt.Sprintf("%.0f/s", rate)
}

// percent returns the share of the lines that have ended, rounded down.
func percent(c client.Counts) string {
	if c.Total == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", math.Floor(100*float64(c.Done())/float64(c.Total)))
}

func statusText(b client.Batch) string {
	if b.Tidefill.Paused {
		return b.Status + " (paused)"
	}
	return b.Status
}

func shortStatus(b client.Batch) string {
	if b.Tidefill.Paused && !b.Ended() {
		return "paused"
	}
	return b.Status
}

func statusColor(b client.Batch) color {
	switch b.Status {
	case "failed", "expired":
		return red
	case "completed":
		return green
	}
	return plain
}

func failedColor(b client.Batch) color {
	if b.Ran().Failed > 0 {
		return red
	}
	return plain
}

func verdictColor(b client.Batch) color {
	switch b.Tidefill.Verdict {
	case "at_risk":
		return yellow
	case "infeasible":
		return red
	}
	return plain
}

func modelText(b client.Batch) string {
	if more := len(b.Tidefill.Models) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", b.Tidefill.Models[0].Model, more)
	}
	return b.Model
}
