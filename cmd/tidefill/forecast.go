package main

import (
	"strings"

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

// forecastText returns a forecast in one row: deadline at risk, done 2027-01-31 18:00, 8 in 10
// between 17:40 and 19:10; one more runner: 17:20. It is empty if nothing is known.
func forecastText(f client.Forecast) string {
	var parts []string
	if f.Verdict != "" {
		parts = append(parts, deadlineText(f.Verdict))
	}
	if f.PredictedFinish != 0 {
		parts = append(parts, "done "+humanize.Instant(f.PredictedFinish))
	}
	if len(f.PredictedBand) == 2 {
		parts = append(parts, "8 in 10 between "+humanize.Instant(f.PredictedBand[0])+" and "+
			humanize.Instant(f.PredictedBand[1]))
	}
	text := strings.Join(parts, ", ")
	if f.WithOneMore != 0 {
		text += "; with one more runner " + humanize.Instant(f.WithOneMore)
	}
	return text
}
