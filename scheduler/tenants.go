package scheduler

// tenants shares the work of a class of jobs: between tenants by weight, and between the jobs of
// each tenant. If ranked, the jobs of a tenant go by rank instead.
type tenants struct {
	cfg    *Config
	ranked bool
	byName map[string]*tenant
	share  fairShare[*tenant]

	arrivals uint64 // tenants so far
	sweepAt  int    // number of tenants at which those without a job are removed
}

type tenant struct {
	name   string
	number uint64 // in the order of arrival
	known  int    // number of jobs, parked ones included
	place  flow[*tenant]
	jobs   fairShare[*entry]
}

const (
	// maxWork limits a single charge, so that sums stay finite: 30,000 years of one engine.
	maxWork = 1e15
	// minSweep is the number of tenants below which those without a job may stay.
	minSweep = 64
)

func newTenants(cfg *Config, ranked bool) *tenants {
	return &tenants{cfg: cfg, ranked: ranked, byName: map[string]*tenant{}, sweepAt: minSweep,
		share: newFairShare(cfg.Quantum, func(a, b *tenant) bool { return a.number < b.number })}
}

// addJob adds a job, which is not offered yet.
func (ts *tenants) addJob(e *entry) {
	t := ts.byName[e.job.Tenant]
	switch {
	case t == nil:
		t = ts.add(e.job.Tenant)
	case t.known == 0:
		ts.share.rejoin(&t.place)
		t.number = ts.arrived()
	}
	t.known++
	e.tenant = t
	t.jobs.join(&e.place, e, 1)
	e.weigh()
}

// weigh sets the weights that the job asks for.
func (e *entry) weigh() {
	if e.tenant == nil {
		return
	}
	if w := e.job.TenantWeight; w > 0 {
		e.tenant.place.weight = w
	}
	if w := e.job.Weight; w > 0 {
		e.place.weight = w
	}
}

func (ts *tenants) add(name string) *tenant {
	if len(ts.byName) >= ts.sweepAt {
		ts.sweep()
	}
	weight, set := ts.cfg.TenantWeights[name]
	if !set {
		weight = 1
	}
	t := &tenant{name: name, number: ts.arrived()}
	if ts.ranked {
		t.jobs = newFairShare(0, rankedBefore)
	} else {
		t.jobs = newFairShare(ts.cfg.Quantum, sharedBefore)
	}
	ts.share.join(&t.place, t, weight)
	ts.byName[name] = t
	return t
}

// arrived returns the number of the tenant that comes now.
func (ts *tenants) arrived() uint64 {
	ts.arrivals++
	return ts.arrivals
}

// removeJob removes a job that is not offered.
func (ts *tenants) removeJob(e *entry) {
	t := e.tenant
	t.known--
	e.tenant = nil
	// One that got more than the others is remembered, so that it gains nothing by a new batch.
	if t.known == 0 && t.place.time <= ts.share.now {
		delete(ts.byName, t.name)
	}
}

// sweep removes the tenants without a job that the others have caught up with.
func (ts *tenants) sweep() {
	for name, t := range ts.byName {
		if t.known == 0 && t.place.time <= ts.share.now {
			delete(ts.byName, name)
		}
	}
	ts.sweepAt = max(minSweep, 2*len(ts.byName))
}

// offer makes an added job available to top.
func (ts *tenants) offer(e *entry) {
	t := e.tenant
	t.jobs.offer(&e.place)
	ts.update(t)
}

// withdraw undoes offer.
func (ts *tenants) withdraw(e *entry) {
	t := e.tenant
	t.jobs.withdraw(&e.place)
	ts.update(t)
}

// fix restores the order after a change of an offered job.
func (ts *tenants) fix(e *entry) {
	e.tenant.jobs.fix(&e.place)
	ts.update(e.tenant)
}

// update restores the order of the tenants after a change of the jobs of t. A tenant whose next job
// is young does not wait for its turn, so that a small batch does not wait because its tenant has a
// large one too.
func (ts *tenants) update(t *tenant) {
	next := t.jobs.top()
	t.place.eager = next != nil && next.young
	switch {
	case t.place.offered && next == nil:
		ts.share.withdraw(&t.place)
	case t.place.offered:
		ts.share.fix(&t.place)
	case next != nil:
		ts.share.offer(&t.place)
	}
}

// top returns the job whose line goes next. Nil: none is offered.
func (ts *tenants) top() *entry {
	if t := ts.share.top(); t != nil {
		return t.item.jobs.top().item
	}
	return nil
}

// charge counts started work of a job.
func (ts *tenants) charge(e *entry, work float64) {
	t := e.tenant
	ts.share.charge(&t.place, work)
	if !ts.ranked {
		t.jobs.charge(&e.place, work)
		ts.update(t)
	}
}
