package driver

import (
	"log/slog"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/registry"
)

// What was learned outlasts another configuration.
func TestLearnedOutlastsAnotherConfiguration(t *testing.T) {
	cfg := autoscale.DefaultConfig()
	pools := []registry.Pool{{Name: "night", Models: []string{"m"}, Max: 8}}
	d, err := New(cfg, Deps{Pools: pools, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	starts := []float64{100, 200, 300}
	err = d.fleet.Recall(time.Now(), autoscale.PoolLearned{Pool: "night", Starts: starts,
		Harvest: autoscale.HarvestLearned{Share: 0.5}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.leavingOf("night")
	before := d.fleet
	cfg.Down.Drain = time.Minute
	d.Configure(cfg, pools)
	if err := d.takeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	learned := d.fleet.Learned(time.Now())
	if d.fleet == before || len(learned) != 1 {
		t.Fatalf("the new fleet has learned %+v", learned)
	}
	if diff := gocmp.Diff(starts, learned[0].Starts); diff != "" ||
		learned[0].Harvest.Share != 0.5 {
		t.Errorf("starts (-want +got):\n%s, harvest %+v", diff, learned[0].Harvest)
	}
	if limit := d.leaving["night"].limit; limit != time.Minute {
		t.Errorf("replicas may drain for %v", limit)
	}
	same := d.fleet
	d.Configure(cfg, []registry.Pool{{Name: "day", Models: []string{"m"}, Max: 1}})
	if err := d.takeOver(t.Context()); err != nil || d.fleet != same || len(d.leaving) != 0 ||
		d.pools[0].Name != "day" {
		t.Errorf("other pools alone: %v, another fleet %v, %d with replicas that leave, %+v", err,
			d.fleet != same, len(d.leaving), d.pools)
	}
}
