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

const (
	// poolsKind is the kind of what a process publishes of the pools that it leads.
	poolsKind = "pools"
	// scalingKind is that of what was decided about replicas.
	scalingKind = "scaling"
	// storedPools begins the names of what is published in the store. No pool has such a name.
	storedPools = "*pools/"
)

const (
	// publishEvery is how often a process publishes its pools.
	publishEvery = time.Second
	// storeEvery is how often it does in the store, for processes without Redis.
	storeEvery = 5 * time.Second
	// forgetEvery is how often those in the store are removed that are as old: their processes have
	// ended, and the next ones may have other names.
	forgetEvery = 10 * time.Minute
)

// report is what a process publishes of the pools that it leads.
type report struct {
	Node    string
	Epoch   int64
	Console json.RawMessage
	Catalog dispatch.Catalog
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
			_ = a.sharing.Publish(ctx, poolsKind, live.Snapshot{Name: a.cfg.Node,
				Node: a.cfg.Node, Epoch: epoch, Data: data})
			if time.Since(stored) >= storeEvery && len(data) <= store.MostLearnedBytes {
				stored = time.Now()
				limited, cancel := context.WithTimeout(ctx, storeEvery)
				err = a.dispatcher.SaveStates(limited, []store.LearnedState{{
					Pool: storedPools + a.cfg.Node, Kind: poolsKind, Data: data}})
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
	return json.Marshal(report{a.cfg.Node, epoch, shown, a.dispatcher.Catalog()})
}

// forgetStored removes from the store what processes have published that have ended.
func (a *App) forgetStored(ctx context.Context) error {
	states, err := a.dispatcher.States(ctx, poolsKind)
	for _, state := range states {
		if err == nil && state.Age >= forgetEvery {
			_, err = a.store.Records.ForgetLearned(ctx, state.Pool)
		}
	}
	return err
}

// storedPools returns what processes have published in the store.
func (a *App) storedPools(ctx context.Context) (all []live.Snapshot, err error) {
	states, err := a.dispatcher.States(ctx, poolsKind)
	for _, state := range states {
		var of report
		if state.Age < live.KeepSnapshots && json.Unmarshal(state.Data, &of) == nil {
			all = append(all, live.Snapshot{Name: of.Node, Node: of.Node, Epoch: of.Epoch,
				Data: state.Data, Age: max(0, state.Age)})
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

// scalingDispatcher is the dispatcher as scaling uses it: what is decided is published for other
// processes besides being kept in the store.
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

// SaveStates implements driver.Dispatcher.
func (s scalingDispatcher) SaveStates(ctx context.Context, states []store.LearnedState) error {
	if err := s.Dispatcher.SaveStates(ctx, states); err != nil {
		return err
	}
	for _, state := range states {
		if state.Kind != driver.SnapshotKind {
			continue
		}
		epoch, _ := s.app.dispatcher.Epoch()
		_ = s.app.sharing.Publish(ctx, scalingKind, live.Snapshot{Name: state.Pool,
			Node: s.app.cfg.Node, Epoch: epoch, Data: state.Data})
		s.app.sharing.Emit(live.Scaling)
	}
	return nil
}

// States implements driver.Dispatcher.
func (s scalingDispatcher) States(
	ctx context.Context, kind string,
) (states []store.LearnedState, err error) {
	if kind == driver.SnapshotKind && s.app.sharing.away != nil {
		published, err := s.app.sharing.Snapshots.Snapshots(ctx, scalingKind)
		for _, p := range published {
			states = append(states, store.LearnedState{Pool: p.Name, Kind: kind, Data: p.Data,
				Age: p.Age})
		}
		if err == nil && len(states) > 0 {
			return states, nil
		}
	}
	return s.Dispatcher.States(ctx, kind)
}
