package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// drawing is an SVG being written. Colours are classes of the page's style, so that the same
// drawing serves light and dark.
//
// It is written by hand because no plotting package makes such drawings. gonum.org/v1/plot v0.17.0
// writes SVG without title, description or classes, so screen readers get nothing, no value is
// shown under the pointer and the page has no dark mode; it adds 8 modules and 8.8 MB to a program
// (build one that draws two lines with plot/vg/vgsvg). Packages that draw in the browser need
// scripts, which the page's Content-Security-Policy forbids.
type drawing struct {
	text          strings.Builder
	width, height float64
}

// newDrawing starts a drawing that screen readers read as its title and description.
func newDrawing(id, title, about string, height float64) *drawing {
	d := &drawing{width: chartWidth, height: height}
	d.add(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d">`, num(chartWidth), num(height), id, id)
	d.add(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, html.EscapeString(title), id,
		html.EscapeString(about))
	return d
}

// add writes markup. Text from outside must be escaped.
func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

func (d *drawing) label(x, y float64, class, anchor, text string) {
	d.add(`<text x="%s" y="%s" class="%s" text-anchor="%s">%s</text>`, num(x), num(y), class,
		anchor, html.EscapeString(text))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	d.add(`<path d="M%s %sL%s %s" class="%s"/>`, num(x1), num(y1), num(x2), num(y2), class)
}

// rect shows its title under the pointer.
func (d *drawing) rect(x, y, w, h float64, class, title string) {
	d.add(`<rect x="%s" y="%s" width="%s" height="%s" class="%s"><title>%s</title></rect>`, num(x),
		num(y), num(max(w, 0.5)), num(h), class, html.EscapeString(title))
}

// path connects points; an unknown point interrupts it.
func (d *drawing) path(class string, xs, ys []float64) {
	var p strings.Builder
	pen := false
	for i := range xs {
		if math.IsNaN(ys[i]) {
			pen = false
			continue
		}
		if pen {
			p.WriteByte('L')
		} else {
			p.WriteByte('M')
		}
		pen = true
		p.WriteString(num(xs[i]) + " " + num(ys[i]))
		if i+1 == len(xs) || math.IsNaN(ys[i+1]) {
			p.WriteString("h0.1") // one known point alone is a dot
		}
	}
	d.add(`<path d="%s" class="%s"/>`, p.String(), class)
}

func (d *drawing) end() template.HTML {
	d.text.WriteString("</svg>")
	return template.HTML(d.text.String()) //nolint:gosec // all text in it is escaped
}

// num formats a coordinate to a tenth of a pixel.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// ticks returns four to nine round numbers, from 0 to the first at or above most.
func ticks(most float64) []float64 {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	unit := 1.0
	for unit > most {
		unit /= 10
	}
	for unit*10 <= most {
		unit *= 10
	}
	step := unit
	for _, s := range []float64{unit / 5, unit / 2, unit} {
		if most/s <= 8 {
			step = s
			break
		}
	}
	all := []float64{0}
	for i := 1; all[i-1] < most-1e-9*step; i++ {
		all = append(all, float64(i)*step)
	}
	return all
}

// short formats a tick's label.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case a >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
