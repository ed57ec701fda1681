package dispatch

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// Settings are the configuration of a dispatcher that Reconfigure replaces.
type Settings struct {
	Config
	Upstreams []Upstream
	Scheduler scheduler.Config
	Flow      flowcontrol.Config
}

// settings are Settings with the runners that they make. They never change.
type settings struct {
	Settings
	runners map[string]*runner // by name
	// removedModels are those that runners served which were removed, at most maxEarlier.
	removedModels map[string]bool
	replaced      chan struct{} // closed when others replace them
}

// newSettings validates settings and makes their runners. Those that are configured as in before
// stay the same.
func newSettings(of Settings, before *settings, with Store) (*settings, error) {
	if err := of.Config.Validate(); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	if err := of.checkDurability(with.Journals.Durability()); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	s := &settings{Settings: of, runners: map[string]*runner{},
		removedModels: maps.Clone(before.removedModels), replaced: make(chan struct{})}
	for _, u := range of.Upstreams {
		name, err := u.Runner()
		if err != nil {
			return nil, err
		}
		if _, taken := s.runners[name]; taken {
			return nil, fmt.Errorf("upstreams: two are named %q; give each a name of its own", name)
		}
		known := before.runners[name]
		if known != nil && known.madeFrom(u, of.Config) {
			s.runners[name] = known
			continue
		}
		made, err := newRunner(of.Config, u, with.Spool)
		if err != nil {
			return nil, err
		}
		if known != nil && made.continues(known) {
			made.inherit(known)
		}
		s.runners[name] = made
	}
	for name, known := range before.runners {
		if now := s.runners[name]; now == nil || now != known && !now.continues(known) {
			s.remove(known)
		}
	}
	return s, plan.Validate(of.PlanConfig(), of.Scheduler, of.Flow)
}

// remove notes the models of a runner that is configured no more.
func (s *settings) remove(u *runner) {
	if s.removedModels == nil {
		s.removedModels = map[string]bool{}
	}
	for _, m := range u.served() {
		if len(s.removedModels) < maxEarlier {
			s.removedModels[m] = true
		}
	}
}

// runner returns the runner that a planned runner stands for; nil: it is configured no more.
func (s *settings) runner(planned string) *runner { return runnerOf(s.runners, planned) }

// Prepare makes what other settings need, and returns the function that applies them. Nothing
// changes before it is called. Config.Memory and the constants of the store and of chunks stay as
// they are until the next session. Lines in flight end as they began: on the runner that they were
// sent to, with the client that sent them. One goroutine at a time may use Prepare and what it
// returns.
func (d *Dispatcher) Prepare(to Settings) (apply func(), err error) {
	before := d.settings.Load()
	next, err := newSettings(to, before, d.deps.Store)
	if err != nil {
		return nil, err
	}
	return func() {
		d.settings.Store(next)
		close(before.replaced)
		for name, u := range before.runners {
			if next.runners[name] != u {
				u.client.Close()
			}
		}
		d.metrics.prune(time.Now(), next.runners, before.runners)
	}, nil
}

// runnerConfig is the part of Config that runners are made from.
type runnerConfig struct {
	maxAnswer              int64
	maxAnswerOf            map[string]int64
	dialTimeout, askModels int64
	maxModels              int
}

func (c Config) ofRunners() runnerConfig {
	return runnerConfig{c.MaxAnswerBytes, c.MaxAnswerBytesOf, int64(c.DialTimeout),
		int64(c.ModelsEvery), c.MaxModels}
}

// madeFrom reports whether the runner is the one that this configuration makes. Where its metrics
// are is of no interest here.
func (u *runner) madeFrom(from Upstream, cfg Config) bool {
	own := u.Upstream
	own.Metrics, from.Metrics = "", ""
	return reflect.DeepEqual(own, from) && reflect.DeepEqual(u.made, cfg.ofRunners())
}

// continues reports whether the runner is the same server as an earlier one, with the same models
// configured. It is only reached in another way.
func (u *runner) continues(earlier *runner) bool {
	return runnerName(u) == runnerName(earlier) && reflect.DeepEqual(u.Models, earlier.Models)
}

// inherit takes over what is known of the models and the engines of an earlier runner that this one
// continues.
func (u *runner) inherit(earlier *runner) {
	earlier.mu.Lock()
	defer earlier.mu.Unlock()
	u.models, u.since, u.earlier = earlier.models, maps.Clone(earlier.since),
		maps.Clone(earlier.earlier)
	u.silent, u.cut, u.unlisted = earlier.silent, earlier.cut, earlier.unlisted
	u.answered, u.logged = earlier.answered, earlier.logged
	u.notLoaded = earlier.notLoaded
	u.state, u.stateUntil = earlier.state, earlier.stateUntil
	u.engines.inherit(&earlier.engines)
}

// served returns the models that the runner serves or has served.
func (u *runner) served() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := append([]string(nil), u.models...)
	for m := range u.earlier {
		all = append(all, m)
	}
	return all
}
