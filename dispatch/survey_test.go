package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// survey waits until the dispatcher answers.
func survey(t *testing.T, d *dispatch.Dispatcher) (s plan.Survey) {
	t.Helper()
	until(t, "the dispatcher answers a survey", func() bool {
		var err error
		s, err = d.Survey(t.Context())
		if err != nil && !errors.Is(err, dispatch.ErrNotLoaded) {
			t.Fatal(err)
		}
		return err == nil
	})
	return s
}

// inPool puts all upstreams into a pool whose runners carry so many lines.
func inPool(pool string, lines int) func(*dispatch.Config, *dispatch.Deps) {
	return func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Registry = fixedLines(lines)
		for i := range deps.Upstreams {
			deps.Upstreams[i].Pool = pool
		}
	}
}

func TestSurveyShowsWork(t *testing.T) {
	w := newWorld(t)
	answer, open := gate()
	defer open()
	up := serve(t, answer, "m")
	d, stop := w.dispatcher("a", inPool("gpus", 4), up.URL)
	id := w.submit(chatLines(10, "m"), nil)
	var s plan.Survey
	until(t, "four lines are in flight", func() bool {
		s = survey(t, d)
		return len(s.Pools) == 1 && s.Pools[0].InFlight == 4
	})
	if len(s.Jobs) != 1 || s.Jobs[0].Key != (plan.JobKey{Batch: id, Model: "m"}) ||
		s.Jobs[0].Tenant != "default" || s.Jobs[0].Lines != 10 || s.Jobs[0].InFlight != 4 ||
		s.Pools[0].Name != "gpus" || s.Pools[0].Harvested != 0 {
		t.Errorf("jobs %+v, pools %+v", s.Jobs, s.Pools)
	}
	if r := s.Runners; len(r) != 1 || r[0].InFlight != 4 || r[0].Pool != "gpus" ||
		r[0].Since.IsZero() || r[0].Open {
		t.Errorf("runners %+v", r)
	}
	open()
	w.awaitEnd(id)
	until(t, "no job is left", func() bool { s = survey(t, d); return len(s.Jobs) == 0 })
	if s.Pools[0].Harvested <= 0 || s.Runners[0].Served != (plan.Served{Requests: 10,
		PromptTokens: 70, OutputTokens: 30}) {
		t.Errorf("after the batch: %+v", s)
	}
	stop()
	if _, err := d.Survey(t.Context()); !errors.Is(err, dispatch.ErrNotLoaded) {
		t.Errorf("after the end the error is %v", err)
	}
}

// A survey is answered while lines drain, and does not wait longer than its context.
func TestSurveyIsAnsweredWhileDraining(t *testing.T) {
	w := newWorld(t)
	answer, open := gate()
	defer open()
	up := serve(t, answer, "m")
	d, stop := w.dispatcher("a", inPool("gpus", 2), up.URL)
	w.submit(chatLines(10, "m"), nil)
	until(t, "two lines are in flight", func() bool { return up.requests() == 2 })
	survey(t, d) // all batches are loaded: lines may be sent before
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	until(t, "the dispatcher drains", func() bool { return !d.Ready() })
	if s := survey(t, d); s.Jobs[0].InFlight != 2 {
		t.Errorf("while it drains: %+v", s.Jobs)
	}
	open()
	<-stopped
}

// unreadable is a store that can't read batches at first.
type unreadable struct {
	dispatch.Metadata
	failing atomic.Bool
}

func (u *unreadable) Batch(ctx context.Context, tenant, id string) (store.Batch, error) {
	if u.failing.Load() {
		return store.Batch{}, store.ErrUnavailable
	}
	return u.Metadata.Batch(ctx, tenant, id)
}

// Nobody is to take a process that has just started for one without work.
func TestNothingIsSurveyedBeforeAllBatchesAreKnown(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	w.submit(chatLines(10, "m"), nil)
	meta := &unreadable{Metadata: w.meta}
	meta.failing.Store(true)
	d, _ := w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Metadata = meta
	}, up.URL)
	until(t, "the dispatcher is ready", d.Ready)
	if s, err := d.Survey(t.Context()); !errors.Is(err, dispatch.ErrNotLoaded) {
		t.Errorf("before the batch could be read: %+v, %v", s, err)
	}
	meta.failing.Store(false)
	survey(t, d)
}

// fencedOnce is a store that takes the lease away once.
type fencedOnce struct {
	dispatch.Metadata
	next atomic.Bool
}

func (f *fencedOnce) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	if f.next.Swap(false) {
		return store.ErrFenced
	}
	return f.Metadata.Renew(ctx, o, ttl)
}

func TestDrainsAndClosedPoolsLastOverSessions(t *testing.T) {
	w := newWorld(t)
	ups := []*upstream{serve(t, nil, "m"), serve(t, nil, "m")}
	fenced := &fencedOnce{Metadata: w.meta}
	d, _ := w.dispatcher("a", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.LeaseTTL = 3 * time.Second
		deps.Metadata = fenced
		for i, name := range []string{"one", "two"} {
			deps.Upstreams[i].Name, deps.Upstreams[i].Pool = name, "gpus"
		}
	}, ups[0].URL, ups[1].URL)
	d.SetDraining([]string{"one"})
	w.awaitEnd(w.submit(chatLines(20, "m"), nil))
	if ups[0].requests() > 0 {
		t.Errorf("a draining runner got %d lines", ups[0].requests())
	}
	drains := func() (drains bool) {
		until(t, "both runners are up", func() bool {
			all := survey(t, d).Runners
			drains = slices.ContainsFunc(all, func(r plan.RunnerSurvey) bool {
				return r.ID == "one" && r.Draining
			})
			return len(all) == 2
		})
		return drains
	}
	if !drains() {
		t.Error("the runner is not shown as draining")
	}
	harvested := survey(t, d).Pools[0].Harvested
	fenced.next.Store(true)
	until(t, "the lease is lost", func() bool {
		_, err := d.Survey(t.Context())
		return err != nil
	})
	if !drains() {
		t.Error("the next session lets the runner take lines")
	}
	if after := survey(t, d).Pools[0].Harvested; harvested == 0 || after != harvested {
		t.Errorf("the next session counts %v of harvested work from %v on", after, harvested)
	}
	d.SetDraining(nil)
	d.SetClosed([]string{"gpus"})
	id := w.submit(chatLines(20, "m"), nil)
	until(t, "the batch waits for the pool", func() bool { return w.waitsFor(id, plan.Closed) })
	d.SetClosed(nil)
	w.awaitEnd(id)
	if ups[0].requests() == 0 {
		t.Error("a runner that drained before got no line")
	}
}

// An estimate is the demand that the batch has once it is submitted, and adds nothing.
func TestEstimateIsWhatABatchDemands(t *testing.T) {
	answer, open := gate()
	defer open()
	w := newWorld(t)
	d, _ := w.dispatcher("a", nil, serve(t, answer, "m", "n").URL)
	survey(t, d)
	var estimated []plan.Demand
	w.submit(append(chatLines(30, "m"), chatLines(50, "n")[30:]...), func(b *store.Batch) {
		b.MaxTokens = 50 * 1000
		var err error
		if estimated, err = d.Estimate(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if n := len(survey(t, d).Jobs); n > 0 {
			t.Errorf("%d jobs before the batch is submitted", n)
		}
	})
	var jobs []plan.Demand
	until(t, "the batch is known", func() bool {
		jobs = survey(t, d).Jobs
		return len(jobs) == 2
	})
	if estimated[0].Lines != 30 || estimated[0].Most <= estimated[0].Work {
		t.Errorf("estimated are %+v", estimated)
	}
	times := cmpopts.IgnoreTypes(time.Time{}) // the store rounds them
	flight := cmpopts.IgnoreFields(plan.Demand{}, "InFlight")
	if diff := cmp.Diff(estimated, jobs, times, flight); diff != "" {
		t.Errorf("-estimated +submitted\n%s", diff)
	}
}
