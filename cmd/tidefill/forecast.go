package main

import (
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// deadlineText says what a verdict means.
func deadlineText(verdict string) string {
	switch verdict {
	case "ok":
		return "deadline will be met"
	case "at_risk":
		return "deadline at risk"
	case "infeasible":
		return "deadline can't be met"
	}
	return verdict // of a newer daemon
}

// forecastText returns a forecast in one row: deadline at risk, done 2027-01-31 18:00 (from 17:40
// to 19:10). It is empty if nothing is known.
func forecastText(f client.Forecast) string {
	if f.Verdict == "" {
		return ""
	}
	text := deadlineText(f.Verdict)
	if f.PredictedFinish == 0 {
		return text
	}
	text += ", done " + humanize.Instant(f.PredictedFinish)
	if len(f.PredictedBand) == 2 {
		text += ", probably from " + humanize.Instant(f.PredictedBand[0]) + " to " +
			humanize.Instant(f.PredictedBand[1])
	}
	return text
}

// verdictColumn is the verdict in a list.
func verdictColumn(b client.Batch) string {
	if b.Tidefill.Verdict == "" {
		return "-"
	}
	return b.Tidefill.Verdict
}
