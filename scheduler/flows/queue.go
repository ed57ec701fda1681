package flows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/heap"
	"github.com/tidefill/tidefill/scheduler"
)

// Flow identifies the requests of one use case, tenant and class.
type Flow struct {
	Class, UseCase, Tenant string
	// Weight is that of the use case among those of its class; 0: 1.
	Weight float64
}

// Request is a request that waits for a place.
type Request struct {
	ID   uint64 // unique among those that wait or run
	Flow Flow
	// Deadline is when it must have started. Zero: the class's MaxWait after it came.
	Deadline time.Time
}

// Shed is a request that gets no place.
type Shed struct {
	ID  uint64
	Why Reason
}

// Reason says why a request gets no place.
type Reason string

// The reasons.
const (
	TooMany Reason = "too_many_waiting" // more requests wait than may
	Waited  Reason = "waited"           // no place became free before its deadline
)

// Queue holds the requests of a pool that wait, and counts those in flight. Add costs O(log n) in
// the number of flows and requests, amortized, also if the queue is full.
type Queue struct {
	cfg      Config
	policy   Policy
	classes  []*class
	waiting  map[uint64]*item
	due      heap.Heap[*item] // by the end of their time to wait
	came     uint64           // requests until now
	standing []Standing
}

// class is the requests of a class.
type class struct {
	ClassConfig
	order   *scheduler.Queue // of its flows; those without a request to start are parked
	flows   map[string]*flow // by ID
	longest heap.Heap[*flow] // those with requests that wait, by their number
	idle    heap.Heap[*flow] // those without a request
	waiting int
	running int
	last    time.Time // when a request of it came or ended
}

// flow is the requests of a flow.
type flow struct {
	id      string
	class   *class
	items   []*item // in the order in which they came
	running int
	credit  float64 // work charged beyond what was done

	longestAt, idleAt int // in the heaps of the class; -1: not in it
}

// item is a request that waits.
type item struct {
	Request
	flow   *flow
	number uint64 // in the order in which they came
	came   time.Time
	due    time.Time
	dueAt  int // in the heap
}

// restAfter is the time without a request after which nothing is reserved for a class any more.
const restAfter = 10 * time.Minute

// maxIdle limits the flows of a class without a request, whose shares are remembered.
const maxIdle = 4096

// New returns an empty queue. The error is that of cfg.Validate.
func New(cfg Config) (*Queue, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("flows config: %w", err)
	}
	policy, err := NewPolicy(cfg.Policy)
	if err != nil {
		return nil, err
	}
	q := &Queue{cfg: cfg, policy: policy, waiting: map[uint64]*item{}, due: newDueHeap()}
	order := scheduler.DefaultConfig()
	order.Policy, order.Quantum = "edf", 1 // no flow has a deadline, so all share
	for _, c := range cfg.Classes {
		made, err := scheduler.NewQueue(order)
		if err != nil {
			return nil, err
		}
		q.classes = append(q.classes, &class{ClassConfig: c, order: made,
			flows: map[string]*flow{}, longest: newLongestHeap(), idle: newIdleHeap()})
	}
	return q, nil
}

// flow returns the flow of a request, a new one if there is none.
func (q *Queue) flow(f Flow) *flow {
	c := q.classes[q.cfg.Index(f.Class)]
	id := f.UseCase + "\x00" + f.Tenant
	x := c.flows[id]
	if x == nil {
		c.sweep()
		x = &flow{id: id, class: c, longestAt: -1, idleAt: -1}
		c.flows[id] = x
		x.changed()
	}
	weight := q.cfg.TenantWeights[f.Tenant]
	known := x.idleAt < 0
	c.order.Put(scheduler.Job{ID: id, Tenant: f.UseCase, TenantWeight: f.Weight, Weight: weight})
	if !known {
		c.order.Park(id)
	}
	return x
}

// sweep drops the flows without a request if there are too many.
func (c *class) sweep() {
	if len(c.flows) < maxIdle {
		return
	}
	for x := c.idle.Top(); x != nil; x = c.idle.Top() {
		c.idle.Remove(x)
		c.order.Remove(x.id)
		delete(c.flows, x.id)
	}
}

// changed puts the flow in its place among those of its class after its requests have changed.
func (x *flow) changed() {
	put := func(h *heap.Heap[*flow], at int, in bool) {
		switch {
		case in && at < 0:
			h.Push(x)
		case in:
			h.Fix(x)
		case at >= 0:
			h.Remove(x)
		}
	}
	put(&x.class.longest, x.longestAt, len(x.items) > 0)
	put(&x.class.idle, x.idleAt, len(x.items) == 0 && x.running == 0)
}

// SetMaxWaiting replaces Config.MaxWaiting, from the next Add on.
func (q *Queue) SetMaxWaiting(n int) { q.cfg.MaxWaiting = max(1, n) }

// Add lets a request wait. It returns the requests that get no place because of it, which may be
// this one.
func (q *Queue) Add(now time.Time, r Request) []Shed {
	x := q.flow(r.Flow)
	x.class.last = now
	var shed []Shed
	if len(q.waiting) >= q.cfg.MaxWaiting {
		victim := q.victim(x)
		if victim == nil {
			return []Shed{{r.ID, TooMany}}
		}
		q.drop(victim)
		shed = []Shed{{victim.ID, TooMany}}
	}
	q.came++
	i := &item{Request: r, flow: x, number: q.came, came: now, due: r.Deadline, dueAt: -1}
	if i.due.IsZero() {
		i.due = now.Add(x.class.MaxWait)
	}
	q.waiting[r.ID] = i
	q.due.Push(i)
	x.items = append(x.items, i)
	x.changed()
	x.class.waiting++
	if len(x.items) == 1 {
		x.class.order.Unpark(x.id)
	}
	return shed
}

// victim returns the request that gives up its place in the full queue for a new one of a flow;
// nil: none does. It is the newest of the longest flow of the last class that has one. In the new
// one's own class only a flow with more requests than its own gives one up.
func (q *Queue) victim(of *flow) *item {
	for i := len(q.classes) - 1; i >= 0; i-- {
		c := q.classes[i]
		longest := c.longest.Top()
		switch {
		case c == of.class && (longest == nil || len(longest.items) <= len(of.items)+1):
			return nil
		case longest != nil:
			return longest.items[len(longest.items)-1]
		}
	}
	return nil
}

// drop removes a request that waits.
func (q *Queue) drop(i *item) {
	delete(q.waiting, i.ID)
	q.due.Remove(i)
	x := i.flow
	at, _ := slices.BinarySearchFunc(x.items, i, func(a, b *item) int {
		return cmp.Compare(a.number, b.number)
	})
	x.items = slices.Delete(x.items, at, at+1)
	x.changed()
	x.class.waiting--
	if len(x.items) == 0 {
		x.class.order.Park(x.id)
	}
}

// Remove removes a request that waits, such as one whose user has left. It reports whether it did.
func (q *Queue) Remove(id uint64) bool {
	i := q.waiting[id]
	if i != nil {
		q.drop(i)
	}
	return i != nil
}

// Expire removes the requests whose time to wait is over.
func (q *Queue) Expire(now time.Time) (shed []Shed) {
	for i := q.due.Top(); i != nil && !i.due.After(now); i = q.due.Top() {
		q.drop(i)
		shed = append(shed, Shed{i.ID, Waited})
	}
	return shed
}

// Wake returns when the next request's time to wait is over. Zero: none waits.
func (q *Queue) Wake() time.Time {
	if i := q.due.Top(); i != nil {
		return i.due
	}
	return time.Time{}
}

// Next returns the request that starts next, if one may. places is the number of requests that the
// pool may have in flight; limit returns the number below which one of a class may start. Next has
// no effect: it returns the same until another method is called.
func (q *Queue) Next(now time.Time, places int, limit func(class int) int) (id uint64, ok bool) {
	if len(q.waiting) == 0 {
		return 0, false
	}
	q.standing = q.standing[:0]
	for i, c := range q.classes {
		s := Standing{Name: c.Name, Waiting: c.waiting, Running: c.running,
			Limit: min(places, limit(i))}
		if now.Sub(c.last) < restAfter {
			s.Reserve = c.Reserve
		}
		q.standing = append(q.standing, s)
	}
	at := q.policy.Next(places, q.standing)
	if at < 0 {
		return 0, false
	}
	c := q.classes[at]
	first, _ := c.order.Next(now)
	return c.flows[first].items[0].ID, true
}

// Start takes a request that waits out of the queue, as one in flight with the expected work. It
// returns since when it has waited.
func (q *Queue) Start(id uint64, work float64) (came time.Time, ok bool) {
	i := q.waiting[id]
	if i == nil {
		return time.Time{}, false
	}
	q.drop(i)
	x := i.flow
	x.running++
	x.class.running++
	x.changed()
	x.charge(work)
	return i.came, true
}

// charge counts work of the flow, less what was counted too much before.
func (x *flow) charge(work float64) {
	work -= x.credit
	x.credit = max(0, -work)
	x.class.order.Charge(x.id, work)
}

// Charge counts work of a flow beyond that which was expected at a start, or less if negative.
func (q *Queue) Charge(f Flow, work float64) {
	if _, x := q.find(f); x != nil {
		x.charge(work)
	}
}

// Done ends a request in flight.
func (q *Queue) Done(now time.Time, f Flow) {
	if c, x := q.find(f); x != nil && x.running > 0 {
		x.running--
		c.running--
		x.changed()
		c.last = now
	}
}

func (q *Queue) find(f Flow) (*class, *flow) {
	c := q.classes[q.cfg.Index(f.Class)]
	return c, c.flows[f.UseCase+"\x00"+f.Tenant]
}

// Waiting returns the number of requests that wait.
func (q *Queue) Waiting() int { return len(q.waiting) }

// Classes calls do for each class with the numbers of its requests.
func (q *Queue) Classes(do func(name string, waiting, running int)) {
	for _, c := range q.classes {
		do(c.Name, c.waiting, c.running)
	}
}

// All removes and returns the requests that wait, those first whose time to wait ends first.
func (q *Queue) All() (all []Request) {
	for i := q.due.Top(); i != nil; i = q.due.Top() {
		all = append(all, i.Request)
		q.drop(i)
	}
	return all
}

// newDueHeap returns a heap of requests by the end of their time to wait.
func newDueHeap() heap.Heap[*item] {
	return heap.Heap[*item]{
		Before: func(a, b *item) bool {
			return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.ID, b.ID)) < 0
		},
		Place: func(i *item) *int { return &i.dueAt },
	}
}

// newLongestHeap returns a heap of flows, the one with the most requests that wait first.
func newLongestHeap() heap.Heap[*flow] {
	return heap.Heap[*flow]{
		Before: func(a, b *flow) bool {
			return cmp.Or(cmp.Compare(len(b.items), len(a.items)), cmp.Compare(a.id, b.id)) < 0
		},
		Place: func(x *flow) *int { return &x.longestAt },
	}
}

// newIdleHeap returns a heap of flows by their IDs.
func newIdleHeap() heap.Heap[*flow] {
	return heap.Heap[*flow]{
		Before: func(a, b *flow) bool { return a.id < b.id },
		Place:  func(x *flow) *int { return &x.idleAt },
	}
}

// Resume counts a request in flight that another queue has started.
func (q *Queue) Resume(f Flow) {
	x := q.flow(f)
	x.running++
	x.class.running++
	x.changed()
}
