package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/simulator"
)

// Sizes of the bars of jobs.
const (
	barRow   = 22
	barJobs  = 40
	barNames = 110
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
		height)
	f.Legend = []legendKey{{"fill bar", "submission to deadline"}, {"fill done", "to the finish"},
		{"fill late", "expired"}, {"fill open", "unfinished"},
		{"fill prediction", "predicted finishes"}, {"limit", "end of the run"}}
	x := axis(d, end, barNames, height-chartBottom)
	bars := jobBars{drawing: d, run: run, x: x, end: end}
	for i, j := range jobs {
		y := float64(chartTop + barRow*i)
		bars.draw(j, y)
		first, last := bars.predictions(j, y)
		f.Rows = append(f.Rows, []string{j.Name, moment(j.Submitted), moment(j.Deadline), first,
			last, moment(j.Finished), string(j.Outcome)})
	}
	d.line(x(run.Hours*3600), chartTop, x(run.Hours*3600), height-chartBottom, "limit")
	f.Drawing = d.end()
	return f, true
}

// jobBars draws the rows of jobs.
type jobBars struct {
	*drawing
	run *simulator.Result
	x   func(seconds float64) float64
	end float64 // of the axis, in seconds
}

// draw draws the bar of a job and, in it, its time until it finished or expired.
func (b jobBars) draw(j simulator.Job, y float64) {
	title := fmt.Sprintf("%s: submitted %s, due %s, %s", j.Name, moment(j.Submitted),
		moment(j.Deadline), j.Outcome)
	if j.Finished > 0 {
		title += " at " + moment(j.Finished)
	}
	x := b.x
	b.label(barNames-6, y+14, "tick", "end", clipped(j.Name, 18))
	b.rect(x(j.Submitted), y+4, x(j.Deadline)-x(j.Submitted), barRow-9, "bar", title)
	class, until := "done", j.Finished
	if j.Outcome == simulator.Expired {
		class = "late"
	}
	switch {
	case j.Finished > 0:
	case j.Outcome == simulator.Expired:
		until = j.Deadline
	default:
		class, until = "open", b.run.Hours*3600
	}
	if until > j.Submitted {
		b.rect(x(j.Submitted), y+8, x(min(until, b.end))-x(j.Submitted), barRow-17, class, title)
	}
	b.line(x(j.Deadline), y+1, x(j.Deadline), y+barRow-2, "due")
}

// predictions draws when the job was predicted to finish. It returns the first and the last
// prediction; a dash: there is none.
func (b jobBars) predictions(j simulator.Job, y float64) (first, last string) {
	first, last = "–", "–"
	if b.run.Timeline == nil {
		return first, last
	}
	all := b.run.Timeline.Predictions
	k := slices.IndexFunc(all, func(p simulator.Prediction) bool { return p.Job == j.Name })
	if k < 0 {
		return first, last
	}
	for n, finish := range all[k].Finish {
		if math.IsNaN(finish) {
			continue
		}
		if last = moment(finish); first == "–" {
			first = last
		}
		if finish <= b.end {
			b.add(`<circle cx="%s" cy="%s" r="2" class="prediction">`+
				`<title>predicted at %s to finish at %s</title></circle>`,
				num(b.x(finish)), num(y+barRow-4), moment(all[k].At[n]), moment(finish))
		}
	}
	return first, last
}

func clipped(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
