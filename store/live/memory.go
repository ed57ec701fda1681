package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Memory is the twin of a medium within one process. The zero value is empty and ready for use. It
// is safe for concurrent use.
type Memory struct {
	mu        sync.Mutex
	snapshots map[string]map[string]published // by kind and name
	windows   map[string]time.Time            // when they are empty, by key
	swept     time.Time

	subscribers Subscribers
}

var (
	_ Snapshots = (*Memory)(nil)
	_ Events    = (*Memory)(nil)
	_ Windows   = (*Memory)(nil)
)

type published struct {
	Snapshot
	at time.Time
}

// Publish implements [Snapshots].
func (m *Memory) Publish(_ context.Context, kind string, s Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, is := m.snapshots[kind][s.Name]; is && known.Epoch > s.Epoch &&
		time.Since(known.at) < KeepSnapshots {
		return fmt.Errorf("publish %s of %s at epoch %d, node %s has epoch %d: %w", kind, s.Name,
			s.Epoch, known.Node, known.Epoch, store.ErrFenced)
	}
	if m.snapshots == nil {
		m.snapshots = map[string]map[string]published{}
	}
	if m.snapshots[kind] == nil {
		m.snapshots[kind] = map[string]published{}
	}
	s.Data = slices.Clone(s.Data)
	m.snapshots[kind][s.Name] = published{s, time.Now()}
	return nil
}

// Snapshots implements [Snapshots].
func (m *Memory) Snapshots(_ context.Context, kind string) (all []Snapshot, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.snapshots[kind]
	for _, name := range slices.Sorted(maps.Keys(of)) {
		s := of[name]
		if s.Age = time.Since(s.at); s.Age >= KeepSnapshots {
			delete(of, name)
			continue
		}
		s.Data = slices.Clone(s.Data)
		all = append(all, s.Snapshot)
	}
	return all, nil
}

// Emit implements [Events].
func (m *Memory) Emit(topic Topic, ids ...string) { m.subscribers.Call(topic, ids) }

// Subscribe implements [Events].
func (m *Memory) Subscribe(take func(Topic, []string)) (stop func()) {
	return m.subscribers.Add(take)
}

// sweepWindows is the interval at which windows that are empty are removed.
const sweepWindows = time.Minute

// Take implements [Windows].
func (m *Memory) Take(_ context.Context, key string, l Limit) Taken {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.windows == nil {
		m.windows = map[string]time.Time{}
	}
	if now.Sub(m.swept) >= sweepWindows {
		m.swept = now
		maps.DeleteFunc(m.windows, func(_ string, empty time.Time) bool {
			return empty.Before(now)
		})
	}
	empty, wait := l.Take(now, m.windows[key])
	m.windows[key] = empty
	return l.Taken(empty.Sub(now), wait)
}

// Give implements [Windows].
func (m *Memory) Give(_ context.Context, key string, l Limit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if empty, is := m.windows[key]; is {
		m.windows[key] = empty.Add(-l.Step())
	}
}
