package emulator

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

var (
	errQueueFull = errors.New("queue is full")
	errStopped   = errors.New("runner is not serving")
)

// engineLoop drives an engine in real time. One goroutine (run) advances it; any goroutine may
// submit.
type engineLoop struct {
	clock   clock
	metrics *metrics
	depth   int           // of the waiting queue, at which submit refuses
	wake    chan struct{} // the engine has started or changed: read its next end again
	stopped chan struct{} // closed when run returns

	mu      sync.Mutex
	engine  *engine.Engine
	lastID  engine.ID
	tickets map[engine.ID]*ticket
	serving bool
	waits   waits
	timing  timing
	// called after each iteration; returns a time to stall, in real time
	stall func() time.Duration
}

func newEngineLoop(
	c Config, e engine.Config, m *metrics, stall func() time.Duration,
) (*engineLoop, error) {
	eng, err := engine.New(e, rand.New(rand.NewPCG(c.Seed, 0)))
	if err != nil {
		return nil, err
	}
	return &engineLoop{
		clock: clock{start: time.Now(), speedup: c.Speedup}, metrics: m, depth: c.MaxQueueDepth,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		engine: eng, tickets: map[engine.ID]*ticket{}, stall: stall,
	}, nil
}

// submit hands all sequences to the engine, or none.
func (l *engineLoop) submit(tickets []*ticket, requests []engine.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.serving {
		return errStopped
	}
	now := l.clock.now()
	l.engine.Advance(now, l.deliver)
	if l.engine.Snapshot(now).Waiting >= l.depth {
		return errQueueFull
	}
	for i, r := range requests {
		l.lastID++
		r.ID = l.lastID
		if err := l.engine.Submit(now, r); err != nil {
			for _, t := range tickets[:i] {
				l.abort(now, t)
			}
			return err
		}
		t := tickets[i]
		t.id, t.prompt, t.submitted = r.ID, r.Prompt, now
		l.tickets[r.ID] = t
	}
	l.engine.Advance(now, l.deliver)
	l.notify()
	return nil
}

// cancel aborts those of the tickets that have not finished.
func (l *engineLoop) cancel(tickets []*ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.now()
	l.engine.Advance(now, l.deliver)
	for _, t := range tickets {
		l.abort(now, t)
	}
}

func (l *engineLoop) abort(now time.Time, t *ticket) {
	l.engine.Abort(now, t.id)
	delete(l.tickets, t.id)
}

// setPace makes iterations take factor times as long.
func (l *engineLoop) setPace(factor float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.SetPace(l.clock.now(), factor)
}

// read returns the state of the engine and of its queue.
func (l *engineLoop) read() (engine.Snapshot, waits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.engine.Snapshot(l.clock.now()), l.waits
}

// page returns what the metrics of the engine show now.
func (l *engineLoop) page() page {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.now()
	l.engine.Advance(now, l.deliver) // iterations that have ended, if the timer is late
	return l.metrics.exporter.page(now, l.engine.Snapshot(now))
}

func (l *engineLoop) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run advances the engine until ctx ends. A late timer delays no iteration: each starts where the
// one before it ended.
func (l *engineLoop) run(ctx context.Context) {
	l.mu.Lock()
	l.serving = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.serving = false
		l.mu.Unlock()
		close(l.stopped)
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.mu.Lock()
		l.engine.Advance(l.clock.now(), l.deliver)
		next, busy := l.engine.Next()
		l.mu.Unlock()

		var due <-chan time.Time
		if busy {
			timer.Reset(l.clock.until(next))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-due:
		}
	}
}

// deliver updates the tickets at the end of an iteration.
func (l *engineLoop) deliver(it *engine.Iteration) {
	l.timing.add(it, -l.clock.until(it.End), l.clock)
	for _, a := range it.Admitted {
		if t := l.tickets[a.ID]; t != nil && t.admitted.IsZero() {
			t.admitted, t.cached = it.Start, a.Cached
			l.waits.add(l.clock.real(t.admitted.Sub(t.submitted)))
		}
	}
	for _, id := range it.Produced {
		t := l.tickets[id]
		if t == nil {
			continue
		}
		if t.tokens++; t.tokens == 1 {
			t.firstToken = it.End
		}
		l.metrics.produced(t, it.End, l.clock)
		t.lastToken = it.End
		if t.streaming {
			t.notify()
		}
	}
	for _, c := range it.Finished {
		t := l.tickets[c.ID]
		if t == nil {
			continue
		}
		delete(l.tickets, c.ID)
		t.completion = &c
		l.metrics.finished(t, l.clock)
		t.notify()
	}
	l.metrics.exporter.iterated(it, l.engine.Snapshot(it.End))
	if d := l.stall(); d > 0 {
		l.engine.Stall(it.End, l.clock.emulated(d))
	}
}
