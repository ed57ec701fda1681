package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/tidefill/tidefill/simulator"
)

// Sizes of a chart over time, in pixels before scaling. A chart is narrow enough to be read on a
// phone, where it is scaled to a little over half.
const (
	chartWidth  = 560
	chartHeight = 190
	chartLeft   = 48
	chartRight  = 12
	chartTop    = 12
	chartBottom = 26
)

// curve is one curve of a chart, drawn in a class of the page's style.
type curve struct {
	name, class string
	values      simulator.Series
}

// chart draws curves over the time of a timeline.
type chart struct {
	id, title, unit string
	at              simulator.Series
	curves          []curve
	// limit is drawn as a horizontal line, such as an objective; 0: none.
	limit     float64
	limitName string
}

// figure is a drawing with its values as a table, for readers who can't see it.
type figure struct {
	ID, Caption string
	Legend      []legendKey
	Drawing     template.HTML
	Notes       []legendKey // below the drawing
	Head        []string
	Rows        [][]string
}

// legendKey names a curve or an area of a drawing.
type legendKey struct{ Class, Text string }

// Area reports whether the key is of an area.
func (k legendKey) Area() bool { return strings.HasPrefix(k.Class, "fill") }

func (c chart) figure() figure {
	most := c.limit * 1.1
	caption := c.title
	if c.unit != "" {
		caption += ", " + c.unit
	}
	var values []string
	for _, line := range c.curves {
		low, high, mean := span(line.values)
		if !math.IsNaN(high) {
			most = max(most, high)
			values = append(values, fmt.Sprintf("%s %s to %s, mean %s", line.name, short(
				round3(low)),
				short(round3(high)), short(round3(mean))))
		}
	}
	about := strings.Join(values, "; ")
	if c.limit > 0 {
		about += fmt.Sprintf("; %s is %s", c.limitName, short(c.limit))
	}
	d := newDrawing(c.id, caption, about, chartHeight)
	ys := ticks(most)
	ceiling := ys[len(ys)-1]
	y := func(v float64) float64 {
		return chartHeight - chartBottom -
			v/ceiling*(chartHeight-chartTop-chartBottom)
	}
	end := 1.0
	if n := len(c.at); n > 0 {
		end = c.at[n-1]
	}
	x := axis(d, end, chartLeft, chartHeight-chartBottom)
	for _, v := range ys {
		d.line(chartLeft, y(v), chartWidth-chartRight, y(v), "grid")
		d.label(chartLeft-6, y(v)+4, "tick", "end", short(v))
	}
	if c.limit > 0 {
		d.line(chartLeft, y(c.limit), chartWidth-chartRight, y(c.limit), "limit")
	}
	xs := make([]float64, len(c.at))
	for i, t := range c.at {
		xs[i] = x(t)
	}
	f := figure{ID: c.id, Caption: caption, Head: []string{"minute"}}
	for _, line := range c.curves {
		heights := make([]float64, len(line.values))
		for k, v := range line.values {
			heights[k] = y(v)
		}
		d.path("line "+line.class, xs, heights)
		f.Legend = append(f.Legend, legendKey{"line " + line.class, line.name})
		f.Head = append(f.Head, line.name)
	}
	if c.limit > 0 {
		f.Legend = append(f.Legend, legendKey{"limit", c.limitName})
	}
	f.Drawing = d.end()
	for i := stride(len(c.at)) - 1; i < len(c.at); i += stride(len(c.at)) {
		row := []string{fixed(c.at[i]/60, 1)}
		for _, line := range c.curves {
			row = append(row, fixed(line.values[i], 2))
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// colours is the number of curves that the page's style distinguishes, by stroke as well as colour.
const colours = 8

// tableRows is the number of a chart's values that its table has.
const tableRows = 24

func stride(n int) int { return max(1, n/tableRows) }

// axis draws minutes, or hours of a long run, from left on. It returns the position of a time in
// seconds.
func axis(d *drawing, end, left, bottom float64) func(float64) float64 {
	unit, name := 60.0, "min"
	if end > 4*3600 {
		unit, name = 3600, "h"
	}
	x := func(t float64) float64 { return left + t/end*(d.width-left-chartRight) }
	for _, v := range ticks(end / unit) {
		if v*unit > end*1.0001 {
			break
		}
		d.line(x(v*unit), bottom, x(v*unit), chartTop, "grid")
		text := short(v)
		if v == 0 {
			text = "0 " + name
		}
		d.label(x(v*unit), bottom+15, "tick", "middle", text)
	}
	return x
}

// span returns the least, the greatest and the mean of the known values.
func span(values simulator.Series) (low, high, mean float64) {
	low, high, mean = math.NaN(), math.NaN(), math.NaN()
	sum, n := 0.0, 0
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if n == 0 || v < low {
			low = v
		}
		if n == 0 || v > high {
			high = v
		}
		sum += v
		n++
	}
	if n > 0 {
		mean = sum / float64(n)
	}
	return low, high, mean
}

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }
