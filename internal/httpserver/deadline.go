package httpserver

import (
	"sync"
	"time"
)

// deadline combines the deadline of a transfer with the handler's own. The earlier one holds. A
// handler may change its own during a transfer.
type deadline struct {
	mu     sync.Mutex
	set    func(time.Time) error
	own    time.Time // the handler's; zero: none
	lifted bool      // the handler has set its deadline to zero
	ended  bool      // the handler has returned and its deadline is void
}

// transfer sets the deadline of a transfer.
func (d *deadline) transfer(until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.own.IsZero() && d.own.Before(until) {
		until = d.own
	}
	return d.set(until)
}

// handle sets the handler's deadline. It applies at once to a transfer in progress.
func (d *deadline) handle(own time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil
	}
	d.own = own
	if d.lifted = own.IsZero(); d.lifted {
		return nil
	}
	return d.set(own)
}

// end makes the handler's deadline void.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended, d.own = true, time.Time{}
}

func (d *deadline) isLifted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lifted
}
