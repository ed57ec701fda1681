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

// gate bounds how many requests of a kind are handled at once, in all and for each tenant. A
// request beyond the bound waits in the order of arrival; it has not read its body yet and holds
// nothing but its connection.
type gate struct {
	what string // in messages
	key  string // of the configuration
	most int
	wait time.Duration // at most; 0: refuse at once
	// share returns how many of them one tenant may have.
	share func() float64

	mu      sync.Mutex
	busy    int
	tenants map[string]int
	waiting list.List      // of *waiter
	queued  map[string]int // waiters by tenant
}

// maxQueued bounds the waiters of one tenant while there are others, whom it would leave no
// connections.
const maxQueued = 128

type waiter struct {
	tenant  string
	entered chan struct{}
}

// enter waits for room and returns what gives it back, to be called once.
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
	place := g.queue(w)
	g.mu.Unlock()

	timeout := time.NewTimer(g.wait)
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
	case <-w.entered: // meanwhile
		return func() { g.leave(tenant) }, nil
	default:
	}
	g.dequeue(place)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("wait for other %s: %w", g.what, context.Cause(ctx))
	}
	return nil, g.refusal(tenant)
}

// admit counts a request if there is room for it.
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

// leave makes room for the first waiter that may have it.
func (g *gate) leave(tenant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	if g.tenants[tenant]--; g.tenants[tenant] == 0 {
		delete(g.tenants, tenant)
	}
	for place := g.waiting.Front(); place != nil && g.busy < g.most; {
		next := place.Next()
		if w := place.Value.(*waiter); g.admit(w.tenant) {
			g.dequeue(place)
			close(w.entered)
		}
		place = next
	}
}

// refusal is the answer to a request that there is no room for: 429 where its own tenant takes it.
func (g *gate) refusal(tenant string) *Error {
	if n := g.tenants[tenant]; n >= g.perTenant() && g.busy < g.most {
		return &Error{
			Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "rate_limit_exceeded",
			RetryAfter: retryBusy,
			Message: fmt.Sprintf(
				"You have %d %s under way, your share of what the server takes at once; try again when one has ended.", n, g.what),
		}
	}
	return &Error{
		Status: http.StatusServiceUnavailable, Type: serverError,
		Code: "busy", RetryAfter: retryBusy,
		Message: fmt.Sprintf(
			"The server has %d %s under way, the most it takes at once (%s); try again.", g.busy,
			g.what, g.key),
	}
}

// retryBusy is when a refused request should come again.
const retryBusy = 5 * time.Second

// gates are those of a server.
type gates struct {
	requests, uploads, streams, bodies, copies gate
}

// maxLargeBodies bounds the JSON bodies over smallBody that are held at once, 1 MiB each and some more
// while they are decoded.
const maxLargeBodies = 8

// maxCopies is how many files are made of others at once, of the parts of an upload or of a batch's
// failed lines. Each takes the memory of an upload, and no client to wait for.
const maxCopies = 4

func (s *Server) newGates() *gates {
	wait, c := s.config.QueueWait, s.config
	return &gates{
		requests: gate{what: "requests", key: "api.max_requests", most: c.MaxRequests, wait: wait,
			share: s.tenantShare},
		uploads: gate{what: "uploads", key: "api.max_concurrent_uploads",
			most: c.MaxConcurrentUploads, wait: wait, share: s.tenantShare},
		streams: gate{what: "event streams", key: "api.max_streams", most: c.MaxStreams,
			share: s.tenantShare},
		bodies: gate{what: "large JSON bodies", key: "which is fixed", most: maxLargeBodies,
			wait: wait, share: s.tenantShare},
		copies: gate{what: "uploads and retries to put together", key: "which is fixed",
			most: maxCopies, wait: wait, share: s.tenantShare},
	}
}

// tenantShare is the part of a gate that one tenant may take: all, if there is no other.
func (s *Server) tenantShare() float64 {
	if s.keys.Load().severalTenants() {
		return s.config.TenantShare
	}
	return 1
}

// moveToGate takes the request from the gate that it came through, if any, into another.
func (s *Server) moveToGate(w http.ResponseWriter, r *http.Request, g *gate) error {
	w.(*response).release()
	return enterGate(w, r, g)
}

// enterGate takes the request into a gate besides those that it came through.
func enterGate(w http.ResponseWriter, r *http.Request, g *gate) error {
	out := w.(*response) // of entrance
	leave, err := g.enter(r.Context(), tenantOf(r.Context()))
	if err == nil {
		out.places = append(out.places, leave)
	}
	return err
}

// limitUploads handles a request that takes in a file.
func (s *Server) limitUploads(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := s.moveToGate(w, r, &s.gates.uploads); err != nil {
			return err
		}
		return h(w, r)
	}
}
