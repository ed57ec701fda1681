package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// explainRequests prints the interactive requests that pass through.
func explainRequests(
	w io.Writer, r *client.Requests, reasons map[string]client.Explanation,
	row func(name, format string, args ...any),
) {
	if r == nil {
		return
	}
	var classes []string
	for _, c := range r.Classes {
		if c.Running > 0 || c.Waiting > 0 {
			classes = append(classes, fmt.Sprintf("%s %d and %d waiting", c.Name, c.Running,
				c.Waiting))
		}
	}
	text := "none"
	if len(classes) > 0 {
		text = strings.Join(classes, ", ")
	}
	text += "; " + humanize.Count(r.Places, "place")
	if r.Bound != nil {
		text += fmt.Sprintf(", %d for classes without an objective", *r.Bound)
	}
	row("requests", "%s", text)
	if r.Reason != "" {
		row("waiting", "%s", reasonText(r.Reason, reasons))
	}
	if len(r.UseCases) == 0 {
		return
	}
	table := newTable(w)
	fmt.Fprintln(table, "  USE CASE\tCLASS\tREQUESTS\tPER TOKEN (P95)\tOBJECTIVE\tATTAINED\t"+
		"REFUSED")
	for _, u := range r.UseCases {
		attained := "-"
		if u.Attained != nil {
			attained = fmt.Sprintf("%.1f %%", 100**u.Attained)
		}
		printf(table, "  %s\t%s\t%d\t%s\t%s\t%s\t%s\n", humanize.Printable(u.Name), u.Class,
			u.Requests, orUnknown(u.P95, "%.1f ms"), orUnknown(u.Objective, "%.1f ms"), attained,
			turnedAway(u.Refused))
	}
	table.Flush()
}

// turnedAway lists the numbers of refused requests by reason.
func turnedAway(refused map[string]int) string {
	var all []string
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		all = append(all, fmt.Sprintf("%d %s", refused[why], why))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

// fallbackText says what a fallback has done, and what it costs.
func fallbackText(f *client.Fallback) string {
	text := fmt.Sprintf("of %s: %s, %s, %s tokens since the start", f.Instead,
		humanize.Count(f.Requests, "request"), humanize.Count(f.Lines, "line"),
		humanize.Thousands(int64(f.InputTokens+f.OutputTokens)))
	if f.Spent != nil && f.PerDay != nil {
		text += fmt.Sprintf("; %.2f of %.2f spent today", *f.Spent, *f.PerDay)
	}
	return text
}
