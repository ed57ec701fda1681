package lead

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// Lease renews this process's registration with the store, and acquires and resigns the leadership
// of runners and models under it.
type Lease struct {
	*work.Session
	LeaseParts
	team team // only LeadUntil uses it
}

// LeaseParts are what a lease needs of the store and of the other parts of a session.
type LeaseParts struct {
	Registration *Registration
	Store        Store
	Leading      *Leadership
	Fleet        *Fleet
	Counts       Counter
	Claims       Chunks
	States       States
	// Limits returns the pools of the models whose replicas are decided about, and the number of
	// models to which runners without a list are limited.
	Limits func() (scaled map[string]string, maxModels int)
}

// NewLease returns the lease of a session.
func NewLease(s *work.Session, parts LeaseParts) *Lease {
	return &Lease{Session: s, LeaseParts: parts}
}

// Counter counts what the store has of all batches, since other processes may have worked on
// them.
type Counter interface {
	Recount(ctx context.Context) error
}

// Chunks gives back the chunks of models that this process holds.
type Chunks interface {
	GiveBack(models map[string]bool)
}

// States reads what was learned of pools before.
type States interface {
	Recall(ctx context.Context) plan.Recall
}

// Registration is this process's registration with the store, of which all that it claims is part.
type Registration struct {
	Owner store.Owner
	TTL   time.Duration
	// renewed is when the store last granted the lease; the clock is monotonic.
	renewed atomic.Pointer[time.Time]
}

// Store is the part of the store that a lease needs.
type Store interface {
	Owners
	Leads
}

// Register registers the node with the store, which grants a lease.
func Register(
	ctx context.Context, from Owners, node string, ttl time.Duration,
) (*Registration, error) {
	now := time.Now()
	owner, err := from.Register(ctx, node, ttl)
	if err != nil {
		return nil, fmt.Errorf("register node %s: %w", node, err)
	}
	r := &Registration{Owner: owner, TTL: ttl}
	r.renewed.Store(&now)
	return r, nil
}

// unregisterTimeout limits the time to unregister.
const unregisterTimeout = 5 * time.Second

// Unregister ends all claims at once, so that other processes need not wait for the lease to
// expire.
func (l *Lease) Unregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unregisterTimeout)
	defer cancel()
	if err := l.Store.Unregister(ctx, l.Owner); err != nil {
		l.Log.WarnContext(ctx, "could not unregister; the claims end with the lease", "error", err)
	}
}

// RenewUntil renews the lease until ctx is done, and ends the session when the lease is lost.
func (l *Lease) RenewUntil(ctx context.Context) {
	tick := time.NewTicker(l.Registration.TTL / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		err := l.renew(ctx)
		switch {
		case err == nil:
			l.Registration.renewed.Store(&asked)
			l.Inbox.Event(plan.Tick{}) // starts that an expired lease has held may go on
		case errors.Is(err, store.ErrFenced):
			l.Lose(err)
			return
		case ctx.Err() == nil:
			l.Log.WarnContext(ctx, "could not renew the lease", "error", err)
		}
	}
}

// renew renews the registration and then confirms the leadership, before any line starts under the
// new lease.
func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Registration.TTL)
	defer cancel()
	if err := l.Store.Renew(ctx, l.Owner, l.Registration.TTL); err != nil {
		return err
	}
	return l.confirm(ctx)
}

// confirm checks that this process still leads all that it did. It does not if it was suspended for
// longer than its lease and another process took over.
func (l *Lease) confirm(ctx context.Context) error {
	names := l.Leading.Names()
	if len(names) == 0 {
		return nil
	}
	_, others, err := l.Store.Lead(ctx, l.Owner, names)
	if err == nil && len(others) > 0 {
		return fmt.Errorf("%s leads %d of our runners and models: %w",
			slices.Sorted(maps.Values(others))[0], len(others), store.ErrFenced)
	}
	return err
}

// Expired reports whether the lease may have expired, as far as this process can know: it was
// suspended, or the store has not answered. Its claims may belong to another process then.
func (r *Registration) Expired(now time.Time) bool { return now.Sub(*r.renewed.Load()) > r.TTL }

// LeadUntil acquires the leadership of what the runners serve, again and again until ctx is done.
func (l *Lease) LeadUntil(ctx context.Context) {
	tick := time.NewTicker(work.RetryEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		// a fenced owner is noticed when the lease is renewed
		if err := l.lead(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrFenced) {
			l.Log.WarnContext(ctx, "could not acquire leadership, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-l.Fleet.changed:
		}
	}
}

func (l *Lease) lead(ctx context.Context) error {
	scaled, maxModels := l.Limits()
	l.Fleet.assign(l.Runs.Models(), maxModels)
	now := time.Now()
	groups := l.Fleet.wanted(now, scaled)
	if err := l.team.join(ctx, l.Store, l.Owner, groups, now); err != nil {
		return err
	}
	if slices.ContainsFunc(groups, l.Leading.lacksPart) {
		if err := l.acquire(ctx, now, groups); err != nil {
			return err
		}
	}
	if err := l.yieldSurplus(ctx, now, groups); err != nil {
		return err
	}
	usable := l.Leading.usable()
	for _, event := range l.Fleet.announce(now, func(name string) bool { return usable[name] }) {
		l.Inbox.Event(event)
	}
	return l.resign(ctx, groups)
}

// acquire leads this process's share of the groups and, of those that other processes lead in part,
// what can be led alone.
func (l *Lease) acquire(ctx context.Context, now time.Time, groups []group) error {
	others, err := l.Store.Leaders(ctx, slices.Concat(groups...))
	if err != nil {
		return err
	}
	maps.DeleteFunc(others, func(_, node string) bool { return node == l.Owner.Node })
	stoodBy, earlier := l.Leading.StandsBy(), l.Leading.otherLeaders()
	// Two lease times give a leader that restarts the time to lead again.
	free, alone := l.Leading.see(now, groups, others, 2*l.Registration.TTL, l.Fleet.names())
	if !stoodBy && l.Leading.StandsBy() {
		l.Log.InfoContext(ctx, "standing by: another dispatcher leads",
			"leaders", slices.Compact(slices.Sorted(maps.Values(others))))
	}
	taken, err := l.take(ctx, now, groups, free)
	if err != nil {
		return err
	}
	if err := l.leadGroups(ctx, taken, earlier); err != nil {
		return err
	}
	for _, g := range alone {
		from, err := l.predecessors(ctx, g, earlier)
		if err != nil {
			return err
		}
		epoch, others, err := l.Store.Lead(ctx, l.Owner, g)
		if err != nil || len(others) > 0 {
			return err
		}
		l.Log.WarnContext(ctx, "leading only some of what the upstreams serve, another dispatcher "+
			"leads the rest: give dispatchers that share a store the same upstreams, or "+
			"upstreams that serve different models", "names", g)
		if err := l.takeOver(ctx, epoch, g, from); err != nil {
			return err
		}
	}
	return nil
}

// leadGroups leads groups, except those that another process has begun to lead meanwhile. earlier
// are the other leaders as of the last try.
func (l *Lease) leadGroups(
	ctx context.Context, groups []group, earlier map[string]string,
) error {
	for len(groups) > 0 {
		names := slices.Concat(groups...)
		from, err := l.predecessors(ctx, names, earlier)
		if err != nil {
			return err
		}
		epoch, others, err := l.Store.Lead(ctx, l.Owner, names)
		if err != nil {
			return err
		}
		if len(others) == 0 {
			return l.takeOver(ctx, epoch, names, from)
		}
		groups = slices.DeleteFunc(groups, func(g group) bool {
			return slices.ContainsFunc(g, func(name string) bool { return others[name] != "" })
		})
	}
	return nil
}

// predecessors says who has led the names, as far as this process does not, and why they do no
// longer; empty: nobody has. earlier are the other leaders as of the last try.
func (l *Lease) predecessors(
	ctx context.Context, names []string, earlier map[string]string,
) (string, error) {
	last, err := l.Store.LastLeads(ctx, names)
	if err != nil {
		return "", err
	}
	ends := map[string]bool{}
	for _, name := range names {
		lead, known := last[name]
		switch {
		case !known && earlier[name] != "":
			ends[earlier[name]+", which handed over"] = true
		case lead.State == store.LeadExpired:
			ends[lead.Node+", whose lease ended"] = true
		case lead.State == store.LeadStopped:
			ends[lead.Node+", which stopped"] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(ends)), "; "), nil
}

// takeOver begins to lead. The lines left of each batch are counted again, since another process
// may have worked on it. from says for the log who led before.
func (l *Lease) takeOver(ctx context.Context, epoch int64, names []string, from string) error {
	if err := l.Counts.Recount(ctx); err != nil {
		return fmt.Errorf("count the lines left of all batches: %w", err)
	}
	if l.Leading.gain(epoch, names) {
		l.Inbox.Event(l.States.Recall(ctx)) // before the runners come
		log := l.Log
		if from != "" {
			log = log.With("took_over_from", from)
		}
		log.InfoContext(ctx, "leading: this process sends lines to the runners",
			"runners_and_models", len(names))
	}
	return nil
}

// resign gives up what no runner serves any more, and the groups that other processes are to lead.
// What this process still has chunks of stays: they are given back for the next time.
func (l *Lease) resign(ctx context.Context, groups []group) error {
	wanted := slices.Concat(groups...)
	yields := l.Leading.yields()
	var unwanted []string
	for _, name := range l.Leading.Names() {
		if !slices.Contains(wanted, name) {
			unwanted = append(unwanted, name)
		}
	}
	if len(unwanted)+len(yields) == 0 {
		return nil
	}
	return l.Leading.resign(func() error { return l.resignNow(ctx, unwanted, yields) })
}

// resignNow resigns names, and groups as a whole, of which this process has no chunks. It gives
// back those that it has. No chunk is claimed meanwhile.
func (l *Lease) resignNow(ctx context.Context, unwanted []string, yields []group) error {
	held, left := l.held(), map[string]bool{}
	unwanted = slices.DeleteFunc(unwanted, func(name string) bool {
		if model, is := held[name]; is {
			left[model] = true
			return true
		}
		return false
	})
	// As a whole, or the next leader would get runners without their models.
	for _, g := range yields {
		if heldOf(g, held) == 0 {
			unwanted = append(unwanted, g...)
			continue
		}
		for _, name := range g {
			if model, is := held[name]; is {
				left[model] = true
			}
		}
	}
	l.Claims.GiveBack(left)
	if len(unwanted) == 0 {
		return nil
	}
	l.Leading.lose(unwanted) // first, or confirm could find that another process leads them
	if err := l.Store.Resign(ctx, l.Owner, unwanted); err != nil {
		l.Leading.gain(0, unwanted) // for the next try
		return err
	}
	return nil
}

// held returns the models of which this process has chunks, by their names.
func (l *Lease) held() map[string]string {
	held := map[string]string{}
	for model := range l.Runs.HeldModels() {
		held[ModelName(model)] = model
	}
	return held
}
