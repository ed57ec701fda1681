package randompools

import (
	"math"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator/lab/random"
)

func record(number int, loss, worst float64, harvest, reference int64, router string) Record {
	return Record{Number: number, Dimensions: []random.Dimension{{Name: "router", Value: router}},
		Outcome:   Outcome{Loss: loss, WorstLoss: worst, Harvest: harvest},
		Reference: &Reference{Lines: 2, Runners: 1, Harvest: reference}}
}

func TestTheSummaryIsThatOfItsPools(t *testing.T) {
	r := Report{WithReference: true, Command: "repeat", Records: []Record{
		record(1, 0.2, 1, 200, 100, "a"), record(2, 0.7, 4, 50, 100, "a"),
		record(3, 1.5, 12, 800, 100, "b"), record(4, 3, 20, 0, 100, "b"),
		record(5, 0, 0, 7, 0, "b"), // nothing static is safe
	}}
	r.summarize()
	a := r.All
	want := Summary{Pools: 5, MeanLoss: 5.4 / 5, MaxLoss: 3, Over05: 0.6, Over1: 0.4, Over2: 0.2,
		Over10In5Minutes: 0.4, Max5Minutes: 20, Compared: 4,
		HarvestRatio: math.Pow(2*0.5*8*0.01, 0.25), SafeRatio: 1, WellEnough: 0.25,
		NothingStatic: 1, Harvested: 1, Harvest: 1057}
	for name, pair := range map[string][2]float64{
		"mean": {a.MeanLoss, want.MeanLoss}, "ratio": {a.HarvestRatio, want.HarvestRatio},
		"safe ratio": {a.SafeRatio, want.SafeRatio},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	a.MeanLoss, a.HarvestRatio, a.SafeRatio = want.MeanLoss, want.HarvestRatio, want.SafeRatio
	if a != want {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
	if len(r.Groups) != 2 || r.Groups[0].Value != "b" || r.Groups[0].Pools != 3 {
		t.Errorf("groups are %+v, want b first", r.Groups)
	}
	if w := r.worstByLoss(); w[0].Number != 4 || w[1].Number != 3 {
		t.Errorf("the largest losses are of %+v", w)
	}
	if w := r.worstByHarvest(); len(w) != 4 || w[0].Number != 4 || w[1].Number != 2 {
		t.Errorf("the smallest harvests are of %+v", w)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"above 1 in 40 %", "repeat 4", "geometric mean 0.532"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}

// Static settings that harvest nothing, and pools that miss their objectives by themselves in the
// other run, are in no figure of the reruns.
func TestTheSummaryHasRerunsOfStaticSettings(t *testing.T) {
	again := func(r Record, harvest int64, loss float64) Record {
		r.Reference.Rerun = &Rerun{Harvest: harvest, Loss: loss}
		return r
	}
	r := Report{WithReference: true, Records: []Record{
		again(record(1, 0, 0, 1, 100, "a"), 400, 0.5), again(record(2, 0, 0, 1, 100, "a"), 25, 4.5),
		again(record(3, 0, 0, 1, 0, "a"), 0, 9), record(4, 0, 0, 1, 100, "a"),
		again(record(5, 0, 0, 1, 100, "a"), 100, 1.5), again(record(6, 0, 0, 1, 100, "a"), 100, 0),
	}}
	r.summarize()
	a := r.All
	if a.Reruns != 4 || a.RerunMeanLoss != 6.5/4 || a.RerunMaxLoss != 4.5 || a.RerunOver1 != 0.5 ||
		a.RerunOver2 != 0.25 || math.Abs(a.RerunHarvest-1) > 1e-9 {
		t.Errorf("reruns are %+v", a)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	const want = "loss mean 1.62, worst 4.50; above 1 in 50 %, above 2 in 25 % of 4 pools; 1.000 of"
	if !strings.Contains(text.String(), want) {
		t.Errorf("the report lacks %q:\n%s", want, text.String())
	}
}
