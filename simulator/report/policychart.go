package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// policyChart draws all policies of a scenario by loss and harvest, with the run without batch
// work. Large losses are drawn at the right edge.
func (s *Scenario) policyChart(id string) (figure, bool) {
	if len(s.Policies) == 0 {
		return figure{}, false
	}
	const (
		height = 340
		bottom = height - 46
	)
	allowed := s.allowedLoss()
	edge := max(4, 2*allowed) // points
	id += "-rivals"
	f := figure{ID: id, Caption: "Policies: harvest against loss, mean over seeds",
		Head: []string{"policy", "loss, points", "worst seed", "harvest, M an hour", "score"}}
	most := 0.0
	for _, p := range s.Policies {
		most = max(most, float64(p.Useful.Mean)/1e6/s.Hours)
	}
	d := newDrawing(id, f.Caption, strings.Join(s.Conclusion, " "), height)
	const top = 30
	ys := ticks(most * 1.05)
	y := func(v float64) float64 { return bottom - v/ys[len(ys)-1]*(bottom-top) }
	low := -0.5
	for _, p := range s.Policies {
		low = max(-edge, min(low, float64(p.Loss.Mean)))
	}
	x := func(v float64) float64 {
		const width = chartWidth - chartLeft - chartRight - 8
		return chartLeft + (min(max(v, low), edge)-low)/(edge-low)*width
	}
	d.rect(x(allowed), top, x(edge)-x(allowed), bottom-top, "beyond",
		"more loss than is allowed")
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
	d.label(chartLeft, 16, "label", "start", "million useful tokens an hour")
	d.label(chartWidth-chartRight, height-8, "label", "end", "points of interactive loss")
	for _, limit := range s.Additions.Limits {
		if v := limit.Useful / 1e6 / s.Hours; v > 0 && v <= ys[len(ys)-1] {
			d.line(chartLeft, y(v), chartWidth-chartRight, y(v), "limit")
			d.label(chartWidth-chartRight-4, y(v)-4, "label", "end", limit.Name)
		}
	}
	dots := policyDots{drawing: d}
	dots.draw("dot quiet", "no batch", "no batch: no harvest, no loss", x(0), x(0), y(0))
	for _, p := range s.Policies {
		harvest := float64(p.Useful.Mean) / 1e6 / s.Hours
		loss, worst := float64(p.Loss.Mean), float64(p.Loss.Worst)
		class, name := "dot ours", p.Name
		if p.Baseline {
			class = "dot other"
			if !p.BestHere {
				name = ""
			}
		}
		title := fmt.Sprintf("%s: %s M an hour, loss %s points, worst seed %s", p.Name,
			fixed(harvest, 2), fixed(loss, 2), fixed(worst, 2))
		dots.draw(class, name, title, x(loss), x(worst), y(harvest))
		f.Rows = append(f.Rows, []string{p.Name, fixed(loss, 2), fixed(worst, 2), fixed(harvest, 2),
			fixed(float64(p.Score.Mean), 3)})
	}
	f.Drawing = d.end()
	return f, true
}

// policyDots draws policies as dots.
type policyDots struct {
	*drawing
	names [][2]float64 // places
}

// draw draws a dot with a line from its mean loss to that of its worst seed, and with its name
// beside it, below other names there.
func (d *policyDots) draw(class, name, title string, mean, worst, y float64) {
	d.line(mean, y, worst, y, "whisker")
	d.add(`<circle cx="%s" cy="%s" r="5" class="%s"><title>%s</title></circle>`, num(mean), num(y),
		class, escape(title))
	if name == "" {
		return
	}
	anchor, at := "start", mean+9
	if mean > chartWidth*0.6 {
		anchor, at = "end", mean-9
	}
	const row, width = 16, 150
	for slices.ContainsFunc(d.names, func(o [2]float64) bool {
		return math.Abs(o[1]-y) < row && math.Abs(o[0]-at) < width
	}) {
		y -= row
	}
	d.names = append(d.names, [2]float64{at, y})
	d.label(at, y+4, "label", anchor, name)
}
