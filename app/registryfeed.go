package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/registry/file"
	registrykube "github.com/tidefill/tidefill/registry/kube"
)

const (
	// registryEvery is the time between two looks at the documents.
	registryEvery = time.Second
	// registryWait is the longest time for which a start waits for the API server's first answer,
	// so that batches that are created right after it find their templates.
	registryWait = 5 * time.Second
)

// documents is a source of templates, profiles and use cases.
type documents interface {
	// Read returns the documents if they have changed since the last call, and reports that. The
	// error says why they may be old.
	Read() (all []registry.Document, changed bool, err error)
}

// itemSource is a source with what was read of it last.
type itemSource struct {
	documents
	name string
	last []registry.Document
	read bool  // at least once
	err  error // of the last try
}

// registryFeed follows the documents of templates, profiles and use cases.
type registryFeed struct {
	log        *slog.Logger
	sources    []*itemSource // only look uses them
	configMaps []*kube.ConfigMap

	mu      sync.Mutex
	current *registry.Catalogs
	unread  error // why the sources are not known yet; nil: they are
	states  []console.RegistrySource
	// seen is the time of the last look at which all sources could be read; zero: never.
	seen time.Time
}

// newRegistryFeed returns the feed of a configuration. The directory comes first.
func newRegistryFeed(cfg config.Config, log *slog.Logger) (f *registryFeed, err error) {
	f = &registryFeed{log: log, current: &registry.Catalogs{}}
	if dir := cfg.Registry.Dir; dir != "" {
		f.sources = append(f.sources, &itemSource{documents: file.New(dir), name: dir})
	}
	in := cfg.Registry.Kubernetes
	if !in.Enabled() {
		return f, nil
	}
	names := in.Names()
	f.configMaps, err = kube.NewConfigMaps(cfg.Kubernetes,
		kube.ConfigMaps{Namespace: in.Namespace, Names: names})
	if err != nil {
		return nil, fmt.Errorf("find templates, profiles and use cases: %w", err)
	}
	for i, m := range f.configMaps {
		s := registrykube.New(in, names[i], m)
		f.sources = append(f.sources, &itemSource{documents: s, name: s.String()})
	}
	return f, nil
}

// start follows the ConfigMaps until end is called, and reads all sources once. It waits for the
// first answer of the API server, but not for long, and not after stop is closed.
func (f *registryFeed) start(stop <-chan struct{}) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	for _, m := range f.configMaps {
		following.Go(func() { m.Run(ctx) })
	}
	waiting, enough := context.WithTimeout(ctx, registryWait)
	defer enough()
	for _, m := range f.configMaps {
		select {
		case <-m.Listed():
		case <-waiting.Done():
		case <-stop:
		}
	}
	f.look(ctx, time.Now())
	return func() error {
		cancel()
		following.Wait()
		return nil
	}
}

// now returns what is in force. The error says why that is not known yet.
func (f *registryFeed) now() (*registry.Catalogs, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current, f.unread
}

// sourcesNow returns the sources, with what keeps them from being read.
func (f *registryFeed) sourcesNow() []console.RegistrySource {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states
}

// run follows the sources until ctx ends.
func (f *registryFeed) run(ctx context.Context) {
	if len(f.sources) == 0 {
		return
	}
	tick := time.NewTicker(registryEvery)
	defer tick.Stop()
	for {
		f.look(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads what has changed.
func (f *registryFeed) look(ctx context.Context, now time.Time) {
	var all []registry.Document
	var unread error
	var states []console.RegistrySource
	seen, changed := now, false
	for _, s := range f.sources {
		fresh, other, err := s.Read()
		if err != nil && (s.err == nil || s.err.Error() != err.Error()) {
			f.log.WarnContext(ctx, "could not read the registry; what was read last "+
				"stays in force", "source", s.name, "error", err)
		}
		s.err = err
		if other { // also before an error
			s.last, s.read, changed = fresh, true, true
		}
		if err != nil {
			seen = f.seen // only look changes it
			if !s.read {
				unread = errors.Join(unread, err)
			}
		}
		states = append(states, console.RegistrySource{Name: s.name, Err: err})
		all = append(all, s.last...)
	}
	before, _ := f.now()
	next := before
	if changed {
		next = before.Next(now, all)
		f.report(ctx, before, next)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current, f.unread, f.states, f.seen = next, unread, states, seen
}

// report logs what is refused now and was not before, and the other way round.
func (f *registryFeed) report(ctx context.Context, before, next *registry.Catalogs) {
	known := map[registry.Refused]bool{}
	for _, r := range before.Refused() {
		known[r.Reason()] = true
	}
	fresh := 0
	for _, r := range next.Refused() {
		if known[r.Reason()] {
			continue
		}
		if fresh++; fresh <= maxRefused {
			f.log.WarnContext(ctx, "refused in the registry", "what", r.String(),
				"last_good_version_stays", r.Kept)
		}
	}
	if more := fresh - maxRefused; more > 0 {
		f.log.WarnContext(ctx, "more is refused in the registry; tidefill get lists it", "items",
			more)
	}
	if len(known) > 0 && len(next.Refused()) == 0 {
		f.log.InfoContext(ctx, "nothing in the registry is refused any more")
	}
	f.log.InfoContext(ctx, "registry read", "templates", len(next.Templates()),
		"profiles", len(next.Profiles()), "usecases", len(next.UseCases()),
		"refused", len(next.Refused()))
}

// maxRefused limits the refused items that /readyz names, and of one change the log.
const maxRefused = 20

// problems lists what is refused, and the sources that can't be read.
func (f *registryFeed) problems() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.states {
		if s.Err != nil {
			all = append(all, fmt.Sprintf("registry: %s: %v", s.Name, s.Err))
		}
	}
	refused := f.current.Refused()
	for _, r := range refused[:min(len(refused), maxRefused)] {
		all = append(all, "registry: "+r.String())
	}
	if more := len(refused) - maxRefused; more > 0 {
		all = append(all, humanize.Count(more, "more refused item")+" of the registry")
	}
	return all
}
