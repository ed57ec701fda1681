package metriclist

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// The table is between these rows of the page.
const (
	tableBegin = "<!-- Written by \"go generate ./app\" from the code. Edit the help texts " +
		"there. -->\n"
	tableEnd = "<!-- The end of what is written from the code. -->\n"
)

// Update returns the page with its table written anew.
func Update(page []byte, metrics []Metric) ([]byte, error) {
	before, rest, begins := bytes.Cut(page, []byte(tableBegin))
	_, after, ends := bytes.Cut(rest, []byte(tableEnd))
	if !begins || !ends {
		return nil, errors.New("the page lacks the comments around its table of metrics")
	}
	return fmt.Appendf(nil, "%s%s\n%s\n%s%s", before, tableBegin, table(metrics), tableEnd,
		after), nil
}

func table(metrics []Metric) string {
	var b strings.Builder
	b.WriteString("| Metric | Type | |\n| --- | --- | --- |\n")
	for _, m := range metrics {
		name := m.Name
		if len(m.Labels) > 0 {
			name += "{" + strings.Join(m.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, m.Type,
			strings.ReplaceAll(m.Help, "|", `\|`))
	}
	return b.String()
}
