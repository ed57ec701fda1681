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
	last   time.Time // what extend has set; zero: something else may hold
	lifted bool      // the handler has set its deadline to zero
	ended  bool      // the handler has returned and its deadline is void
}

// transfer sets the deadline of a transfer.
func (d *deadline) transfer(until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.transferLocked(until)
}

func (d *deadline) transferLocked(until time.Time) error {
	if d.last = (time.Time{}); !d.own.IsZero() && d.own.Before(until) {
		until = d.own
	}
	return d.set(until)
}

// extend is transfer for one of many transfers in a row. It leaves a deadline that takes no more
// than a sixteenth from the time that this one has: setting one costs as much as all else that
// this package does for a token of a stream.
func (d *deadline) extend(now, until time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if early := until.Sub(d.last); early >= 0 && early <= until.Sub(now)/16 {
		return nil
	}
	err := d.transferLocked(until)
	if d.own.IsZero() {
		d.last = until
	}
	return err
}

// handle sets the handler's deadline. It applies at once to a transfer in progress.
func (d *deadline) handle(own time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil
	}
	d.own, d.last = own, time.Time{}
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
