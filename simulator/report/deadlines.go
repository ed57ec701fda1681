package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/simulator"
)

// Sizes of the bars of jobs.
const (
	barRow   = 22
	barJobs  = 40
	barNames = 120
)

// deadlines draws jobs as bars from their submission to their deadline, with the predicted and the
// real finish.
func deadlines(id string, run *simulator.Result) (figure, bool) {
	var jobs []simulator.Job
	for _, j := range run.Jobs {
		if j.Deadline > 0 {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return figure{}, false
	}
	id += "-deadlines"
	f := figure{ID: id, Caption: "Jobs with a deadline: predicted and real finish",
		Head: []string{"job", "submitted", "due", "first predicted", "last predicted", "finished",
			"outcome"}}
	if len(jobs) > barJobs {
		f.Caption += fmt.Sprintf("; the first %d of %d", barJobs, len(jobs))
		jobs = jobs[:barJobs]
	}
	end := run.Hours * 3600
	for _, j := range jobs {
		end = max(end, j.Deadline)
	}
	height := float64(chartTop + barRow*len(jobs) + chartBottom)
	late := 0
	for _, j := range jobs {
		if j.Outcome == simulator.Expired {
			late++
		}
	}
	d := newDrawing(id, f.Caption, fmt.Sprintf("%d jobs, %d of them expired", len(jobs), late),
		chartWidth, height)
	d.label(chartLeft, 16, "legend", "start",
		"bar: submission to deadline · filled: to the finish · dots: predicted finishes · line: "+
			"end of the run")
	x := axis(d, end, barNames, height-chartBottom)
	for i, j := range jobs {
		y := float64(chartTop + barRow*i)
		outcome := fmt.Sprintf("%s: submitted %s, due %s, %s", j.Name, minutes(j.Submitted),
			minutes(j.Deadline),
			j.Outcome)
		if j.Finished > 0 {
			outcome += " at " + minutes(j.Finished)
		}
		d.label(barNames-6, y+14, "tick", "end", clipped(j.Name, 18))
		d.rect(x(j.Submitted), y+4, x(j.Deadline)-x(j.Submitted), barRow-9, "bar", outcome)
		class := "done"
		if j.Outcome == simulator.Expired {
			class = "late"
		}
		until := cmp.Or(j.Finished, run.Hours*3600)
		switch {
		case j.Finished > 0:
		case j.Outcome == simulator.Expired:
			until = j.Deadline
		default:
			class = "open"
		}
		if until > j.Submitted {
			d.rect(x(j.Submitted), y+8, x(min(until, end))-x(j.Submitted), barRow-17, class,
				outcome)
		}
		d.line(x(j.Deadline), y+1, x(j.Deadline), y+barRow-2, "due")
		row := []string{j.Name, minutes(j.Submitted), minutes(j.Deadline), "–",
			"–", minutes(j.Finished),
			string(j.Outcome)}
		if run.Timeline != nil {
			if k := slices.IndexFunc(run.Timeline.Predictions, func(p simulator.Prediction) bool {
				return p.Job == j.Name
			}); k >= 0 {
				p := run.Timeline.Predictions[k]
				known := 0
				for n, finish := range p.Finish {
					if math.IsNaN(finish) {
						continue
					}
					if known == 0 {
						row[3] = minutes(finish)
					}
					known++
					row[4] = minutes(finish)
					if finish <= end {
						d.add(
							`<circle cx="%s" cy="%s" r="2" class="prediction"><title>predicted at %s to finish at %s</title></circle>`,
							num(x(finish)), num(y+barRow-4), minutes(p.At[n]), minutes(finish))
					}
				}
			}
		}
		f.Rows = append(f.Rows, row)
	}
	d.line(x(run.Hours*3600), chartTop, x(run.Hours*3600), height-chartBottom, "limit")
	f.Drawing = d.end()
	return f, true
}

func clipped(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
