package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/registry/file"
)

// registryEvery is the time between two looks at the documents of templates and profiles.
const registryEvery = time.Second

// documents is a source of templates and profiles.
type documents interface {
	// Read returns the documents if they have changed since the last call, and reports that.
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

// registryFeed follows the documents of templates and profiles.
type registryFeed struct {
	log     *slog.Logger
	sources []*itemSource // only look uses them

	mu      sync.Mutex
	current *registry.Catalogs
	unread  error // why the sources are not known yet; nil: they are
	states  []console.RegistrySource
	// seen is the time of the last look at which all sources could be read; zero: never.
	seen time.Time
}

// newRegistryFeed returns the feed of a configuration.
func newRegistryFeed(cfg config.RegistryConfig, log *slog.Logger) *registryFeed {
	f := &registryFeed{log: log, current: &registry.Catalogs{}}
	if cfg.Dir != "" {
		f.sources = append(f.sources, &itemSource{documents: file.New(cfg.Dir), name: cfg.Dir})
	}
	return f
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
			f.log.WarnContext(ctx, "could not read templates and profiles; what was read last "+
				"stays in force", "source", s.name, "error", err)
		}
		if s.err = err; err != nil {
			seen = f.seen // only look changes it
			if !s.read {
				unread = errors.Join(unread, err)
			}
		} else if other {
			s.last, s.read, changed = fresh, true, true
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
	known := before.Refused()
	for _, r := range next.Refused() {
		if !slices.Contains(known, r) {
			f.log.WarnContext(ctx, "refused in the registry", "what", r.String(),
				"last_good_version_stays", r.Kept)
		}
	}
	if len(known) > 0 && len(next.Refused()) == 0 {
		f.log.InfoContext(ctx, "nothing in the registry is refused any more")
	}
	f.log.InfoContext(ctx, "registry read", "templates", len(next.Templates()),
		"profiles", len(next.Profiles()), "refused", len(next.Refused()))
}

// maxRefused limits the refused items that /readyz names.
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
