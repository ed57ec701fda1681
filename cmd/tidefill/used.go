package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func usageCommand() *cobra.Command {
	r := new(remote)
	u := usageLister{remote: r, since: moment{time.Now().Add(-7 * 24 * time.Hour), "7d"}}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show who used how many tokens",
		Long: `Show the requests and tokens of batches and of interactive requests that pass through the daemon, the largest first. A key of the role
admin sees all tenants, others their own. --since and --until are extended to full hours; days are those of UTC. FAILED is part of
REQUESTS, and CACHED, what prefix caches had, part of INPUT.`,
		Example: `  tidefill usage                                        the last 7 days, by tenant and model
  tidefill usage --by day --tenant research             each day of a tenant
  tidefill usage --since 2026-11-01 --until 2026-12-01  a month
  tidefill usage --since 24h --by hour,class --model m  each hour of a model, by class
  tidefill usage --since 30d --json | jq -s 'map(.output_tokens) | add'`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.Var(&u.since, "since", "the beginning: a `time` until now such as 24h or 7d, or a date")
	flags.Var(&u.until, "until", "the end: a `time` as that of --since (default now)")
	flags.StringSliceVar(&u.by, "by", []string{"tenant", "model"},
		"the `names` to sum up by: "+strings.Join(usageGroups, ", "))
	flags.StringSliceVarP(&u.models, "model", "m", nil, "only these `models`")
	flags.IntVarP(&u.limit, "limit", "n", 0, "the `number` of rows to show; 0: all")
	completeFlags(cmd, map[string][]string{"by": usageGroups, "since": {"24h", "7d", "30d"}})
	r.command(cmd, tableFormats, func(ctx context.Context, c *client.Client, _ *remote, _ []string,
		out io.Writer) error {
		return u.list(ctx, c, out, cmd.ErrOrStderr())
	})
	completeModels(cmd, r)
	return cmd
}

// moment is the value of a flag with a time: one until now, or a date. The zero time: not given.
type moment struct {
	at   time.Time
	text string
}

func (m *moment) String() string { return m.text }

func (m *moment) Type() string { return "moment" }

func (m *moment) Set(text string) error {
	if d, err := humanize.ParsePeriod(text); err == nil && d >= 0 {
		*m = moment{time.Now().Add(-d), text}
		return nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			*m = moment{at, text}
			return nil
		}
	}
	return errors.New("it is neither a time such as 7d nor a date such as 2026-11-01")
}

var usageGroups = []string{"tenant", "model", "class", "day", "hour"}

// usageRow is what a group has used. What rows are not by is empty.
type usageRow struct {
	usageGroup
	Requests     int64 `json:"requests"`
	Failed       int64 `json:"failed_requests"`
	InputTokens  int64 `json:"input_tokens"`
	CachedTokens int64 `json:"input_cached_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Reasoning    int64 `json:"reasoning_tokens"`

	isSum bool // of all rows
}

type usageGroup struct {
	Start  int64  `json:"start_time,omitempty"` // of the day or hour, in Unix seconds
	Tenant string `json:"tenant,omitempty"`
	Model  string `json:"model,omitempty"`
	Class  string `json:"class,omitempty"`
}

func (r *usageRow) add(u *client.Used) {
	r.Requests += u.Requests
	r.Failed += u.Tidefill.FailedRequests
	r.InputTokens += u.InputTokens
	r.CachedTokens += u.InputCachedTokens
	r.OutputTokens += u.OutputTokens
	r.Reasoning += u.Tidefill.ReasoningTokens
}

type usageLister struct {
	*remote
	since, until moment
	by           []string
	models       []string
	limit        int // 0: none
}

func (u *usageLister) list(ctx context.Context, c *client.Client, out, errs io.Writer) error {
	if err := u.checkFlags(); err != nil {
		return err
	}
	rows, total, err := u.read(ctx, c)
	if err != nil {
		return err
	}
	shown := rows
	if u.limit > 0 {
		shown = rows[:min(u.limit, len(rows))]
	}
	names := u.names(shown)
	list := usageRows(&u.output, names)
	for _, row := range shown {
		if err := list.add(out, row); err != nil {
			return err
		}
	}
	if len(rows) > 1 && len(names) > 0 && !u.data() && u.format != formatName {
		if err := list.add(out, total); err != nil {
			return err
		}
	}
	return errors.Join(list.end(), u.note(errs, "usage", len(rows), u.limit, false))
}

func (u *usageLister) checkFlags() error {
	for _, by := range u.by {
		if !slices.Contains(usageGroups, by) {
			return usageErrorf("--by has %q; give some of %s", by, strings.Join(usageGroups, ", "))
		}
	}
	if slices.Contains(u.by, "day") && slices.Contains(u.by, "hour") {
		return usageErrorf("--by has day and hour; give one of them")
	}
	if !u.until.at.IsZero() && !u.until.at.After(u.since.at) {
		return usageErrorf("--until %s is not after --since %s", &u.until, &u.since)
	}
	if u.limit < 0 {
		return usageErrorf("--limit is %d; give 0 for all", u.limit)
	}
	return nil
}

// read returns the rows in the order in which they are shown, and their sum.
func (u *usageLister) read(
	ctx context.Context, c *client.Client,
) (rows []usageRow, total usageRow, err error) {
	byHour := slices.Contains(u.by, "hour")
	byTime := byHour || slices.Contains(u.by, "day")
	at := map[usageGroup]int{}
	for bucket, err := range c.Usage(ctx, client.UsageQuery{
		Since: u.since.at, Until: u.until.at, Hourly: byHour, Models: u.models,
		ByTenant: slices.Contains(u.by, "tenant"), ByModel: slices.Contains(u.by, "model"),
		ByClass: slices.Contains(u.by, "class"),
	}) {
		if err != nil {
			return nil, total, err
		}
		for i := range bucket.Results {
			used := &bucket.Results[i]
			group := usageGroup{Tenant: orEmpty(used.Tenant), Model: orEmpty(used.Model),
				Class: orEmpty(used.Tidefill.Class)}
			if byTime {
				group.Start = bucket.StartTime
			}
			if _, known := at[group]; !known {
				at[group] = len(rows)
				rows = append(rows, usageRow{usageGroup: group})
			}
			rows[at[group]].add(used)
			total.add(used)
		}
	}
	total.isSum = true
	slices.SortFunc(rows, func(a, b usageRow) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start),
			cmp.Compare(b.InputTokens+b.OutputTokens, a.InputTokens+a.OutputTokens),
			cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Tenant, b.Tenant),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Class, b.Class))
	})
	return rows, total, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// usageName is a column that says what a row is of.
type usageName struct {
	title string
	of    func(usageRow) string
	max   int // characters
}

const (
	// usageNumbers is the width of the columns with numbers, in characters.
	usageNumbers = 46
	// minUsageName is the width that no name is shortened to less than.
	minUsageName = 10
)

// names returns the columns that say what rows are of. Without -o wide, long names, but no times,
// are shortened so that the table has at most 80 columns.
func (u *usageLister) names(rows []usageRow) (names []*usageName) {
	left := 80 - usageNumbers
	for _, n := range []struct {
		by, title string
		of        func(usageRow) string
	}{
		{"day", "DAY (UTC)", func(r usageRow) string {
			return time.Unix(r.Start, 0).UTC().Format(time.DateOnly)
		}},
		{"hour", "HOUR (UTC)", func(r usageRow) string {
			return time.Unix(r.Start, 0).UTC().Format("01-02 15:04")
		}},
		{"tenant", "TENANT", func(r usageRow) string { return r.Tenant }},
		{"model", "MODEL", func(r usageRow) string { return r.Model }},
		{"class", "CLASS", func(r usageRow) string { return r.Class }},
	} {
		if !slices.Contains(u.by, n.by) {
			continue
		}
		name := &usageName{title: n.title, max: len(n.title), of: n.of}
		for _, row := range rows {
			name.max = max(name.max, len([]rune(name.of(row))))
		}
		names = append(names, name)
		left -= name.max + 2
	}
	short := slices.DeleteFunc(slices.Clone(names), func(n *usageName) bool {
		return strings.HasSuffix(n.title, "(UTC)")
	})
	for ; left < 0 && u.format != formatWide && len(short) > 0; left++ {
		longest := slices.MaxFunc(short, func(a, b *usageName) int {
			return cmp.Compare(a.max, b.max)
		})
		if longest.max <= minUsageName {
			break
		}
		longest.max--
	}
	return names
}

// shown returns the name of a row, without its middle if it is long. That of the sum is "all".
func (n *usageName) shown(r usageRow, first bool) string {
	if r.isSum {
		if first {
			return "all"
		}
		return " "
	}
	text := []rune(n.of(r))
	if len(text) <= n.max {
		return string(text)
	}
	end := (n.max - 1) / 2
	return string(text[:n.max-1-end]) + "…" + string(text[len(text)-end:])
}

// usageRows returns the table of usage. It has exact numbers of tokens with -o wide.
func usageRows(o *output, names []*usageName) *listing[usageRow] {
	type row = usageRow
	tokens := humanize.Short
	if o.format == formatWide {
		tokens = humanize.Thousands
	}
	var columns []column[row]
	for i, name := range names {
		columns = append(columns, column[row]{title: name.title, cell: func(r row) string {
			return name.shown(r, i == 0)
		}})
	}
	columns = append(columns,
		column[row]{title: "REQUESTS", cell: func(r row) string {
			return humanize.Thousands(r.Requests)
		}},
		column[row]{title: "FAILED", cell: func(r row) string {
			return humanize.Thousands(r.Failed)
		}},
		column[row]{title: "INPUT", cell: func(r row) string { return tokens(r.InputTokens) }},
		column[row]{title: "CACHED", cell: func(r row) string { return tokens(r.CachedTokens) }},
		column[row]{title: "OUTPUT", cell: func(r row) string { return tokens(r.OutputTokens) }},
		column[row]{title: "REASONING", wide: true, cell: func(r row) string {
			return tokens(r.Reasoning)
		}})
	return &listing[row]{output: o, columns: columns, name: func(r row) string {
		var parts []string
		for _, name := range names {
			parts = append(parts, name.of(r))
		}
		return strings.Join(parts, " ")
	}, raw: func(r row) any { return r }}
}
