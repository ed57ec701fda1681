package autoscale

import (
	"fmt"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

// noon is the start of most tests.
var noon = time.Date(2000, time.January, 2, 12, 0, 0, 0, time.UTC)

// batchPool returns a pool for batches alone with 70B models on A100. Its replicas do about 570 ms
// of work per second each.
func batchPool(most int) PoolState {
	return PoolState{
		Pool: registry.Pool{Name: "batch", Max: most},
		SLO:  flowcontrol.DefaultConfig().SLO.WithUsual(),
		Engine: flowcontrol.Engine{
			CostModel: costmodel.Model{C0: 33.0, C1: 0.1120, C2: 0.0714, N0: 112, KV: 5.25e-5,
				P1: 0.0052, P2: 5.14e-6},
			KVTokens: 440_000, MaxSeqs: 256, MaxBatchedTokens: 512,
		},
		Lines: Lines{Mix: costmodel.Mix{Prompt: 950, Output: 255}, Work: 220},
	}
}

// chatPool returns a pool with chat traffic too, at a rate that needs the given number of replicas,
// the band of the forecast included.
func chatPool(most int, needed float64) PoolState {
	p := batchPool(most)
	p.Name = "chat"
	p.Interactive = Interactive{Served: true, PerReplica: 1, Mix: costmodel.Mix{Prompt: 1155,
		Output: 211}}
	p.Interactive.Rate = needed / (1 + DefaultConfig().Forecast.Band)
	return p
}

// with adds ready replicas to a pool.
func with(p PoolState, ready int) PoolState {
	for i := range ready {
		p.Replicas = append(p.Replicas, Replica{ID: fmt.Sprintf("%s-%02d", p.Name, i), Phase: Ready,
			Since: noon.Add(-time.Hour)})
	}
	return p
}

// hours returns the work that a replica of batchPool without traffic is expected to do in a number
// of hours.
func hours(h float64) float64 {
	p := batchPool(1)
	cfg := DefaultConfig()
	return newReplica(&p, &cfg.Harvest, cfg.Forecast.Burst).rate(0) * cfg.Harvest.Share * h * 3600
}

// job returns a job that is due a time after noon and has the given hours of one replica's work.
func job(id string, due time.Duration, work float64) plan.Demand {
	return plan.Demand{Key: batch(id), Created: noon, Deadline: noon.Add(due),
		Lines: int(hours(work)/220) + 1, Work: hours(work), Least: hours(work), Answered: 200}
}

func build(t faulter, change ...func(*Config)) Controller {
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// faulter is the common part of testing.T and rapid.T.
type faulter interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// simulation runs a controller from noon on, for pools whose replicas need the time cold to start
// and are removed at once. Work is done at the expected rate, the earliest deadline first.
type simulation struct {
	t          faulter
	late       bool // deadlines may be missed
	controller Controller
	now        time.Time
	state      State
	cold       time.Duration
	born       int
	last       Decision
	onStep     func(d Decision)
}

func (l *simulation) run(until time.Time) {
	if l.now.IsZero() {
		l.now = noon
	}
	const step = 30 * time.Second
	for ; l.now.Before(until); l.now = l.now.Add(step) {
		for i := range l.state.Pools {
			for k := range l.state.Pools[i].Replicas {
				r := &l.state.Pools[i].Replicas[k]
				if r.Phase == Starting && l.now.Sub(r.Since) >= l.cold {
					r.Phase, r.Since = Ready, l.now
				}
				r.Progress = 0
				if r.Phase == Ready && len(l.state.Jobs) > 0 {
					r.Progress = 1
				}
			}
		}
		l.last = l.controller.Step(l.now, l.state)
		if l.onStep != nil {
			l.onStep(l.last)
		}
		for i := range l.state.Pools {
			l.follow(&l.state.Pools[i], l.last.Pools[i])
			l.harvest(&l.state.Pools[i], step)
		}
	}
}

func (l *simulation) follow(p *PoolState, w Wanted) {
	for _, id := range w.Drain {
		for k, r := range p.Replicas {
			if r.ID == id {
				p.Replicas = append(p.Replicas[:k:k], p.Replicas[k+1:]...)
				break
			}
		}
	}
	for len(p.Replicas) < w.Replicas {
		l.born++
		p.Replicas = append(p.Replicas, Replica{ID: fmt.Sprintf("new-%03d", l.born),
			Phase: Starting, Since: l.now})
	}
	if got := active(p); got != w.Replicas {
		l.t.Fatalf("%s: %s has %d replicas, wanted %d", l.now, p.Name, got, w.Replicas)
	}
}

func (l *simulation) harvest(p *PoolState, step time.Duration) {
	ready := 0
	for _, r := range p.Replicas {
		if r.Phase == Ready {
			ready++
		}
	}
	if ready == 0 {
		return
	}
	cfg := DefaultConfig()
	r := newReplica(p, &cfg.Harvest, cfg.Forecast.Burst)
	can := float64(ready) * r.rate(p.Interactive.Rate/float64(ready)) * cfg.Harvest.Share *
		step.Seconds()
	for can > 0 {
		next := -1
		for i, j := range l.state.Jobs {
			if j.Work > 0 && (next < 0 || j.Deadline.Before(l.state.Jobs[next].Deadline)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		j := &l.state.Jobs[next]
		did := min(can, j.Work)
		can -= did
		j.Least = max(0, j.Least-did)
		p.Harvested += did
		if j.Work -= did; j.Work < 1e-6 {
			if l.now.After(j.Deadline) && !l.late {
				l.t.Errorf("%s is done at %s, %s after its deadline", j.Key, l.now, l.now.Sub(
					j.Deadline))
			}
			l.state.Jobs = append(l.state.Jobs[:next:next], l.state.Jobs[next+1:]...)
		}
	}
}

type jobs = []plan.Demand

// batch returns the key of a job of any model.
func batch(id string) plan.JobKey { return plan.JobKey{Batch: id} }
