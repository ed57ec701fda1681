package main

import (
	"fmt"
	"io"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// explainScaling prints the number of replicas that each pool should have, and why. A daemon that
// scales no pools gets no row.
func explainScaling(w io.Writer, list client.ScalingList) {
	if list.Unknown != nil {
		printf(w, "Scaling: %s.\n\n", *list.Unknown)
		return
	}
	for i := range list.Data {
		p := &list.Data[i]
		printf(w, "Replicas of %s\n", p.Name)
		row := func(name, format string, args ...any) {
			printf(w, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
		}
		row("wanted", "%d of %d to %d. %s", p.Wanted, p.Min, p.Max, p.Sentence)
		row("exist", "%d ready, %d starting, %d draining", p.Ready, p.Starting, p.Draining)
		row("reported", "%d to KEDA%s", p.Reported, activity(p))
		row("lines", "%s left, %s in flight", humanize.Thousands(int64(p.Lines)),
			humanize.Thousands(int64(p.InFlight)))
		if t := p.Terms; t.ColdStart != nil {
			row("start", "takes %s%s", humanize.Duration(time.Duration(*t.ColdStart*1e9)),
				latestStart(p, list.Time))
		}
		if p.Terms.Binding != nil {
			row("deadline", "the one in %s needs the most replicas",
				humanize.Duration(time.Duration((*p.Terms.Binding-list.Time)*1e9)))
		}
		fmt.Fprintln(w)
	}
}

func activity(p *client.ScaledPool) string {
	if p.Active {
		return ", active"
	}
	return ", not active: it may be scaled to zero"
}

func latestStart(p *client.ScaledPool, now float64) string {
	if p.Terms.LatestStart == nil {
		return ""
	}
	return "; the next replica must be requested in " +
		humanize.Duration(time.Duration((*p.Terms.LatestStart-now)*1e9))
}
