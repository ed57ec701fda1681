package tune

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/search"
)

// tunedFrom is a search of one parameter on seed 1, held back seed 2, in a scenario that allows a
// point. The first of its losses on seed 1 is the configuration's. confirmed are the losses of the
// configuration and of the best on seed 2.
func tunedFrom(t *testing.T, useful int64, confirmed [2]float64, losses ...float64) Tuned {
	t.Helper()
	p, err := ParseParameter("flowcontrol.fixed.per_runner=2:60")
	if err != nil {
		t.Fatal(err)
	}
	result := func(loss float64) simulator.Result {
		return simulator.Result{Loss: loss, Batch: simulator.Batch{Useful: useful}}
	}
	s := compare.Scenario{}
	s.Scenario.Name, s.Scenario.Goals = "ours", scenario.Goals{Loss: 1}
	tuning := &Tuning{Scenarios: []compare.Scenario{s}, Parameters: []Parameter{p},
		SearchSeeds: []uint64{1}, ConfirmSeeds: []uint64{2}}
	one, two := runKey{0, 1}, runKey{0, 2}
	tuning.before = map[runKey]simulator.Result{one: result(losses[0]), two: result(confirmed[0])}
	best, least := 0, losses[0]
	for i, loss := range losses {
		r := map[runKey]simulator.Result{one: result(loss)}
		tuning.tried([]float64{float64(2 + i)}, tuning.objective(tuning.SearchSeeds, r), r)
		if loss < least {
			best, least = i, loss
		}
	}
	after := map[runKey]simulator.Result{one: result(least), two: result(confirmed[1])}
	return Tuned{tuning: tuning, after: after, policy: "fixed",
		best: search.Result{Point: []float64{float64(2 + best)}, Spent: len(losses)},
		searched: change{tuning.objective(tuning.SearchSeeds, tuning.before),
			tuning.objective(tuning.SearchSeeds, after)},
		confirmed: change{tuning.objective(tuning.ConfirmSeeds, tuning.before),
			tuning.objective(tuning.ConfirmSeeds, after)}}
}

// What harms users is never kept, and the best that was tried are listed.
func TestAdvice(t *testing.T) {
	for _, test := range []struct {
		name      string
		confirmed [2]float64
		losses    []float64
		want      string
	}{
		{"all harm, and the best is at the end", [2]float64{17, 17}, []float64{17.6, 20, 26},
			"All of the 3 settings tried, the configuration's too, lose more than the goal of " +
				"1 point. The best is flowcontrol.fixed.per_runner=2 with 17.60 points. Search " +
				"below 2 of flowcontrol.fixed.per_runner, or use flowcontrol.policy=headroom."},
		{"the best harms less", [2]float64{17, 12}, []float64{17.6, 12.5},
			"The setting below is better, on the seeds held back too, but users still lose " +
				"12.50 points, more than the goal of 1 point. Search other keys, or use"},
		{"it keeps the goal where it was searched only", [2]float64{3, 4}, []float64{3, 0.5},
			"The configuration loses more than the goal of 1 point. " +
				"flowcontrol.fixed.per_runner=3 keeps the goal on the seeds that were searched, " +
				"and loses 4.00 points on one held back. Search with more --seeds."},
		{"nothing is better", [2]float64{0.2, 0.2}, []float64{0.5, 2},
			"No setting is better on the seeds held back too. Keep the configuration as it is."},
		{"it is better", [2]float64{3, 0.2}, []float64{3, 0.5},
			"The setting below is better, on the seeds held back too."},
	} {
		var text strings.Builder
		if err := tunedFrom(t, 100, test.confirmed, test.losses...).Write(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(text.String(), "# "+test.want) {
			t.Errorf("%s: got\n%s\nwant %q", test.name, &text, test.want)
		}
		if !strings.Contains(text.String(), "\n# PER_RUNNER  OBJECTIVE  HARVEST, M  WORST LOSS") {
			t.Errorf("%s: the trials are not listed:\n%s", test.name, &text)
		}
	}
}

func TestParametersWithoutEffect(t *testing.T) {
	const want = "flowcontrol.fixed.per_runner makes no difference: all figures are the same " +
		"from 2 to 4."
	if got := tunedFrom(t, 100, [2]float64{0, 0}, 0.5, 0.5, 0.5).verdict(); len(got) != 2 ||
		got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tunedFrom(t, 100, [2]float64{0, 0}, 0.5, 0.5, 0.6).verdict(); len(got) != 1 {
		t.Errorf("a parameter with an effect: %q", got)
	}
}

// Five of the trials are listed, the best first; what rounds to the same values is one.
func TestTheBestTrialsAreListed(t *testing.T) {
	tuned := tunedFrom(t, 3e6, [2]float64{0, 0}, 7, 6, 5, 4, 3, 2)
	tuned.tuning.tried([]float64{2.2}, 0, nil)
	var text strings.Builder
	if err := tuned.tuning.writeTrials(&text); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(rows) != 7 || rows[0] != "the best of 6 settings, on the seeds that were searched" ||
		!strings.HasPrefix(rows[2], "7 ") || !strings.HasPrefix(rows[6], "3 ") ||
		strings.Join(strings.Fields(rows[2])[2:], " ") != "3.00 2.00 0/0 0.0" {
		t.Errorf("the trials are\n%s", &text)
	}
}
