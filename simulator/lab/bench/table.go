package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// writeTable prints the figures as an aligned Markdown table.
func writeTable(w io.Writer, figures []figure) error {
	rows := [][]string{{"What", "Figure", "Range", "Goal", "Met", "Detail"}}
	for _, f := range figures {
		rows = append(rows, []string{
			f.What, f.quantity(median(f.Values)), number(slices.Min(f.Values)) + " - " + number(
				slices.Max(f.Values)),
			f.goalText(), f.verdict(), f.Detail,
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	for _, row := range slices.Insert(rows, 1, rule) {
		for i, cell := range row {
			row[i] = cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | ")); err != nil {
			return err
		}
	}
	return nil
}

func (f figure) quantity(v float64) string {
	return strings.TrimSpace(number(v) + " " + f.Unit)
}

func (f figure) goalText() string {
	switch {
	case f.Goal == nil:
		return ""
	case f.Goal.AtLeast:
		return "≥ " + f.bound()
	default:
		return "≤ " + f.bound()
	}
}

func (f figure) bound() string {
	return strings.TrimSpace(fmt.Sprintf("%g %s", f.Goal.Bound, f.Unit))
}

func (f figure) verdict() string {
	switch {
	case f.Goal == nil:
		return ""
	case f.missed():
		return "NO"
	default:
		return "yes"
	}
}
