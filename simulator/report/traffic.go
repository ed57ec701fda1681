package report

import (
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Traffic is how far interactive traffic that was made from a trace is like the trace. It is of the
// first seed.
type Traffic struct {
	Requests int     `json:"requests"`
	Rate     float64 `json:"rate"` // requests a second
	Asked    float64 `json:"rate_asked"`
	// Copies of the trace that lie side by side; 0: it was told once, as it was.
	Copies     int          `json:"copies"`
	Dispersion []Dispersion `json:"dispersion"`
	Notes      []string     `json:"notes,omitempty"`
}

// Dispersion is how uneven arrivals are over windows of a length: variance of their counts over the
// mean.
type Dispersion struct {
	Window float64 `json:"window_s"`
	Source float64 `json:"trace"`
	Result float64 `json:"simulated"`
	// AroundRate is what is left of the result's when the movement of the rate asked for is taken
	// out.
	AroundRate float64 `json:"simulated_around_rate"`
}

// TrafficOf says what there is to say; nil: the traffic is a generator's, and like nothing but
// itself.
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

// Lines tell it to people.
func (t *Traffic) Lines() []string {
	if t == nil {
		return nil
	}
	how := "told once, as the trace was"
	switch {
	case t.Copies == 1:
		how = "made of the trace, rotated, repeated and thinned"
	case t.Copies > 1:
		how = fmt.Sprintf(
			"made of the trace laid side by side %d times, rotated, repeated and thinned", t.Copies)
	}
	var windows, source, result, around []string
	for _, d := range t.Dispersion {
		windows = append(windows, fixed(d.Window, 0))
		source, result = append(source, fixed(d.Source, 1)), append(result, fixed(d.Result, 1))
		around = append(around, fixed(d.AroundRate, 1))
	}
	lines := []string{
		fmt.Sprintf("Interactive traffic: %d requests, %s a second (asked for: %s), %s.",
			t.Requests, fixed(t.Rate, 2), fixed(t.Asked, 2), how),
		fmt.Sprintf(
			"Variance of arrivals over their mean at %s s: %s in the trace, %s here, %s of it around the rate asked for.",
			strings.Join(windows, ", "), strings.Join(source, ", "), strings.Join(result, ", "),
			strings.Join(around, ", ")),
	}
	for _, note := range t.Notes {
		lines = append(lines, "Note: "+note+".")
	}
	return lines
}
