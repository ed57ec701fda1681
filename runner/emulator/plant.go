package emulator

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

var (
	errQueueFull = errors.New("queue is full")
	errStopped   = errors.New("runner is not serving")
)

// plant drives an engine in real time. One goroutine (run) moves it on; any may
// submit.
type plant struct {
	clock   clock
	metrics *metrics
	depth   int           // of the waiting queue, at which submit refuses
	wake    chan struct{} // the engine began or was changed: look at its next end again
	stopped chan struct{} // closed when run returns

	mu      sync.Mutex
	engine  *engine.Engine
	lastID  engine.ID
	tickets map[engine.ID]*ticket
	serving bool
	waits   waits
	stall   func() time.Duration // asked before each iteration; real time
}

// ticket follows one sequence through the engine. Its fields belong to the
// plant's lock until completion is set.
type ticket struct {
	interactive bool
	changed     chan struct{} // told of the end and, if streaming, of each token; capacity 1
	streaming   bool
	finish      string // why it will end; told when it has

	id         engine.ID
	prompt     int
	submitted  time.Time
	admitted   time.Time
	cached     int
	tokens     int
	firstToken time.Time
	lastToken  time.Time
	completion *engine.Completion
}

func newPlant(c Config, e engine.Config, m *metrics, stall func() time.Duration) (*plant, error) {
	eng, err := engine.New(e, rand.New(rand.NewPCG(c.Seed, 0)))
	if err != nil {
		return nil, err
	}
	return &plant{
		clock: clock{start: time.Now(), speedup: c.Speedup}, metrics: m, depth: c.MaxQueueDepth,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		engine: eng, tickets: map[engine.ID]*ticket{}, stall: stall,
	}, nil
}

// submit hands sequences to the engine, all or none.
func (p *plant) submit(tickets []*ticket, requests []engine.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.serving {
		return errStopped
	}
	now := p.clock.now()
	p.engine.Advance(now, p.deliver)
	if p.engine.Snapshot(now).Waiting >= p.depth {
		return errQueueFull
	}
	for i, r := range requests {
		p.lastID++
		r.ID = p.lastID
		if err := p.engine.Submit(now, r); err != nil {
			for _, t := range tickets[:i] {
				p.abort(now, t)
			}
			return err
		}
		t := tickets[i]
		t.id, t.prompt, t.submitted = r.ID, r.Prompt, now
		p.tickets[r.ID] = t
	}
	p.engine.Advance(now, p.deliver)
	p.nudge()
	return nil
}

// cancel gives up what is left of the tickets.
func (p *plant) cancel(tickets []*ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.now()
	p.engine.Advance(now, p.deliver)
	for _, t := range tickets {
		p.abort(now, t)
	}
}

func (p *plant) abort(now time.Time, t *ticket) {
	p.engine.Abort(now, t.id)
	delete(p.tickets, t.id)
}

// setPace makes iterations take factor times as long.
func (p *plant) setPace(factor float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine.SetPace(p.clock.now(), factor)
}

// read is the state of the engine and of its queue.
func (p *plant) read() (engine.Snapshot, waits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engine.Snapshot(p.clock.now()), p.waits
}

func (p *plant) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run moves the engine on until ctx ends. A late timer delays no iteration: each
// begins where the one before it ended.
func (p *plant) run(ctx context.Context) {
	p.mu.Lock()
	p.serving = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.serving = false
		p.mu.Unlock()
		close(p.stopped)
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p.mu.Lock()
		p.engine.Advance(p.clock.now(), p.deliver)
		next, busy := p.engine.Next()
		p.mu.Unlock()

		var due <-chan time.Time
		if busy {
			timer.Reset(p.clock.until(next))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-due:
		}
	}
}

// deliver books the end of an iteration with the tickets.
func (p *plant) deliver(it *engine.Iteration) {
	for _, a := range it.Admitted {
		if t := p.tickets[a.ID]; t != nil && t.admitted.IsZero() {
			t.admitted, t.cached = it.Start, a.Cached
			p.waits.add(p.clock.real(t.admitted.Sub(t.submitted)))
		}
	}
	for _, id := range it.Produced {
		t := p.tickets[id]
		if t == nil {
			continue
		}
		t.tokens++
		if t.tokens == 1 {
			t.firstToken = it.End
			p.metrics.first(t, p.clock)
		} else {
			p.metrics.gap(p.clock.real(it.End.Sub(t.lastToken)))
		}
		t.lastToken = it.End
		if t.streaming {
			t.tell()
		}
	}
	for _, c := range it.Finished {
		t := p.tickets[c.ID]
		if t == nil {
			continue
		}
		delete(p.tickets, c.ID)
		t.completion = &c
		p.metrics.finish(t, p.clock)
		t.tell()
	}
	if d := p.stall(); d > 0 {
		p.engine.Stall(it.End, p.clock.emulated(d))
	}
}

func (t *ticket) tell() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// progress is a look at a ticket.
type progress struct {
	tokens   int
	done     bool
	visible  time.Time // emulated instant at which a client sees the last of tokens
	admitted time.Time
	cached   int
}

func (p *plant) progress(t *ticket) progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return progress{
		tokens: t.tokens, done: t.completion != nil, cached: t.cached, admitted: t.admitted,
		visible: t.lastToken.Add(engine.ServerDelay(t.tokens)),
	}
}

// change waits until something has happened to the request of t, or explains why
// nothing will.
func (p *plant) change(ctx context.Context, t *ticket) *failure {
	select {
	case <-t.changed:
		return nil
	case <-ctx.Done():
		return shed(http.StatusServiceUnavailable, "client_left", "The client left.", 0)
	case <-p.stopped:
		return notServing()
	}
}

// wait sleeps until an emulated instant and says whether ctx let it.
func (p *plant) wait(ctx context.Context, t time.Time) bool {
	d := p.clock.until(t)
	return d <= 0 || sleep(ctx, d)
}
