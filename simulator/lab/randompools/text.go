package randompools

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
)

// Text writes the report for people.
func (r *Report) Text(out io.Writer) error {
	var b strings.Builder
	a := r.All
	fmt.Fprintf(&b, "%s on %d random pools, family %s, seed %d, %s each", r.Policy, a.Pools,
		r.Family, r.Seed, humanize.Duration(time.Duration(r.Hours*float64(time.Hour))))
	if r.Metrics != "" {
		fmt.Fprintf(&b, ", metrics %s", r.Metrics)
	}
	b.WriteString("\n\n")
	fmt.Fprintf(&b, "loss, points        mean %.2f, worst %.2f; above 0.5 in %s, above 1 in %s, "+
		"above 2 in %s of the pools\n", a.MeanLoss, a.MaxLoss, percent(a.Over05), percent(a.Over1),
		percent(a.Over2))
	fmt.Fprintf(&b, "worst five minutes  worst %.1f; above %d in %s\n", a.Max5Minutes, worstLimit,
		percent(a.Over10In5Minutes))
	fmt.Fprintf(&b, "harvest             %.4g M useful tokens\n", float64(a.Harvest)/1e6)
	if r.WithReference {
		fmt.Fprintf(&b, "  of best static    geometric mean %.3f, of safe runs %.3f; safe and at "+
			"least 0.9 in %s of %d pools\n", a.HarvestRatio, a.SafeRatio, percent(a.WellEnough),
			a.Compared)
		fmt.Fprintf(&b, "  no static safe    %d pools; the policy harvests safely in %d of them\n",
			a.NothingStatic, a.Harvested)
	}
	if a.Reruns > 0 {
		fmt.Fprintf(&b, "  static again      the same settings in another run: loss mean %.2f, "+
			"worst %.2f; above 1 in %s, above 2 in %s of %d pools; %.3f of the harvest\n",
			a.RerunMeanLoss, a.RerunMaxLoss, percent(a.RerunOver1), percent(a.RerunOver2),
			a.Reruns, a.RerunHarvest)
	}
	if a.WithOracle > 0 {
		fmt.Fprintf(&b, "  of oracle G       geometric mean %.3f of %d pools where the policy "+
			"is safe\n", a.OracleRatio, a.WithOracle)
	}
	b.WriteString("\n")
	r.writeGroups(&b)
	b.WriteString("\nLargest losses\n")
	r.writeRecords(&b, r.worstByLoss())
	if r.WithReference {
		b.WriteString("\nSmallest harvests relative to the best static setting\n")
		r.writeRecords(&b, r.worstByHarvest())
	}
	r.writeFailures(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) writeGroups(b *strings.Builder) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "PROPERTY\tVALUE\tPOOLS\tLOSS\tWORST\t> 1\t> 2\t5 MIN > 10")
	if r.WithReference {
		fmt.Fprintf(table, "\tHARVEST\tOK")
	}
	fmt.Fprintln(table)
	name := ""
	for _, g := range r.Groups {
		shown := g.Dimension
		if shown == name {
			shown = ""
		}
		name = g.Dimension
		fmt.Fprintf(table, "%s\t%s\t%d\t%.2f\t%.2f\t%s\t%s\t%s", shown, g.Value, g.Pools,
			g.MeanLoss, g.MaxLoss, percent(g.Over1), percent(g.Over2),
			percent(g.Over10In5Minutes))
		if r.WithReference {
			fmt.Fprintf(table, "\t%.2f\t%s", g.HarvestRatio, percent(g.WellEnough))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

func (r *Report) writeRecords(b *strings.Builder, records []Record) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "POOL\tLOSS\t5 MIN\tTTFT\tTPOT\tHARVEST")
	if r.WithReference {
		fmt.Fprintf(table, "\tOF STATIC\tSTATIC")
	}
	fmt.Fprintln(table, "\t")
	for _, record := range records {
		fmt.Fprintf(table, "%d\t%.2f\t%.1f\t%d\t%d\t%.3g M", record.Number, record.Loss,
			record.WorstLoss, record.MissedTTFT, record.MissedTPOT, float64(record.Harvest)/1e6)
		if r.WithReference {
			ratio, known := record.ratio()
			text := "–"
			if known {
				text = fmt.Sprintf("%.2f", ratio)
			}
			fmt.Fprintf(table, "\t%s\t%d x %d", text, record.Reference.Lines,
				record.Reference.Runners)
		}
		fmt.Fprintf(table, "\t%s\n", record.About)
	}
	table.Flush()
	for _, record := range records {
		fmt.Fprintf(b, "  %s %d\n", r.Command, record.Number)
	}
}

func (r *Report) writeFailures(b *strings.Builder) {
	if len(r.Failures) == 0 {
		return
	}
	b.WriteString("\nFailed, and in no figure above\n")
	for _, f := range r.Failures {
		fmt.Fprintf(b, "  pool %d: %s\n", f.Number, f.Error)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(b, "  %s %d\n", r.Command, f.Number)
	}
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
