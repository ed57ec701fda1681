package fit

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"slices"

	"github.com/tidefill/tidefill/costmodel"
)

const (
	plotWidth, plotHeight            = 760, 460
	plotLeft, plotRight              = 60, 20
	plotTop, plotBottom              = 52, 52
	plotPoints                       = 4000 // of more, every k-th is drawn
	plotClip                         = 0.99 // share of the points that the vertical axis must hold
	inkPoint, inkLaw, inkText, inkGo = "#3f78b5", "#c0392b", "#333", "#ddd"
)

// Plot draws the cost model against exact iterations of little or no prefill, over the number of
// decoding requests, as an SVG without scripts or fonts of its own. The model's line has the median
// context per request of the measurements. Iterations above the frame are drawn as triangles at its
// edge.
//
// It is written by hand for the reasons given in package simulator/report (see drawing).
func Plot(out io.Writer, title string, l costmodel.Model, obs []Observation) error {
	var points []Observation
	var times, contexts []float64
	most := 1
	for _, o := range obs {
		if o.Exact() && o.Work.Decoding > 0 && o.Work.Prefill < chunkInWideGap*o.Steps {
			points, times = append(points, o), append(times, o.mean())
			contexts = append(contexts, o.Work.Context/float64(o.Work.Decoding))
			most = max(most, o.Work.Decoding)
		}
	}
	slices.SortFunc(points, compareObservations)
	top := quantile(times, plotClip)
	at := func(n int) float64 {
		return Observation{Steps: 1,
			Work: Work{Decoding: n, Context: quantile(contexts, 0.5) * float64(n)}}.Predict(l)
	}
	for n := range most {
		top = max(top, at(n+1))
	}
	xs, ys := ticks(float64(most)), ticks(top*1.05)
	right, ceiling := xs[len(xs)-1], ys[len(ys)-1]
	x := func(n float64) float64 { return plotLeft + n/right*(plotWidth-plotLeft-plotRight) }
	y := func(
		ms float64) float64 {
		return plotHeight - plotBottom - ms/ceiling*(plotHeight-plotTop-plotBottom)
	}

	w := bufio.NewWriter(out)
	fmt.Fprintf(
		w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="%s" role="img">`+
			"\n",
		plotWidth, plotHeight, plotWidth, plotHeight, inkText)
	fmt.Fprintf(w, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		html.EscapeString(title))
	fmt.Fprintf(w, "<text x=\"%d\" y=\"22\" font-size=\"15\">%s</text>\n", plotLeft,
		html.EscapeString(title))
	fmt.Fprintf(
		w, "<circle cx=\"%d\" cy=\"36\" r=\"2.5\" fill=\"%s\"/><text x=\"%d\" y=\"40\">%d "+
			"measured iterations</text>\n", plotLeft+4, inkPoint, plotLeft+12, len(points))
	fmt.Fprintf(
		w, "<path d=\"M%d 36h18\" stroke=\"%s\" stroke-width=\"2\"/><text x=\"%d\" y=\"40\">cost "+
			"model at %.0f tokens of context a request</text>\n",
		plotLeft+190, inkLaw, plotLeft+214, quantile(contexts, 0.5))
	for _, v := range xs {
		fmt.Fprintf(
			w, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/><text x=\"%.1f\" y=\"%d\" "+
				"text-anchor=\"middle\">%g</text>\n",
			x(v), y(0), y(ceiling), inkGo, x(v), plotHeight-plotBottom+16, v)
	}
	for _, v := range ys {
		fmt.Fprintf(
			w, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\"/><text x=\"%d\" y=\"%.1f\" "+
				"text-anchor=\"end\">%g</text>\n",
			x(0), y(v), x(right), inkGo, plotLeft-6, y(v)+4, v)
	}
	fmt.Fprintf(w, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">decoding requests</text>\n",
		x(right/2), plotHeight-14)
	fmt.Fprintf(
		w, "<text transform=\"translate(16 %.1f) rotate(-90)\" "+
			"text-anchor=\"middle\">milliseconds per iteration</text>\n", y(ceiling/2))
	every := (len(points) + plotPoints - 1) / plotPoints
	fmt.Fprintf(w, "<g fill=\"%s\" fill-opacity=\"0.4\">\n", inkPoint)
	for i, o := range points {
		switch n := x(float64(o.Work.Decoding)); {
		case every > 1 && i%every != 0:
		case o.mean() > ceiling:
			fmt.Fprintf(w, "<path d=\"M%.1f %.1fl4 7h-8z\"/>\n", n, y(ceiling))
		default:
			fmt.Fprintf(w, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n", n, y(o.mean()))
		}
	}
	fmt.Fprintf(w, "</g>\n<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
		inkLaw)
	for n := 1; n <= most; n += max(1, most/200) {
		fmt.Fprintf(w, "%.1f,%.1f ", x(float64(n)), y(at(n)))
	}
	fmt.Fprintf(w, "%.1f,%.1f\"/>\n</svg>\n", x(float64(most)), y(at(most)))
	return w.Flush()
}

// ticks returns four to nine round numbers, from 0 to the first at or above most.
func ticks(most float64) []float64 {
	most = max(most, 1e-9)
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	step := unit
	for _, s := range []float64{unit / 5, unit / 2, unit} {
		if most/s <= 8 {
			step = s
			break
		}
	}
	var all []float64
	for i := 0; ; i++ {
		v := math.Round(float64(i)*step*1e9) / 1e9
		all = append(all, v)
		if v >= most-1e-9 && i > 0 {
			return all
		}
	}
}
