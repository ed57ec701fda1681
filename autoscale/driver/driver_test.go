package driver_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/driver"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// shared is the store of several processes, as far as scaling uses it.
type shared struct {
	mu     sync.Mutex
	leader *process
	kept   map[string]store.LearnedState
}

// process stands for the dispatcher of a process.
type process struct {
	*shared

	mu        sync.Mutex
	survey    plan.Survey
	err       error
	draining  []string
	forecasts map[string]store.Forecast
}

func (p *process) Survey(context.Context) (plan.Survey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.survey
	s.At = time.Now()
	return s, p.err
}

func (p *process) SetDraining(runners []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = runners
}

func (p *process) SetClosed([]string) {}

func (p *process) SetForecasts(by map[string]store.Forecast) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forecasts = by
}

// forecastOf returns the forecast of a batch.
func (p *process) forecastOf(batch string) store.Forecast {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forecasts[batch]
}

// drained lists the runners that get no new lines.
func (p *process) drained() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining
}

func (p *process) LeadScaling(context.Context) (bool, error) {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	if p.shared.leader == nil {
		p.shared.leader = p
	}
	return p.shared.leader == p, nil
}

func (p *process) SaveStates(_ context.Context, states []store.LearnedState) error {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	for _, s := range states {
		p.kept[s.Pool+"/"+s.Kind] = s
	}
	return nil
}

func (p *process) States(_ context.Context, kind string) (states []store.LearnedState, err error) {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	for _, s := range p.kept {
		if s.Kind == kind {
			states = append(states, s)
		}
	}
	return states, nil
}

// start runs a driver until the test ends.
func start(t *testing.T, p *process) (d *driver.Driver, stop func()) {
	t.Helper()
	d, err := driver.New(autoscale.DefaultConfig(), driver.Deps{
		Pools: []registry.Pool{{Name: "night", Models: []string{"m"}, Max: 8,
			Role: registry.RoleBatch}},
		Dispatcher: p, Snapshots: live.Stored{States: p},
		Flow: func(registry.Pool) flowcontrol.Config {
			c := flowcontrol.DefaultConfig()
			c.Engine.CostModel = costmodel.Model{C0: 33, C1: 0.112, KV: 5.25e-5, P1: 0.0052}
			return c
		},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return d, stop
}

// await waits until the snapshot of the pool is as wanted.
func await(t *testing.T, d *driver.Driver, is func(p *autoscale.PoolSnapshot) bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		changed := d.Changed()
		s, err := d.Snapshot()
		if err == nil && is(s.Pool("night")) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("got %+v, %v", s, err)
		}
	}
}

// demand is a job that needs about so many replicas for an hour.
func demand(batch string, replicas float64) plan.Demand {
	const lineWork, replicaRate = 200.0, 500.0 // ms, and ms a second
	work := replicas * 3600 * replicaRate
	return plan.Demand{Key: plan.JobKey{Batch: batch, Model: "m"}, Created: time.Now(),
		Deadline: time.Now().Add(time.Hour), Lines: int(work / lineWork), Work: work, Least: work,
		Prompt: 900, Output: 250, Answered: 500}
}

func newProcess(of *shared) *process { return &process{shared: of} }

func newShared() *shared { return &shared{kept: map[string]store.LearnedState{}} }

// Nothing is made up before the work is known; a deadline then wants replicas, and its batch has a
// verdict.
func TestDeadlinesWantReplicas(t *testing.T) {
	p := newProcess(newShared())
	p.err = errors.New("the batches of the store are not loaded")
	d, _ := start(t, p)
	if s, err := d.Snapshot(); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("got %+v, %v before the work is known", s, err)
	}
	p.mu.Lock()
	p.err, p.survey.Jobs = nil, []plan.Demand{demand("batch_1", 3), demand("batch_2", 100)}
	p.mu.Unlock()
	d.Poke()
	await(t, d, func(s *autoscale.PoolSnapshot) bool {
		return s.Replicas >= 1 && s.Active() && s.Lines > 1000
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, two := p.forecasts["batch_1"], p.forecasts["batch_2"]; one.Verdict == "" ||
		two.Verdict != store.VerdictInfeasible {
		t.Errorf("the verdicts are %+v and %+v", one, two)
	}
}

// A ScaledObject bounds the replicas, within the configured maximum.
func TestDeclaredBounds(t *testing.T) {
	p := newProcess(newShared())
	d, _ := start(t, p)
	least, most := 2, 100
	d.Declare("night", autoscale.Declaration{Min: &least, Max: &most})
	await(t, d, func(s *autoscale.PoolSnapshot) bool {
		return s.Replicas == 2 && s.Min == 2 && s.Max == 8
	})
}

// Another configuration applies from the next decision on.
func TestAnotherConfiguration(t *testing.T) {
	p := newProcess(newShared())
	p.survey.Jobs = []plan.Demand{demand("batch_1", 5)}
	d, _ := start(t, p)
	await(t, d, func(s *autoscale.PoolSnapshot) bool { return s.Replicas > 2 })
	pool := registry.Pool{Name: "night", Models: []string{"m"}, Max: 7,
		Role: registry.RoleBatch}
	d.Configure(autoscale.DefaultConfig(), []registry.Pool{pool})
	await(t, d, func(s *autoscale.PoolSnapshot) bool { return s.Max == 7 && s.Replicas > 2 })
	cfg := autoscale.DefaultConfig()
	cfg.Policy = "static"
	pool.Max = 8
	d.Configure(cfg, []registry.Pool{pool})
	await(t, d, func(s *autoscale.PoolSnapshot) bool { return s.Max == 8 && s.Replicas == 8 })
}

// Of two processes one decides; the other says the same, and takes over what was learned.
func TestOneProcessDecides(t *testing.T) {
	of := newShared()
	first, second := newProcess(of), newProcess(of)
	first.survey.Jobs = []plan.Demand{demand("batch_1", 5)}
	of.leader = first
	a, stop := start(t, first)
	await(t, a, func(s *autoscale.PoolSnapshot) bool { return s.Replicas > 0 })
	b, _ := start(t, second)
	decided, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	await(t, b, func(s *autoscale.PoolSnapshot) bool {
		return s.Replicas == decided.Pool("night").Replicas
	})
	if second.forecasts != nil {
		t.Error("the process that does not decide has set forecasts")
	}
	stop()
	of.mu.Lock()
	of.leader = nil
	if _, saved := of.kept["night/scaling"]; !saved {
		t.Error("what was learned was not saved")
	}
	of.mu.Unlock()
	second.mu.Lock()
	second.survey.Jobs = []plan.Demand{demand("batch_1", 5), demand("batch_3", 1)}
	second.mu.Unlock()
	b.Poke()
	await(t, b, func(s *autoscale.PoolSnapshot) bool { return s.Lines > 0 && s.Replicas > 0 })
	deadline := time.Now().Add(20 * time.Second)
	for {
		second.mu.Lock()
		n := len(second.forecasts)
		second.mu.Unlock()
		if n == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second process has %d forecasts after it took over", n)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A decision that fails again and again, as on a full disk, is logged once, and again after one
// that did not fail.
func TestRepeatedFailuresAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(newShared())
		var log bytes.Buffer
		d, err := driver.New(autoscale.DefaultConfig(), driver.Deps{Dispatcher: p,
			Snapshots: live.Stored{States: p}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		for i, fails := range []error{store.ErrNoSpace, nil, store.ErrNoSpace} {
			p.mu.Lock()
			p.err = fails
			p.mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
			want := []int{1, 1, 2}[i]
			if got := strings.Count(log.String(), "could not decide"); got != want {
				t.Errorf("after %d minutes the failure is logged %d times, want %d:\n%s", i+1, got,
					want, &log)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
