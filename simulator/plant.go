package simulator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// epoch is when every story begins.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// The engine's order of priority: lower goes first.
const (
	priorityInteractive = 0
	priorityBatch       = 10
)

// plant is the pool in virtual time, with its users.
type plant struct {
	setup    Setup
	now, end time.Time
	agenda   agenda
	pools    []*pool
	replicas []*replica            // of all pools
	serving  map[string]*replica   // and those that drain
	flights  map[engine.ID]*flight // inside the engines
	lastID   engine.ID
	traffic  workload.Stream
	users    *users
	scaling  *scaling
	batches  *batches // nil: a run without batch work
}

func newPlant(s Setup, withBatch bool) (*plant, error) {
	p := &plant{setup: s, now: epoch, end: epoch.Add(s.Scenario.Horizon),
		flights: map[engine.ID]*flight{}, serving: map[string]*replica{}}
	p.users = newUsers(s.Scenario)
	p.scaling = newScaling(p)
	if err := newPools(p); err != nil {
		return nil, err
	}
	p.lookAround()
	p.strike()
	var err error
	if p.traffic, err = s.arrivals(); err != nil {
		return nil, fmt.Errorf("interactive traffic: %w", err)
	}
	if _, err = p.seatUsers(); err != nil {
		return nil, err
	}
	p.nextArrival()
	if withBatch {
		p.users.gateway = newGateway(s.Scenario.Metrics, s.promises())
		if p.batches, err = newBatches(p); err != nil {
			return nil, err
		}
	}
	if s.inside != nil {
		if err = p.wakeInside(); err != nil {
			return nil, err
		}
	}
	return p, p.scaling.begin()
}

// run goes on to an instant.
func (p *plant) run(to time.Time) {
	for {
		at, do, ok := p.agenda.take(to)
		if !ok {
			p.now = to
			return
		}
		p.now = at
		do()
	}
}

func (p *plant) nextArrival() {
	a, ok := p.traffic.Next()
	if !ok {
		return
	}
	p.agenda.put(epoch.Add(a.At), func() {
		p.arrive(a)
		p.nextArrival()
	})
}

// arrive takes in an interactive request.
func (p *plant) arrive(a workload.Arrival) {
	class := p.users.byName[a.Class] // what the scenario does not know is of the first
	p.come(&flight{arrived: p.now, class: class, input: a.Input, output: a.Output,
		request: a.Request})
}

// come takes in a try of a request.
func (p *plant) come(f *flight) {
	f.sent = p.now
	p.scaling.arrived++
	p.route(f)
}

func (p *plant) newID() engine.ID {
	p.lastID++
	return p.lastID
}

// refusal is the flight that the engine did not take, because it is too long.
// Another reason is a mistake of the plant's.
func (p *plant) refusal(f *flight, err error) *flight {
	if !errors.Is(err, engine.ErrTooLong) {
		panic(fmt.Sprintf("simulator: %v", err))
	}
	return f
}

// completed takes a finished request out of an engine.
func (p *plant) completed(f *flight, c engine.Completion) {
	if p.batches != nil {
		p.batches.watchers.served(p.now, f, c)
	}
	if f.line == nil {
		p.scaling.served(f, c)
		p.users.finished(f, c)
		return
	}
	p.batches.answered(f, c)
}

// begun notes a request's first token.
func (p *plant) begun(r *replica, f *flight) {
	if f.line == nil {
		p.users.begun(r, f)
	} else if f.line.start.Stream {
		r.probe.begun(r)
		p.batches.firstToken(f.line)
	}
}

// preempted books what a request loses with its KV blocks.
func (p *plant) preempted(f *flight, tokens int) {
	if f.line != nil {
		p.batches.preempted(tokens)
	}
}

// aborted takes a request that was given up out of an engine.
func (p *plant) aborted(f *flight, tokens int) {
	if f.line != nil {
		p.batches.wasted += int64(tokens)
	}
}

// unfinished lists the interactive requests inside the engines, oldest first.
func (p *plant) unfinished() []*flight {
	var left []*flight
	for _, id := range slices.Sorted(maps.Keys(p.flights)) {
		if f := p.flights[id]; f.line == nil && !f.cut {
			left = append(left, f)
		}
	}
	return left
}
