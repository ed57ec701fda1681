package driver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// Upstreams that name no pool get forecasts as pools of the size that they have. Nobody sets their
// number, so nothing is published of them, and none of them is drained.
func TestUpstreamsWithoutAPoolGetForecasts(t *testing.T) {
	runner := func(id string, open bool) plan.RunnerSurvey {
		return plan.RunnerSurvey{ID: id, Pool: "chat", Models: []string{"chat"},
			Since: time.Now().Add(-time.Hour), Open: open}
	}
	forecastOf := func(runners ...plan.RunnerSurvey) (store.Forecast, *autoscale.Snapshot) {
		job := demand("b", 1)
		job.Key.Model, job.Deadline = "chat", time.Time{}
		p := &process{shared: &shared{kept: map[string]store.LearnedState{}}}
		p.survey = plan.Survey{Jobs: []plan.Demand{job}, Runners: runners,
			Pools: []plan.PoolSurvey{{Name: "chat", Models: []string{"chat"}}}}
		d, _ := start(t, p)
		await(t, d, func(*autoscale.PoolSnapshot) bool {
			return !p.forecastOf("b").Finish.IsZero()
		})
		s, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if drained := p.drained(); len(drained) > 0 {
			t.Errorf("%q are drained", drained)
		}
		return p.forecastOf("b"), s
	}
	begin := time.Now()
	one, _ := forecastOf(runner("a:80", false))
	two, s := forecastOf(runner("a:80", false), runner("b:80", false))
	down, _ := forecastOf(runner("a:80", false), runner("b:80", true))
	took := func(f store.Forecast) float64 { return f.Finish.Sub(begin).Minutes() }
	if ratio := took(one) / took(two); ratio < 1.8 || ratio > 2.2 {
		t.Errorf("with one runner it takes %.0f minutes, with two %.0f", took(one), took(two))
	}
	if ratio := took(down) / took(one); ratio < 0.95 || ratio > 1.05 {
		t.Errorf("with one of two that answers it takes %.0f minutes, with one %.0f", took(down),
			took(one))
	}
	if more := one.OneMore.Sub(begin).Minutes(); more > 0.8*took(one) || more < took(two) {
		t.Errorf("with one more it would take %.0f minutes, with one %.0f, with two %.0f", more,
			took(one), took(two))
	}
	published := func(p autoscale.PoolSnapshot) bool { return p.Pool == "chat" }
	if slices.ContainsFunc(s.Pools, published) {
		t.Errorf("a number of replicas is published: %+v", s.Pools)
	}
}
