package report

import (
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Traffic compares interactive traffic with the trace that it was made from, for the first seed.
type Traffic struct {
	Requests int     `json:"requests"`
	Rate     float64 `json:"rate"` // requests a second
	Asked    float64 `json:"rate_asked"`
	// Copies is the number of copies of the trace that are overlaid; 0: it is played back once,
	// unchanged.
	Copies     int          `json:"copies"`
	Dispersion []Dispersion `json:"dispersion"`
	Notes      []string     `json:"notes,omitempty"`
}

// Dispersion is how uneven arrivals are over windows of a length: the variance of their counts over
// the mean.
type Dispersion struct {
	Window float64 `json:"window_s"`
	Source float64 `json:"trace"`
	Result float64 `json:"simulated"`
	// AroundRate is the result's dispersion without the movement of the requested rate.
	AroundRate float64 `json:"simulated_around_rate"`
}

// TrafficOf returns nil if the traffic comes from a generator, which has no trace to compare with.
func TrafficOf(h simulator.TrafficSummary) *Traffic {
	if h.Source == nil {
		return nil
	}
	t := &Traffic{Requests: h.Result.Requests, Rate: h.Result.Rate, Asked: h.Rate, Copies: h.Copies,
		Notes: h.Notes}
	for i, window := range workload.Windows {
		t.Dispersion = append(t.Dispersion, Dispersion{
			Window: window.Seconds(), Source: h.Source.Dispersion[i].VarMean,
			Result: h.Result.Dispersion[i].VarMean, AroundRate: h.Result.Dispersion[i].AroundRate,
		})
	}
	return t
}

// sentences describes the traffic in sentences.
func (t *Traffic) sentences() []string {
	if t == nil {
		return nil
	}
	how := "the trace, played back once"
	switch {
	case t.Copies == 1:
		how = "the trace, rotated, repeated and thinned"
	case t.Copies > 1:
		how = fmt.Sprintf(
			"%d overlaid copies of the trace, rotated, repeated and thinned", t.Copies)
	}
	var windows, source, result, around []string
	for _, d := range t.Dispersion {
		windows = append(windows, fixed(d.Window, 0))
		source, result = append(source, fixed(d.Source, 1)), append(result, fixed(d.Result, 1))
		around = append(around, fixed(d.AroundRate, 1))
	}
	lines := []string{
		fmt.Sprintf("Interactive traffic: %d requests, %s a second (requested: %s), %s.",
			t.Requests, fixed(t.Rate, 2), fixed(t.Asked, 2), how),
		fmt.Sprintf(
			"Variance of arrivals over their mean at %s s: %s in the trace, %s simulated, %s of "+
				"it around the requested rate.",
			strings.Join(windows, ", "), strings.Join(source, ", "), strings.Join(result, ", "),
			strings.Join(around, ", ")),
	}
	for _, note := range t.Notes {
		lines = append(lines, "Note: "+note+".")
	}
	return lines
}
