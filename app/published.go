package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/autoscale/driver"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// poolsKind is the kind of what a process publishes of the pools that it leads.
const poolsKind = "pools"

const (
	// publishEvery is the interval at which a process publishes its pools.
	publishEvery = time.Second
	// storeEvery is the interval at which it publishes them in the store, for processes without
	// Redis.
	storeEvery = 5 * time.Second
	// forgetEvery is the age from which on those in the store are removed, and the interval of
	// that. Their processes have ended, and the next ones may have other names.
	forgetEvery = 10 * time.Minute
)

// report is what a process publishes of the pools that it leads.
type report struct {
	Node    string
	Epoch   int64
	Console json.RawMessage
	Catalog dispatch.Catalog
	// URL is where it takes interactive requests for the models that it Leads; empty: nowhere.
	URL   string
	Leads []string
}

// publish publishes what this process leads, until ctx ends.
func (a *App) publish(ctx context.Context) error {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	var stored, forgotten time.Time
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		epoch, leads := a.dispatcher.Epoch()
		if !leads {
			continue
		}
		data, err := a.report(epoch)
		if err == nil {
			// If Redis is away, it is as if nobody had asked.
			snapshot := live.Snapshot{Name: a.cfg.Node, Node: a.cfg.Node, Epoch: epoch, Data: data}
			_ = a.sharing.Publish(ctx, poolsKind, snapshot)
			if time.Since(stored) >= storeEvery && len(data) <= store.MaxLearnedBytes {
				stored = time.Now()
				limited, cancel := context.WithTimeout(ctx, storeEvery)
				err = a.stored().Publish(limited, poolsKind, snapshot)
				if err == nil && time.Since(forgotten) >= forgetEvery {
					forgotten = time.Now()
					err = a.forgetStored(limited)
				}
				cancel()
			}
		}
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				a.log.WarnContext(ctx, "could not publish the state of the pools, trying again; "+
					"other processes show an older one", "error", err)
			}
		}
	}
}

func (a *App) report(epoch int64) ([]byte, error) {
	shown, err := a.console.Published()
	if err != nil {
		return nil, err
	}
	return json.Marshal(report{a.cfg.Node, epoch, shown, a.dispatcher.Catalog(), a.inlineURL(),
		a.ledModels()})
}

// stored has the snapshots that are in the store.
func (a *App) stored() live.Stored { return live.Stored{States: a.dispatcher} }

// forgetStored removes from the store what processes have published that have ended.
func (a *App) forgetStored(ctx context.Context) error {
	all, err := a.stored().Snapshots(ctx, poolsKind)
	for _, s := range all {
		if err == nil && s.Age >= forgetEvery {
			err = a.stored().Forget(ctx, s, a.store.Records)
		}
	}
	return err
}

// storedPools returns what processes have published in the store.
func (a *App) storedPools(ctx context.Context) (all []live.Snapshot, err error) {
	stored, err := a.stored().Snapshots(ctx, poolsKind)
	for _, s := range stored {
		var of report
		if s.Age < live.KeepSnapshots && json.Unmarshal(s.Data, &of) == nil {
			s.Name, s.Node, s.Epoch = of.Node, of.Node, of.Epoch
			all = append(all, s)
		}
	}
	return all, err
}

// merge adds snapshots that are newer than those known of the same node, and drops those that are
// too old.
func (p *peers) merge(now time.Time, own string, read []live.Snapshot) {
	for _, s := range read {
		if s.Name == own {
			continue
		}
		at := now.Add(-s.Age)
		i := slices.IndexFunc(p.known, func(k peer) bool { return k.Name == s.Name })
		switch {
		case i < 0:
			p.known = append(p.known, peer{s, at})
		case at.After(p.known[i].at):
			p.known[i] = peer{s, at}
		}
	}
	p.known = slices.DeleteFunc(p.known, func(k peer) bool {
		return now.Sub(k.at) >= live.KeepSnapshots
	})
	slices.SortFunc(p.known, func(a, b peer) int {
		return cmp.Or(cmp.Compare(b.Epoch, a.Epoch), strings.Compare(a.Name, b.Name))
	})
}

// consolePeers returns what the console shows of other processes.
func (a *App) consolePeers(ctx context.Context) (all []console.Peer) {
	for _, p := range a.others(ctx) {
		var of report
		if json.Unmarshal(p.Data, &of) == nil {
			all = append(all, console.Peer{Node: of.Node, Age: p.Age, Data: of.Console,
				NotLed: a.notLedBy(of.Node)})
		}
	}
	return all
}

// catalogs returns which models other processes serve.
func (a *App) catalogs(ctx context.Context) (all []dispatch.Catalog) {
	for _, p := range a.others(ctx) {
		var of report
		if json.Unmarshal(p.Data, &of) == nil {
			all = append(all, of.Catalog)
		}
	}
	return all
}

// scalingDispatcher is the dispatcher as scaling uses it.
type scalingDispatcher struct {
	driver.Dispatcher
	app *App
}

// LeadScaling implements driver.Dispatcher. Who does not dispatch does not know enough to decide.
func (s scalingDispatcher) LeadScaling(ctx context.Context) (leads bool, err error) {
	if s.app.dispatches() {
		leads, err = s.Dispatcher.LeadScaling(ctx)
	}
	s.app.sharing.decides.Store(leads)
	return leads, err
}

// decisions are what was decided about replicas: in the store, and in what processes share.
type decisions struct{ app *App }

// Publish implements live.Snapshots.
func (d decisions) Publish(ctx context.Context, kind string, s live.Snapshot) error {
	if err := d.app.stored().Publish(ctx, kind, s); err != nil {
		return err
	}
	s.Node = d.app.cfg.Node
	s.Epoch, _ = d.app.dispatcher.Epoch()
	_ = d.app.sharing.Publish(ctx, kind, s)
	d.app.sharing.Emit(live.Scaling)
	return nil
}

// Snapshots implements live.Snapshots.
func (d decisions) Snapshots(ctx context.Context, kind string) ([]live.Snapshot, error) {
	if d.app.sharing.away != nil {
		shared, err := d.app.sharing.Snapshots.Snapshots(ctx, kind)
		if err == nil && len(shared) > 0 {
			return shared, nil
		}
	}
	return d.app.stored().Snapshots(ctx, kind)
}
