package dispatch

import (
	"slices"
	"sync"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// closings are the names of what gets no new lines: runners that drain, or closed pools. They hold
// for the planners of later sessions too.
type closings struct {
	event func(name string, closed bool) plan.Event

	mu    sync.Mutex
	names []string
}

// replace replaces the names and sends the changes.
func (c *closings) replace(names []string, send func(plan.Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names {
		if !slices.Contains(names, name) {
			send(c.event(name, false))
		}
	}
	for _, name := range names {
		if !slices.Contains(c.names, name) {
			send(c.event(name, true))
		}
	}
	c.names = slices.Clone(names)
}

// repeat sends all names to a new planner.
func (c *closings) repeat(send func(plan.Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names {
		send(c.event(name, true))
	}
}

func runnerDrain(name string, draining bool) plan.Event {
	return plan.RunnerDrain{Runner: name, Draining: draining}
}

func poolClosed(name string, closed bool) plan.Event {
	return plan.PoolClosed{Pool: name, Closed: closed}
}

// SetDraining closes these runners for new lines, and opens those that it closed before and that
// are not among them. Runners are named as in Survey, and may come later. Their lines in flight go
// on, and what was measured of them is kept.
func (d *Dispatcher) SetDraining(runners []string) { d.draining.replace(runners, d.send) }

// SetClosed closes the pools of these names for new lines, and opens those that it closed before
// and that are not among them.
func (d *Dispatcher) SetClosed(pools []string) { d.closed.replace(pools, d.send) }

// send sends an event to the planner of the present session, if there is one.
func (d *Dispatcher) send(ev plan.Event) {
	if s := d.current.Load(); s != nil {
		s.Inbox.Event(ev)
	}
}
