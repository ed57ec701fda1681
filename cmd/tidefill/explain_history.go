package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// period is the value of a flag with a time that may have days.
type period time.Duration

func (p *period) String() string { return time.Duration(*p).String() }

func (p *period) Type() string { return "period" }

func (p *period) Set(text string) error {
	d, err := humanize.ParsePeriod(text)
	*p = period(d)
	return err
}

// felt prints what users of the pools felt, and what batch work did.
func (e *explainer) felt(ctx context.Context, since time.Duration) error {
	pool := e.pool
	if pool != "" {
		list, err := e.client.Pools(ctx)
		if err != nil {
			return err
		}
		if i := findPool(list.Data, pool); i >= 0 {
			pool = list.Data[i].Name
		}
	}
	list, err := e.client.History(ctx, pool, since)
	if err != nil {
		return err
	}
	return e.print(e.out, list.Raw, func(out io.Writer) error {
		for i := range list.Data {
			if i > 0 {
				fmt.Fprintln(out)
			}
			feltTable(out, &list.Data[i], list.Step)
		}
		if len(list.Data) == 0 {
			fmt.Fprintln(out, "No pool is known yet: no upstream has listed its models.")
		}
		return nil
	})
}

// feltTable prints the history of a pool: a sentence, rows, and the whole.
func feltTable(w io.Writer, of *client.PoolHistory, step string) {
	for _, row := range wrapped(of.Summary) {
		printf(w, "%s\n", row)
	}
	if len(of.Rows) == 0 {
		return
	}
	layout, title := "Mon 15:04", "HOUR (UTC)"
	if step == "day" {
		layout, title = "Mon Jan 2", "DAY (UTC)"
	}
	table := newTable(w)
	fmt.Fprintln(table, "  \t\tFIRST\tTOKEN\tPER\tTOKEN\t\tBATCH")
	printf(table, "  %s\tREQUESTS\tLATE\tWITHOUT\tLATE\tWITHOUT\tPOINTS\tTOKENS\n", title)
	for i := range of.Rows {
		feltRow(table, time.Unix(of.Rows[i].Time, 0).UTC().Format(layout), &of.Rows[i])
	}
	feltRow(table, "all", &of.Total)
	table.Flush()
}

func feltRow(w io.Writer, title string, row *client.HistoryRow) {
	printf(w, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", title, humanize.Thousands(row.Requests),
		shareText(row.FirstTokens.Late), shareText(row.FirstTokens.Without),
		shareText(row.Tokens.Late), shareText(row.Tokens.Without),
		orUnknown(row.Points, "%.2f"), humanize.Short(row.BatchTokens))
}

func shareText(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100**share)
}

// wrapped returns a text in rows of at most 80 columns, as far as its words permit.
func wrapped(text string) (rows []string) {
	const columns = 80
	for word := range strings.FieldsSeq(text) {
		if n := len(rows); n > 0 && len([]rune(rows[n-1]))+1+len([]rune(word)) <= columns {
			rows[n-1] += " " + word
		} else {
			rows = append(rows, word)
		}
	}
	return rows
}
