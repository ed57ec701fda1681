package fit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/costmodel"
)

func TestEvaluate(t *testing.T) {
	costModel := costmodel.Model{C0: 10}
	var obs []Observation
	for i, ms := range []float64{10, 12.5, 8, 10, 10, 10, 10, 10, 10, 5} {
		obs = append(obs, Observation{Time: ms, Steps: 1, Work: Work{Decoding: 10 * i}})
	}
	e := evaluate(costModel, obs)
	if e.Points != 10 || math.Abs(e.Mean-0.145) > 1e-9 || math.Abs(e.Bias-0.105) > 1e-9 ||
		math.Abs(e.P90-0.325) > 1e-9 {
		t.Errorf("error %+v, want mean 0.145, bias 0.105, p90 0.325", e)
	}
	points := 0
	for _, r := range evaluateRanges(costModel, obs) {
		points += r.Error.Points
		if r.From > r.To || r.Predicted != 10 {
			t.Errorf("range %+v", r)
		}
	}
	if points != len(obs) {
		t.Errorf("the ranges hold %d of %d iterations", points, len(obs))
	}
}

// A cost model that holds in the first half and not in the second must be found out.
func TestCrossValidationUsesUnfittedData(t *testing.T) {
	steps := rich(func(d *syntheticTrace) { d.prefill = 0 }).record()
	obs, err := Observe(steps, 0, AheadUnknown)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range CrossValidate(obs, Options{}) {
		if h.Fault != "" || h.Error.Mean > 0.012 {
			t.Errorf("%s: %+v %s", h.Split, h.Error, h.Fault)
		}
	}
	for i, o := range obs.All {
		if 2*o.At >= o.Length {
			obs.All[i].Time *= 1.5
		}
	}
	if h := CrossValidate(obs, Options{})[0]; math.Abs(h.Error.Mean-1.0/3) > 0.02 {
		t.Errorf("a second half slower by half gives the error %+v, want a mean of 0.33", h.Error)
	}
	few := obs
	few.All = obs.All[:40]
	for _, h := range CrossValidate(few, Options{}) {
		if h.Fault == "" {
			t.Errorf("%s has a figure from too little data: %+v", h.Split, h.Error)
		}
	}
}

func TestPlotIsWellFormed(t *testing.T) {
	obs, err := Observe(rich(nil).record(), 0, AheadUnknown)
	if err != nil {
		t.Fatal(err)
	}
	for _, points := range [][]Observation{obs.All, obs.All[:1], nil} {
		var out, again bytes.Buffer
		if err := Plot(&out, `a <model> & "more"`, known, points); err != nil {
			t.Fatal(err)
		}
		if err := Plot(&again, `a <model> & "more"`, known, points); err != nil ||
			!bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("drawn twice, drawn differently (%v)", err)
		}
		text := out.String()
		decoder := xml.NewDecoder(&out)
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if start, ok := token.(xml.StartElement); ok && start.Name.Local == "script" {
				t.Error("a script")
			}
		}
		for _, bad := range []string{"NaN", "Inf"} {
			if strings.Contains(text, bad) {
				t.Errorf("%d points: %s in the drawing", len(points), bad)
			}
		}
	}
}
