package dispatch

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// Refused reports that an interactive request gets no place.
type Refused struct{ plan.Refusal }

func (r *Refused) Error() string {
	return fmt.Sprintf("no place for the request: %s", plan.Explain(r.Why).Meaning)
}

// Place is the place of an interactive request on a runner, until Done.
type Place struct {
	admission plan.Admission
	flow      flows.Flow
	server    *url.URL
	header    http.Header
	session   *session
	decoded   *decoded
	started   time.Time
	done      sync.Once
}

// Admission returns where the request goes, and what it has waited for.
func (p *Place) Admission() plan.Admission { return p.admission }

// Base returns the URL of the runner's server, without /v1. It must not be changed.
func (p *Place) Base() *url.URL { return p.server }

// Header returns what the operator has configured for requests to the server, such as its key. It
// must not be changed.
func (p *Place) Header() http.Header { return p.header }

// Spoke reports the first token.
func (p *Place) Spoke() {
	p.session.Inbox.Event(plan.RequestSpoke{ID: p.admission.ID, Latency: time.Since(p.started)})
}

// Decoded reports tokens of the request's stream, and the number and the sum of the times between
// them. It is cheap: the planner learns of them a few times a second.
func (p *Place) Decoded(tokens, gaps int, took time.Duration) { p.decoded.add(tokens, gaps, took) }

// Done ends the request. Further calls do nothing.
func (p *Place) Done(end plan.RequestEnded) {
	p.done.Do(func() {
		end.ID = p.admission.ID
		p.session.requests.leave(p.decoded)
		p.session.history.used.add(time.Now(), p.flow, &end)
		p.session.Inbox.Event(&end)
	})
}

// decoded counts what the streams of a runner's requests brought since the planner learned of them.
type decoded struct {
	tokens, gaps atomic.Int64
	took         atomic.Int64 // nanoseconds
	places       int          // of requests in flight; guarded by requests.counting
}

func (d *decoded) add(tokens, gaps int, took time.Duration) {
	d.tokens.Add(int64(tokens))
	d.gaps.Add(int64(gaps))
	d.took.Add(int64(took))
}

// requests holds the interactive requests of a session whose users wait for a place.
type requests struct {
	last atomic.Uint64 // ID

	mu      sync.Mutex
	waiting map[uint64]chan<- answer
	ended   bool // no more are answered

	counting  sync.Mutex
	decodedBy map[string]*decoded // by runner; of those with requests in flight, until reported
}

// answer is what the planner says to a request.
type answer struct {
	admitted plan.Admission
	refused  *plan.Refusal
}

func newRequests() *requests {
	return &requests{waiting: map[uint64]chan<- answer{}, decodedBy: map[string]*decoded{}}
}

// open returns the ID of a new request, and the channel of its answer.
func (r *requests) open() (id uint64, answered <-chan answer, ok bool) {
	id = r.last.Add(1)
	c := make(chan answer, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return 0, nil, false
	}
	r.waiting[id] = c
	return id, c, true
}

// withdraw gives up a request. It reports whether there is no answer yet.
func (r *requests) withdraw(id uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, waits := r.waiting[id]
	delete(r.waiting, id)
	return waits
}

// answer gives a request its answer. It reports whether the request still waits for it.
func (r *requests) answer(id uint64, a answer) bool {
	r.mu.Lock()
	c, waits := r.waiting[id]
	delete(r.waiting, id)
	r.mu.Unlock()
	if waits {
		c <- a
	}
	return waits
}

// end refuses all requests that wait, and those that come.
func (r *requests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for id, c := range r.waiting {
		c <- answer{refused: &plan.Refusal{ID: id, Why: plan.Draining}}
	}
	clear(r.waiting)
}

// enter returns the counter of a runner for a request, until leave.
func (r *requests) enter(runner string) *decoded {
	r.counting.Lock()
	defer r.counting.Unlock()
	d := r.decodedBy[runner]
	if d == nil {
		d = &decoded{}
		r.decodedBy[runner] = d
	}
	d.places++
	return d
}

// leave ends the use of a counter by a request.
func (r *requests) leave(d *decoded) {
	r.counting.Lock()
	defer r.counting.Unlock()
	d.places--
}

// report returns what the streams of each runner brought since the last call. It drops the counters
// that no request uses, since runners come and go.
func (r *requests) report() (events []plan.RequestsDecoded) {
	r.counting.Lock()
	defer r.counting.Unlock()
	for runner, d := range r.decodedBy {
		ev := plan.RequestsDecoded{Runner: runner, Tokens: int(d.tokens.Swap(0)),
			Gaps: int(d.gaps.Swap(0)), Time: time.Duration(d.took.Swap(0))}
		if ev.Tokens > 0 || ev.Gaps > 0 {
			events = append(events, ev)
		}
		if d.places == 0 {
			delete(r.decodedBy, runner)
		}
	}
	return events
}

// Admit waits until an interactive request may start. The caller ends the place. The error is a
// *Refused, or the context's cause.
func (d *Dispatcher) Admit(ctx context.Context, r plan.Request) (*Place, error) {
	s := d.current.Load()
	if s == nil {
		return nil, &Refused{plan.Refusal{Why: plan.NoDispatcher}}
	}
	id, answered, ok := s.requests.open()
	if !ok {
		return nil, &Refused{plan.Refusal{Why: plan.Draining}}
	}
	r.ID = id
	s.Inbox.Event(plan.RequestCame{Request: &r})
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		if s.requests.withdraw(id) {
			s.Inbox.Event(plan.RequestLeft{ID: id})
			return nil, context.Cause(ctx)
		}
		a = <-answered
	}
	if a.refused != nil {
		return nil, &Refused{*a.refused}
	}
	place := &Place{admission: a.admitted, flow: r.Flow, session: s, started: time.Now(),
		decoded: s.requests.enter(a.admitted.Runner)}
	u := d.settings.Load().runner(a.admitted.Runner)
	if u == nil { // it was removed a moment ago
		place.Done(plan.RequestEnded{Outcome: plan.Evicted})
		return nil, &Refused{plan.Refusal{ID: id, Why: plan.NoRunner}}
	}
	place.server, place.header = u.Server()
	place.admission.Model = u.Named(r.Model)
	return place, nil
}

// Knows reports whether a runner that is not reserved for batches serves the model, has served it
// or may serve it, as it has not said yet what it serves; or a pool is configured with the model.
func (d *Dispatcher) Knows(model string) bool {
	now := d.settings.Load()
	for _, u := range now.open {
		if u.Knows(model) || !u.HasAnswered() {
			return true
		}
	}
	return now.Registry.Expects(model)
}
