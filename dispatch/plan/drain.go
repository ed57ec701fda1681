package plan

// marks are names that are marked.
type marks map[string]bool

func (m *marks) set(name string, marked bool) {
	if *m == nil {
		*m = marks{}
	}
	if marked {
		(*m)[name] = true
	} else {
		delete(*m, name)
	}
}

// runnerDrain closes a runner for new lines, or opens it. Flow control does not learn of it: the
// load of the runner is still subtracted, and it is what it was when it is opened.
func (p *Planner) runnerDrain(ev RunnerDrain) {
	p.drains.set(ev.Runner, ev.Draining)
	if r := p.runners[ev.Runner]; r != nil && r.draining != ev.Draining {
		r.draining = ev.Draining
		if r.pool != nil {
			r.pool.stale = true // its limit
		}
	}
}

// poolClosed closes the pools of a name for new lines, or opens them.
func (p *Planner) poolClosed(ev PoolClosed) {
	p.closed.set(ev.Pool, ev.Closed)
	for _, pool := range p.pools {
		if pool.name == ev.Pool {
			pool.closed = ev.Closed
		}
	}
}
