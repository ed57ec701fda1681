package kube

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// The interval of attempts to read something doubles from the first to the last of these.
const (
	firstRetry = time.Second / 2
	lastRetry  = 10 * time.Second
)

// mirror is a copy of what Tidefill uses of the objects of a source, by name. It holds the last
// state while the source is not connected. It is a cache.ReflectorStore.
type mirror[T any] struct {
	source  *source
	convert func(object any) T
	changed func() // called after every change

	mu     sync.Mutex
	items  map[string]T
	synced bool
}

func newMirror[T any](s *source, convert func(any) T, changed func()) *mirror[T] {
	return &mirror[T]{source: s, convert: convert, changed: changed, items: map[string]T{}}
}

// run keeps the mirror current until ctx is done.
func (m *mirror[T]) run(ctx context.Context) {
	cache.NewReflectorWithOptions(m.source, nil, m, cache.ReflectorOptions{
		Name: m.source.query.object.String(),
		Backoff: &wait.Backoff{Duration: firstRetry, Cap: lastRetry, Factor: 2, Jitter: 0.2,
			Steps: 10},
	}).RunWithContext(quiet(ctx))
}

// get returns the objects by name, and whether they have been listed at all.
func (m *mirror[T]) get() (map[string]T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.items), m.synced
}

// listed reports whether the objects have been listed at all.
func (m *mirror[T]) listed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.synced
}

// one returns the only object of a mirror of one.
func (m *mirror[T]) one() (item T, exists, synced bool) {
	items, synced := m.get()
	for _, item := range items {
		return item, true, synced
	}
	return item, false, synced
}

// Add implements cache.ReflectorStore.
func (m *mirror[T]) Add(o any) error { return m.Update(o) }

// Update implements cache.ReflectorStore.
func (m *mirror[T]) Update(o any) error {
	return m.change(o, func(name string) { m.items[name] = m.convert(o) })
}

// Delete implements cache.ReflectorStore.
func (m *mirror[T]) Delete(o any) error {
	return m.change(o, func(name string) { delete(m.items, name) })
}

func (m *mirror[T]) change(o any, apply func(name string)) error {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return fmt.Errorf("%s: an object without metadata: %w", m.source.query.object, err)
	}
	m.mu.Lock()
	apply(accessor.GetName())
	m.mu.Unlock()
	m.changed()
	return nil
}

// Replace implements cache.ReflectorStore.
func (m *mirror[T]) Replace(list []any, _ string) error {
	items := make(map[string]T, len(list))
	for _, o := range list {
		accessor, err := meta.Accessor(o)
		if err != nil {
			return fmt.Errorf("%s: an object without metadata: %w", m.source.query.object, err)
		}
		items[accessor.GetName()] = m.convert(o)
	}
	m.mu.Lock()
	m.items, m.synced = items, true
	m.mu.Unlock()
	m.changed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (m *mirror[T]) Resync() error { return nil }
