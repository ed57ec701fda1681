package autoscale_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/registry"
)

// row is a row with a rate of interactive requests.
func row(rate float64) autoscale.Row {
	at := time.Date(2026, 11, 23, 4, 0, 0, 123456789, time.UTC)
	return autoscale.Row{
		Begin: autoscale.FleetStarted,
		Recalled: []autoscale.Recalled{{At: at, Age: time.Minute,
			PoolLearned: autoscale.PoolLearned{Pool: "night", Starts: []float64{131.25}}}},
		State: autoscale.State{At: at,
			Jobs: []plan.Demand{{Key: plan.JobKey{Batch: "b", Model: "m"}, Work: 1.0 / 3,
				Deadline: at.Add(time.Hour), Lines: 7}},
			Pools: []autoscale.PoolState{{Pool: registry.Pool{Name: "night", Max: 4},
				Interactive: autoscale.Interactive{Served: true, Rate: rate},
				Replicas:    []autoscale.Replica{{ID: "a", Phase: autoscale.Ready, Since: at}}}}},
		Decided:   []autoscale.Wanted{{Pool: "night", Replicas: 2}},
		Forecasts: []autoscale.Forecast{{Job: "b/m", Verdict: autoscale.OK}},
	}
}

func TestRowsKeepSteps(t *testing.T) {
	var text []byte
	var want []autoscale.Row
	for _, rate := range []float64{0, 2.5, math.NaN()} {
		s := row(rate)
		var err error
		if text, err = s.Append(text); err != nil {
			t.Fatal(err)
		}
		want = append(want, s)
	}
	text = append(text, `{"Version":1,"At":`...) // the daemon was killed
	n := 0
	err := autoscale.ReadRows(strings.NewReader(string(text)), func(got autoscale.Row) error {
		got.Version = 0
		g, w := &got.Pools[0].Interactive.Rate, &want[n].Pools[0].Interactive.Rate
		if math.IsNaN(*g) != math.IsNaN(*w) {
			t.Errorf("step %d: got the rate %v, want %v", n, *g, *w)
		}
		if math.IsNaN(*w) {
			*g, *w = 0, 0
		}
		if !reflect.DeepEqual(got, want[n]) {
			t.Errorf("step %d: got %+v, want %+v", n, got, want[n])
		}
		n++
		return nil
	})
	if err != nil || n != len(want) {
		t.Fatalf("read %d steps, %v; want %d", n, err, len(want))
	}
}

func TestReadNamesTheFaultyRow(t *testing.T) {
	good, err := row(1).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, row := range map[string]string{
		"row 2: it has the version 7, want 1":      `{"Version":7}`,
		"row 2: it has 0 pools and 1 decisions":    `{"Version":1,"Decided":[{}]}`,
		`row 2: json: unknown field "Wanted"`:      `{"Version":1,"Wanted":1}`,
		"row 2: invalid character 'x' looking for": `x`,
	} {
		text := strings.NewReader(string(good) + row + "\n")
		err := autoscale.ReadRows(text, func(autoscale.Row) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", row, err, want)
		}
	}
}
