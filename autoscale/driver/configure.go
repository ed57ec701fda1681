package driver

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/registry"
)

// configured is what a Driver decides by. Run takes over what others set.
type configured struct {
	mu    sync.Mutex
	cfg   autoscale.Config
	pools []registry.Pool
}

func (c *configured) get() (autoscale.Config, []registry.Pool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg, c.pools
}

// Configure replaces the configuration, which must be valid, from the next decision on. What was
// learned is kept.
func (d *Driver) Configure(cfg autoscale.Config, pools []registry.Pool) {
	d.configured.mu.Lock()
	d.configured.cfg, d.configured.pools = cfg, pools
	d.configured.mu.Unlock()
	d.Poke()
}

// replacePools forgets the replicas of pools that have gone. What was learned of them is kept, for
// the case that they come back.
func (d *Driver) replacePools(pools []registry.Pool) {
	for _, before := range d.pools {
		same := func(p registry.Pool) bool { return p.Name == before.Name }
		if !slices.ContainsFunc(pools, same) {
			delete(d.leaving, before.Name)
			d.metrics.forget(before.Name)
		}
	}
	d.pools = pools
}

// takeOver takes over the configuration. A fleet of other settings gets what this one has learned.
func (d *Driver) takeOver(ctx context.Context) error {
	cfg, pools := d.configured.get()
	d.replacePools(pools)
	if reflect.DeepEqual(cfg, d.cfg) {
		return nil
	}
	next, err := autoscale.NewFleet(cfg)
	if err != nil {
		return err
	}
	if cfg.Record != d.cfg.Record {
		if err := d.record.close(); err != nil {
			d.log.WarnContext(ctx, "could not close the record of decisions", "error", err)
		}
		d.record = newRecord(cfg)
	}
	now := time.Now().Round(0) // as it is recorded
	d.record.beginAnew()
	for _, learned := range d.fleet.Learned(now) {
		err := next.Recall(now, learned, 0)
		if err == nil {
			d.record.handedOver([]autoscale.Recalled{{At: now, PoolLearned: learned}})
		} else {
			d.log.InfoContext(ctx, "what was learned for scaling a pool does not fit the new "+
				"configuration; it is measured anew", "pool", learned.Pool, "reason", err)
		}
	}
	d.cfg, d.fleet = cfg, next
	for _, l := range d.leaving {
		l.limit = cfg.Down.Drain
	}
	return nil
}
