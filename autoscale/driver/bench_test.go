package driver_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/driver"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store/live"
)

// BenchmarkPreview measures the wall time of a preview in a running driver beside 1,000 batches,
// as a creation of a batch waits for it. The dispatcher's survey and estimate are not in it.
func BenchmarkPreview(b *testing.B) {
	p := newProcess(newShared())
	for i := range 1000 {
		d := demand(fmt.Sprintf("batch_%04d", i), 0.05)
		d.Deadline = d.Deadline.Add(time.Duration(i) * time.Minute)
		p.survey.Jobs = append(p.survey.Jobs, d)
	}
	d, err := driver.New(autoscale.DefaultConfig(), driver.Deps{
		Pools: []registry.Pool{{Name: "night", Models: []string{"m"}, Max: 100,
			Role: registry.RoleBatch}},
		Dispatcher: p, Snapshots: live.Stored{States: p},
		Logger: slog.New(slog.DiscardHandler),
		Flow: func(registry.Pool) flowcontrol.Config {
			c := flowcontrol.DefaultConfig()
			c.Engine.CostModel = costmodel.Model{C0: 33, C1: 0.112, KV: 5.25e-5, P1: 0.0052}
			return c
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	asked := []plan.Demand{demand("new", 1)}
	for b.Loop() {
		if got, err := d.Preview(ctx, asked); err != nil || got.Jobs[0].Verdict == "" {
			b.Fatal(got, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
