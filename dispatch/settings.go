package dispatch

import (
	"fmt"
	"maps"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/scheduler"
)

// Settings are the configuration of a dispatcher that Reconfigure replaces.
type Settings struct {
	Config
	Upstreams []Upstream
	Scheduler scheduler.Config
	// Registry has the pools, and the settings of flow control.
	Registry *registry.Snapshot
}

// settings are Settings with the runners that they make. They never change.
type settings struct {
	Settings
	runners map[string]*upstream.Runner // by name
	open    map[string]*upstream.Runner // those that are not reserved for batches that name them
	// removedModels are those that runners served which were removed, at most maxEarlier.
	removedModels map[string]bool
	replaced      chan struct{} // closed when others replace them
}

// newSettings validates settings and makes their runners. Those that are configured as in before
// stay the same.
func newSettings(
	of Settings, before *settings, with Store, queues upstream.Queues,
) (*settings, error) {
	if err := of.Config.Validate(); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	if err := of.checkDurability(with.Journals.Durability()); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	runners := of.ofRunners(queues)
	s := &settings{Settings: of, runners: map[string]*upstream.Runner{},
		open:          map[string]*upstream.Runner{},
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
		if known != nil && known.MadeFrom(u, runners) {
			s.runners[name] = known
			continue
		}
		made, err := upstream.New(runners, u, with.Spool)
		if err != nil {
			return nil, err
		}
		if known != nil && made.Continues(known) {
			made.Inherit(known)
		}
		s.runners[name] = made
	}
	for name, u := range s.runners {
		if !u.Reserved {
			s.open[name] = u
		}
	}
	for name, known := range before.open {
		if now := s.runners[name]; now == nil || now != known && !now.Continues(known) {
			s.remove(known)
		}
	}
	return s, plan.Validate(of.PlanConfig(), of.Scheduler, of.Registry.FlowControl())
}

// remove notes the models of a runner that is configured no more.
func (s *settings) remove(u *upstream.Runner) {
	if s.removedModels == nil {
		s.removedModels = map[string]bool{}
	}
	for _, m := range u.Served() {
		if len(s.removedModels) < upstream.MaxEarlier {
			s.removedModels[m] = true
		}
	}
}

// runner returns the runner that a planned runner stands for; nil: it is configured no more.
func (s *settings) runner(planned string) *upstream.Runner {
	return upstream.Lookup(s.runners, planned)
}

// Prepare makes what other settings need, and returns the function that applies them. Nothing
// changes before it is called. Config.Memory and the constants of the store and of chunks stay as
// they are until the next session. Lines in flight end as they began: on the runner that they were
// sent to, with the client that sent them. One goroutine at a time may use Prepare and what it
// returns.
func (d *Dispatcher) Prepare(to Settings) (apply func(), err error) {
	before := d.settings.Load()
	next, err := newSettings(to, before, d.deps.Store, d.deps.Queues)
	if err != nil {
		return nil, err
	}
	return func() {
		d.settings.Store(next)
		close(before.replaced)
		for name, u := range before.runners {
			if next.runners[name] != u {
				u.Close()
			}
		}
		d.metrics.prune(time.Now(), next.runners, before.runners)
	}, nil
}

// ofRunners returns the part of the configuration that runners are made from.
func (c Config) ofRunners(queues upstream.Queues) upstream.Config {
	embeddings := min(embeddingsFactor*c.MaxAnswerBytes, maxAnswer)
	return upstream.Config{MaxAnswerBytes: c.MaxAnswerBytes,
		MaxAnswerBytesOf: map[string]int64{"/v1/embeddings": embeddings},
		DialTimeout:      dialTimeout, ModelsEvery: c.ModelsEvery, MaxModels: maxModels,
		Queues: queues}
}
