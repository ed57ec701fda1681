package dispatch

import (
	"github.com/tidefill/tidefill/dispatch/work"

	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// lease renews this process's registration with the store, and acquires and resigns the leadership
// of runners and models under it.
type lease struct {
	*registration
	store   leaseStore
	leading *leadership
	team    team // only leadUntil uses it

	inbox    *work.Inbox
	runs     *work.Runs
	counter  *counter
	claimer  *claimer
	learning *learning
	settings func() *settings
	lose     context.CancelCauseFunc // ends the session
}

// registration is this process's registration with the store, of which all that it claims is part.
type registration struct {
	owner store.Owner
	ttl   time.Duration
	log   *slog.Logger
	// renewed is when the store last granted the lease; the clock is monotonic.
	renewed atomic.Pointer[time.Time]
}

// leaseStore is the part of the store that a lease needs.
type leaseStore interface {
	Owners
	Leads
}

// register registers the node with the store, which grants a lease.
func register(
	ctx context.Context, from Owners, node string, ttl time.Duration, log *slog.Logger,
) (*registration, error) {
	now := time.Now()
	owner, err := from.Register(ctx, node, ttl)
	if err != nil {
		return nil, fmt.Errorf("register node %s: %w", node, err)
	}
	r := &registration{owner: owner, ttl: ttl, log: log.With("node", owner.Node)}
	r.renewed.Store(&now)
	return r, nil
}

// unregister ends all claims at once, so that other processes need not wait for the lease to
// expire.
func (l *lease) unregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := l.store.Unregister(ctx, l.owner); err != nil {
		l.log.WarnContext(ctx, "could not unregister; the claims end with the lease", "error", err)
	}
}

// renewUntil renews the lease until ctx is done, and ends the session when the lease is lost.
func (l *lease) renewUntil(ctx context.Context) {
	tick := time.NewTicker(l.ttl / 4)
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
			l.renewed.Store(&asked)
			l.inbox.Event(plan.Tick{}) // starts that an expired lease has held may go on
		case errors.Is(err, store.ErrFenced):
			l.lose(err)
			return
		case ctx.Err() == nil:
			l.log.WarnContext(ctx, "could not renew the lease", "error", err)
		}
	}
}

// renew renews the registration and then confirms the leadership, before any line starts under the
// new lease.
func (l *lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.ttl)
	defer cancel()
	if err := l.store.Renew(ctx, l.owner, l.ttl); err != nil {
		return err
	}
	return l.confirm(ctx)
}

// confirm checks that this process still leads all that it did. It does not if it was suspended for
// longer than its lease and another process took over.
func (l *lease) confirm(ctx context.Context) error {
	names := l.leading.names()
	if len(names) == 0 {
		return nil
	}
	_, others, err := l.store.Lead(ctx, l.owner, names)
	if err == nil && len(others) > 0 {
		return fmt.Errorf("%s leads %d of our runners and models: %w",
			slices.Sorted(maps.Values(others))[0], len(others), store.ErrFenced)
	}
	return err
}

// expired reports whether the lease may have expired, as far as this process can know: it was
// suspended, or the store has not answered. Its claims may belong to another process then.
func (r *registration) expired(now time.Time) bool { return now.Sub(*r.renewed.Load()) > r.ttl }

// leadUntil acquires the leadership of what the runners serve, again and again until ctx is done.
func (l *lease) leadUntil(ctx context.Context) {
	tick := time.NewTicker(work.RetryEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		// a fenced owner is noticed when the lease is renewed
		if err := l.lead(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrFenced) {
			l.log.WarnContext(ctx, "could not acquire leadership, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-l.leading.changed:
		}
	}
}

func (l *lease) lead(ctx context.Context) error {
	settings := l.settings()
	l.leading.assign(l.runs.Models(), settings.MaxModels)
	now := time.Now()
	groups := l.leading.wanted(now, settings.ScaledModels)
	if err := l.team.join(ctx, l.store, l.owner, groups, now); err != nil {
		return err
	}
	if slices.ContainsFunc(groups, l.leading.lacksPart) {
		if err := l.acquire(ctx, now, groups); err != nil {
			return err
		}
	}
	if err := l.yieldSurplus(ctx, now, groups); err != nil {
		return err
	}
	for _, event := range l.leading.announce(now) {
		l.inbox.Event(event)
	}
	return l.resign(ctx, groups)
}

// acquire leads this process's share of the groups and, of those that other processes lead in part,
// what can be led alone.
func (l *lease) acquire(ctx context.Context, now time.Time, groups []group) error {
	others, err := l.store.Leaders(ctx, slices.Concat(groups...))
	if err != nil {
		return err
	}
	maps.DeleteFunc(others, func(_, node string) bool { return node == l.owner.Node })
	stoodBy, earlier := l.leading.standsBy(), l.leading.otherLeaders()
	// Two lease times give a leader that restarts the time to lead again.
	free, alone := l.leading.see(now, groups, others, 2*l.ttl)
	if !stoodBy && l.leading.standsBy() {
		l.log.InfoContext(ctx, "standing by: another dispatcher leads",
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
		epoch, others, err := l.store.Lead(ctx, l.owner, g)
		if err != nil || len(others) > 0 {
			return err
		}
		l.log.WarnContext(ctx, "leading only some of what the upstreams serve, another dispatcher "+
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
func (l *lease) leadGroups(
	ctx context.Context, groups []group, earlier map[string]string,
) error {
	for len(groups) > 0 {
		names := slices.Concat(groups...)
		from, err := l.predecessors(ctx, names, earlier)
		if err != nil {
			return err
		}
		epoch, others, err := l.store.Lead(ctx, l.owner, names)
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
func (l *lease) predecessors(
	ctx context.Context, names []string, earlier map[string]string,
) (string, error) {
	last, err := l.store.LastLeads(ctx, names)
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
func (l *lease) takeOver(ctx context.Context, epoch int64, names []string, from string) error {
	if err := l.counter.recount(ctx); err != nil {
		return fmt.Errorf("count the lines left of all batches: %w", err)
	}
	if l.leading.gain(epoch, names) {
		l.inbox.Event(l.learning.recall(ctx)) // before the runners come
		log := l.log
		if from != "" {
			log = log.With("took_over_from", from)
		}
		log.InfoContext(ctx, "leading", "epoch", epoch, "names", len(names))
	}
	return nil
}

// resign gives up what no runner serves any more, and the groups that other processes are to lead.
// What this process still has chunks of stays: they are given back for the next time.
func (l *lease) resign(ctx context.Context, groups []group) error {
	wanted := slices.Concat(groups...)
	yields := l.leading.yields()
	var unwanted []string
	for _, name := range l.leading.names() {
		if !slices.Contains(wanted, name) {
			unwanted = append(unwanted, name)
		}
	}
	if len(unwanted)+len(yields) == 0 {
		return nil
	}
	l.leading.claims.Lock()
	defer l.leading.claims.Unlock()
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
	l.claimer.giveBack(left)
	if len(unwanted) == 0 {
		return nil
	}
	l.leading.lose(unwanted) // first, or confirm could find that another process leads them
	if err := l.store.Resign(ctx, l.owner, unwanted); err != nil {
		l.leading.gain(0, unwanted) // for the next try
		return err
	}
	return nil
}

// held returns the models of which this process has chunks, by their names.
func (l *lease) held() map[string]string {
	held := map[string]string{}
	for model := range l.runs.HeldModels() {
		held[modelName(model)] = model
	}
	return held
}
