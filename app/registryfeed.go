package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
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
	// name is empty for a source that has a String, which may change.
	name string
	// apart is a source that batches don't depend on.
	apart bool
	last  []registry.Document
	read  bool  // at least once
	err   error // of the last try
}

// registryFeed follows the documents of templates, profiles and use cases.
type registryFeed struct {
	log     *slog.Logger
	sources []*itemSource // only look uses them
	// followed are what is kept current by goroutines of their own.
	followed []followed
	statuses []statusTarget
	// changed has a value when there are other pools. Its capacity is 1.
	changed    chan struct{}
	writeAfter time.Time // only run uses it

	mu      sync.Mutex
	current *registry.Catalogs
	unread  error // why the sources are not known yet; nil: they are
	states  []console.RegistrySource
	// unwritten is why statuses could not be written last; empty: they were.
	unwritten string
	// seen is the time of the last look at which all sources could be read; zero: never.
	seen time.Time
}

// followed is a copy of objects of Kubernetes.
type followed interface {
	Run(ctx context.Context)
	// Listed returns a channel that is closed when it is known what there is.
	Listed() <-chan struct{}
}

// String returns where it reads.
func (s *itemSource) String() string {
	if of, has := s.documents.(fmt.Stringer); has && s.name == "" {
		return of.String()
	}
	return s.name
}

// newRegistryFeed returns the feed of a configuration. The directory comes first.
func newRegistryFeed(cfg config.Config, log *slog.Logger) (f *registryFeed, err error) {
	f = &registryFeed{log: log, current: &registry.Catalogs{}, changed: make(chan struct{}, 1)}
	if dir := cfg.Registry.Dir; dir != "" {
		f.sources = append(f.sources, &itemSource{documents: file.New(dir), name: dir})
	}
	in := cfg.Registry.Kubernetes
	if in.Enabled() {
		names := in.Names()
		configMaps, err := kube.NewConfigMaps(cfg.Kubernetes,
			kube.ConfigMaps{Namespace: in.Namespace, Names: names})
		if err != nil {
			return nil, fmt.Errorf("find templates and profiles: %w", err)
		}
		for i, m := range configMaps {
			f.followed = append(f.followed, m)
			f.sources = append(f.sources,
				&itemSource{documents: registrykube.New(in, names[i], m)})
		}
	}
	if in.UseCases || in.Pools {
		return f, f.followObjects(cfg)
	}
	return f, nil
}

// followObjects adds the objects of Kubernetes that are documents.
func (f *registryFeed) followObjects(cfg config.Config) error {
	in := cfg.Registry.Kubernetes
	useCases, objectives, pools, err := kube.NewObjects(cfg.Kubernetes,
		kube.Documents{Namespace: in.Namespace, UseCases: in.UseCases, Pools: in.Pools})
	if err != nil {
		return err
	}
	for _, of := range []struct {
		kind    registry.Kind
		objects *kube.Objects
	}{{registry.UseCases, useCases}, {registry.Objectives, objectives}, {registry.Pools, pools}} {
		if of.objects == nil {
			continue
		}
		f.followed = append(f.followed, of.objects)
		f.sources = append(f.sources, &itemSource{apart: true,
			documents: registrykube.NewObjects(of.kind, of.objects)})
		if of.kind != registry.Objectives { // which belong to others
			f.statuses = append(f.statuses, statusTarget{of.kind, of.objects})
		}
	}
	return nil
}

// start follows the ConfigMaps until end is called, and reads all sources once. It waits for the
// first answer of the API server, but not for long, and not after stop is closed.
func (f *registryFeed) start(stop <-chan struct{}) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	for _, m := range f.followed {
		following.Go(func() { m.Run(ctx) })
	}
	waiting, enough := context.WithTimeout(ctx, registryWait)
	defer enough()
	for _, m := range f.followed {
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

// run follows the sources, and writes the statuses of objects, until ctx ends.
func (f *registryFeed) run(ctx context.Context, view statusView) {
	if len(f.sources) == 0 {
		return
	}
	tick := time.NewTicker(registryEvery)
	defer tick.Stop()
	for {
		f.look(ctx, time.Now())
		f.writeStatuses(ctx, time.Now(), view)
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
				"stays in force", "source", s.String(), "error", err)
		}
		s.err = err
		if other { // also before an error
			s.last, s.read, changed = fresh, true, true
		}
		if err != nil {
			seen = f.seen // only look changes it
			if !s.read && !s.apart {
				unread = errors.Join(unread, err)
			}
		}
		states = append(states, console.RegistrySource{Name: s.String(), Err: err})
		all = append(all, s.last...)
	}
	before, _ := f.now()
	next := before
	if changed {
		next = before.Next(now, all)
		f.report(ctx, before, next)
	}
	f.mu.Lock()
	f.current, f.unread, f.states, f.seen = next, unread, states, seen
	f.mu.Unlock()
	if !slices.EqualFunc(before.Pools(), next.Pools(), samePool) {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

func samePool(a, b registry.Entry[registry.PoolManifest]) bool {
	return reflect.DeepEqual(a.Item, b.Item)
}

// poolsChanged returns a channel that has a value when there are other pools; nil: there is no
// feed.
func (f *registryFeed) poolsChanged() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.changed
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
	if f.unwritten != "" {
		all = append(all, "registry: "+f.unwritten)
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
