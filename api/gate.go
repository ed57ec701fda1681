package api

import (
	"container/list"
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"
)

// gate limits the requests of a kind that are handled at once, in total and for each tenant.
// Further requests wait in the order of their arrival. A waiting request has not read its body and
// takes no memory but that of its connection.
type gate struct {
	what string // in messages
	key  string // of the configuration
	// share returns the share of most that one tenant may use.
	share func() float64

	mu      sync.Mutex
	most    int
	wait    time.Duration // longest; 0: refuse at once
	busy    int
	tenants map[string]int
	waiting list.List      // of *waiter
	queued  map[string]int // waiters by tenant
}

// maxQueued limits the waiting requests of one tenant while there are other tenants, so that they
// still get connections.
const maxQueued = 128

type waiter struct {
	tenant  string
	entered chan struct{}
}

// enter waits until the request may be handled. The caller must call leave once, after it.
func (g *gate) enter(ctx context.Context, tenant string) (leave func(), err error) {
	g.mu.Lock()
	if g.admit(tenant) {
		g.mu.Unlock()
		return func() { g.leave(tenant) }, nil
	}
	if g.wait == 0 || g.queued[tenant] >= maxQueued && g.share() < 1 {
		defer g.mu.Unlock()
		return nil, g.refusal(tenant)
	}
	w := &waiter{tenant, make(chan struct{})}
	place, wait := g.queue(w), g.wait
	g.mu.Unlock()

	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-w.entered:
		return func() { g.leave(tenant) }, nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.entered: // admitted in the meantime
		return func() { g.leave(tenant) }, nil
	default:
	}
	g.dequeue(place)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("wait for other %s to finish: %w", g.what, context.Cause(ctx))
	}
	return nil, g.refusal(tenant)
}

// admit counts a request unless a limit is reached.
func (g *gate) admit(tenant string) bool {
	if g.busy >= g.most || g.tenants[tenant] >= g.perTenant() {
		return false
	}
	if g.tenants == nil {
		g.tenants = make(map[string]int)
	}
	g.busy++
	g.tenants[tenant]++
	return true
}

func (g *gate) queue(w *waiter) *list.Element {
	if g.queued == nil {
		g.queued = make(map[string]int)
	}
	g.queued[w.tenant]++
	return g.waiting.PushBack(w)
}

func (g *gate) dequeue(place *list.Element) {
	w := g.waiting.Remove(place).(*waiter)
	if g.queued[w.tenant]--; g.queued[w.tenant] == 0 {
		delete(g.queued, w.tenant)
	}
}

func (g *gate) perTenant() int { return max(1, int(math.Ceil(float64(g.most)*g.share()))) }

// leave ends a request.
func (g *gate) leave(tenant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	if g.tenants[tenant]--; g.tenants[tenant] == 0 {
		delete(g.tenants, tenant)
	}
	g.admitWaiting()
}

// configure replaces the limits. Requests that wait already wait as long as before.
func (g *gate) configure(most int, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most, g.wait = most, wait
	g.admitWaiting()
}

// admitWaiting admits requests that wait, in order, as far as the limits permit.
func (g *gate) admitWaiting() {
	for place := g.waiting.Front(); place != nil && g.busy < g.most; {
		next := place.Next()
		if w := place.Value.(*waiter); g.admit(w.tenant) {
			g.dequeue(place)
			close(w.entered)
		}
		place = next
	}
}

// refusal returns the answer to a request beyond a limit: 429 if it is the limit of its tenant.
func (g *gate) refusal(tenant string) *httpError {
	if n := g.tenants[tenant]; n >= g.perTenant() && g.busy < g.most {
		return &httpError{
			Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "rate_limit_exceeded",
			RetryAfter: retryBusy,
			Message: fmt.Sprintf(
				"You have %d %s in progress, which is your share of what the server handles at "+
					"once; try again when one has ended.", n, g.what),
		}
	}
	return &httpError{
		Status: http.StatusServiceUnavailable, Type: serverError,
		Code: "busy", RetryAfter: retryBusy,
		Message: fmt.Sprintf(
			"The server has %d %s in progress, the most that it handles at once (%s); try again "+
				"later.", g.busy,
			g.what, g.key),
	}
}

// retryBusy is the Retry-After of refused requests.
const retryBusy = 5 * time.Second

// gates are the gates of a server.
type gates struct {
	requests, uploads, streams, bodies, copies gate
}

// maxLargeBodies limits the JSON bodies above smallBody that are in memory at once. Each takes up
// to 1 MiB, and more while it is decoded.
const maxLargeBodies = 8

// maxCopies limits the files that are made from others at once: from the parts of an upload, or
// from the failed lines of a batch. Each takes the memory of an upload.
const maxCopies = 4

func (s *Server) newGates() *gates {
	g := &gates{
		requests: gate{what: "requests", key: "api.max_requests"},
		uploads:  gate{what: "uploads", key: "by api.max_requests"},
		streams:  gate{what: "event streams", key: "by api.max_requests"},
		bodies:   gate{what: "large JSON bodies", key: "a fixed limit"},
		copies: gate{what: "completions of uploads and retries of batches",
			key: "a fixed limit"},
	}
	for _, one := range []*gate{&g.requests, &g.uploads, &g.streams, &g.bodies, &g.copies} {
		one.share = s.tenantShare
	}
	g.configure(*s.config())
	return g
}

func (g *gates) configure(c Config) {
	g.requests.configure(c.MaxRequests, c.QueueWait)
	g.uploads.configure(c.maxUploads(), c.QueueWait)
	g.streams.configure(c.maxStreams(), 0)
	g.bodies.configure(maxLargeBodies, c.QueueWait)
	g.copies.configure(maxCopies, c.QueueWait)
}

// tenantShare returns the share of a gate that one tenant may use; 1 if there is only one tenant.
func (s *Server) tenantShare() float64 {
	if s.keys.Load().severalTenants() {
		return tenantShare
	}
	return 1
}

// moveToGate admits the request through a gate, after releasing those that it has passed.
func (s *Server) moveToGate(w http.ResponseWriter, r *http.Request, g *gate) error {
	w.(*response).release()
	return enterGate(w, r, g)
}

// enterGate admits the request through a gate, besides those that it has passed.
func enterGate(w http.ResponseWriter, r *http.Request, g *gate) error {
	out := w.(*response) // set by middleware
	leave, err := g.enter(r.Context(), tenantOf(r.Context()))
	if err == nil {
		out.places = append(out.places, leave)
	}
	return err
}

// limitUploads returns a handler that passes the gate of uploads first.
func (s *Server) limitUploads(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.moveToGate(w, r, &s.gates.uploads); err != nil {
			return err
		}
		return h(w, r)
	}
}
