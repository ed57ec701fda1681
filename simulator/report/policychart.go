package report

import (
	"fmt"
	"math"
)

// policyChart draws all policies of a scenario by loss and harvest. Losses above four points are
// drawn at the right edge.
func (s *Scenario) policyChart(id string) (figure, bool) {
	if len(s.Policies) < 2 {
		return figure{}, false
	}
	const (
		height = 340
		edge   = 4.0 // points
		bottom = height - 44
	)
	id += "-rivals"
	f := figure{ID: id, Caption: "Policies: harvest against loss, mean over seeds",
		Head: []string{"policy", "loss, points", "worst seed", "harvest, M an hour", "score"}}
	most, least, cheapest := 0.0, 0.0, ""
	for _, p := range s.Policies {
		harvest := float64(p.Useful.Mean) / 1e6 / s.Hours
		most = max(most, harvest)
		if float64(p.Loss.Worst) <= 1 && harvest > least {
			least, cheapest = harvest, p.Name
		}
	}
	about := fmt.Sprintf("%d policies; no policy keeps the loss below a point", len(s.Policies))
	if cheapest != "" {
		about = fmt.Sprintf(
			"%d policies; of those that cost at most a point on every seed, %s harvests most, %s "+
				"million tokens an hour", len(s.Policies), cheapest, fixed(least, 1))
	}
	d := newDrawing(id, f.Caption, about, height)
	ys := ticks(most * 1.05)
	y := func(
		v float64) float64 {
		return bottom - v/ys[len(ys)-1]*(bottom-chartTop)
	}
	low := -0.5
	for _, p := range s.Policies {
		low = max(-edge, min(low, float64(p.Loss.Mean)))
	}
	x := func(v float64) float64 {
		const width = chartWidth - chartLeft - chartRight - 8
		return chartLeft + (min(max(v, low), edge)-low)/(edge-low)*width
	}
	d.rect(x(1), chartTop, x(edge)-x(1), bottom-chartTop, "beyond", "more than a point of loss")
	for _, v := range ys {
		d.line(chartLeft, y(v), chartWidth-chartRight, y(v), "grid")
		d.label(chartLeft-6, y(v)+4, "tick", "end", short(v))
	}
	for v := math.Ceil(low); v <= edge; v++ {
		d.line(x(v), bottom, x(v), bottom+4, "grid")
		text, anchor := fixed(v, 0), "middle"
		if v == edge {
			text, anchor = text+" or more", "end"
		}
		d.label(x(v), bottom+17, "tick", anchor, text)
	}
	d.label(chartLeft, 16, "legend", "start", "million useful tokens an hour")
	d.label(chartWidth-chartRight, height-8, "legend", "end", "points of interactive loss")
	for _, limit := range s.Additions.Limits {
		if v := limit.Useful / 1e6 / s.Hours; v > 0 && v <= ys[len(ys)-1] {
			d.line(chartLeft, y(v), chartWidth-chartRight, y(v), "limit")
			d.label(chartWidth-chartRight-4, y(v)-4, "legend", "end", limit.Name)
		}
	}
	for _, p := range s.Policies {
		harvest := float64(p.Useful.Mean) / 1e6 / s.Hours
		loss, worst := float64(p.Loss.Mean), float64(p.Loss.Worst)
		d.policy(p, fmt.Sprintf("%s: %s M an hour, loss %s points, worst seed %s", p.Name,
			fixed(harvest, 2), fixed(loss, 2), fixed(worst, 2)), x(loss), x(worst), y(harvest))
		f.Rows = append(f.Rows, []string{p.Name, fixed(loss, 2), fixed(worst, 2), fixed(harvest, 2),
			fixed(float64(p.Score.Mean), 3)})
	}
	f.Drawing = d.end()
	return f, true
}

// policy draws a policy as a dot, with a line from its mean loss to that of its worst seed.
func (d *drawing) policy(p Policy, title string, mean, worst, y float64) {
	d.line(mean, y, worst, y, "whisker")
	class, r := "dot other", "4"
	if !p.Baseline {
		class, r = "dot ours", "6"
	}
	d.add(`<circle cx="%s" cy="%s" r="%s" class="%s"><title>%s</title></circle>`, num(mean), num(y),
		r, class, escape(title))
	if !p.Baseline || p.BestHere {
		anchor, at := "start", mean+9
		if mean > chartWidth*0.7 {
			anchor, at = "end", mean-9
		}
		d.label(at, y+4, "legend", anchor, p.Name)
	}
}
