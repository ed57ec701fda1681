package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/autoscale/keda"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// registered is which processes dispatch, as the store had it at one moment.
type registered struct {
	owners []store.KnownOwner // all that the store knows, those that have ended too
	at     time.Time
	// silent has the processes that dispatch and do not renew their lease, though it lasts, with
	// its end.
	silent map[string]time.Time
	led    map[string]string // the models of living batches that these lead, with the process
}

// silentBelow is the part of its lease that a process which runs always has left: it renews the
// lease each quarter of it. The rest is for a renewal that takes long.
const silentBelow = 5. / 8

// readRegistered reads which processes are registered with the store.
func (a *App) readRegistered(ctx context.Context) (registered, error) {
	owners, err := a.store.Records.KnownOwners(ctx)
	now := registered{owners: owners, at: time.Now(), silent: map[string]time.Time{}}
	if err != nil {
		return now, err
	}
	limit := time.Duration(silentBelow * float64(a.cfg.Dispatch.LeaseTTL))
	for _, o := range now.dispatchers() {
		if o.LeaseLeft < limit && o.Node != a.cfg.Node {
			now.silent[o.Node] = now.at.Add(o.LeaseLeft)
		}
	}
	if len(now.silent) > 0 {
		now.led, err = a.dispatcher.Leaders(ctx, a.dispatcher.LivingModels())
		maps.DeleteFunc(now.led, func(_, node string) bool { return now.silent[node].IsZero() })
	}
	return now, err
}

// registeredNow returns what is known of them; false: nothing is.
func (a *App) registeredNow() (registered, bool) {
	return a.check.known(a.cfg.Dispatch.LeaseTTL/4 + checkEvery)
}

// dispatchers returns the processes that dispatch and whose lease lasts. Those that do not dispatch
// register under other names; see present.
func (r registered) dispatchers() []store.KnownOwner {
	return slices.DeleteFunc(slices.Clone(r.owners), func(o store.KnownOwner) bool {
		return o.LeaseLeft <= 0 || strings.ContainsAny(o.Node, "/*")
	})
}

// whySilent returns the reason why nobody works on what a silent process leads.
func (r registered) whySilent(node string) string {
	until := r.silent[node].UTC().Round(time.Second).Format("15:04:05 UTC")
	return plan.NoLeader.Because(fmt.Sprintf("Process %s leads and does not renew its lease, "+
		"which lasts until %s.", node, until))
}

// noDispatcher reports whether no process dispatches. One that does counts itself, although its
// lease may have ended while the store was away.
func (a *App) noDispatcher(now registered) bool {
	return !a.dispatches() && len(now.dispatchers()) == 0
}

// silent reports whether a process has not been heard of for some time, though its lease lasts.
func (a *App) silent(node string) bool {
	now, known := a.registeredNow()
	return known && !now.silent[node].IsZero()
}

// notLed returns a reason if no process works on batches of these models; empty: one does, or that
// is not known.
func (a *App) notLed(models []string) string {
	now, known := a.registeredNow()
	switch {
	case !known:
		return ""
	case a.noDispatcher(now):
		return plan.NoDispatcher.Text()
	}
	for _, m := range models {
		if node := now.led[m]; node != "" {
			return now.whySilent(node)
		}
	}
	return ""
}

// notLedBy returns a reason if what a process has published is no longer so, because it has
// probably ended; empty: it runs, or that is not known.
func (a *App) notLedBy(node string) string {
	now, known := a.registeredNow()
	if !known || node == a.cfg.Node || slices.ContainsFunc(now.dispatchers(),
		func(o store.KnownOwner) bool { return o.Node == node && now.silent[node].IsZero() }) {
		return ""
	}
	switch {
	case a.noDispatcher(now):
		return plan.NoDispatcher.Text()
	case !now.silent[node].IsZero():
		return now.whySilent(node)
	}
	return plan.NoLeader.Because(fmt.Sprintf("Process %s led, and its lease has ended.", node))
}

// notLedNow lists the reasons why nobody works on some of the batches.
func (a *App) notLedNow() (reasons []string) {
	now, known := a.registeredNow()
	waiting, err := a.dispatcher.Waiting(anyModels)
	switch {
	case !known:
	case a.noDispatcher(now) && err == nil && waiting > 0:
		return []string{plan.NoDispatcher.Because("No process with the role dispatch runs. " +
			"Batches that wait for one: " + humanize.Thousands(int64(waiting)) + ".")}
	}
	for _, node := range slices.Sorted(maps.Values(now.led)) {
		if why := now.whySilent(node); !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	return reasons
}

// withoutDispatcher returns the number of batches that wait while no process dispatches; NaN: it is
// not known.
func (a *App) withoutDispatcher() float64 {
	now, known := a.registeredNow()
	waiting, err := a.dispatcher.Waiting(anyModels)
	switch {
	case !known || err != nil:
		return math.NaN()
	case !a.noDispatcher(now):
		return 0
	}
	return float64(waiting)
}

func anyModels([]string) bool { return true }

// dispatching returns the work for dispatchers of a pool, as the store has it: a process that does
// not dispatch is asked too, and it is the only one before the first dispatcher is started.
func (a *App) dispatching(
	pools []registry.Pool, pool string,
) (work keda.Dispatching, err error) {
	work.Batches, err = a.dispatcher.Waiting(func(models []string) bool {
		return needsPool(pools, pool, models)
	})
	if err != nil || work.Batches > 0 {
		return work, err
	}
	now, known := a.registeredNow()
	if !known {
		return work, errUnknownOwners
	}
	work.Dispatchers = len(now.dispatchers())
	return work, nil
}

var errUnknownOwners = errors.New("the store has not said lately which processes dispatch; " +
	"/readyz says why")

// needsPool reports whether a pool serves one of the models of a batch. A batch whose models no
// pool serves needs some dispatcher too, which ends it or says what it waits for.
func needsPool(pools []registry.Pool, pool string, models []string) bool {
	none := true
	for _, p := range pools {
		for _, m := range p.Models {
			if slices.Contains(models, m) {
				none = false
				if p.Name == pool {
					return true
				}
			}
		}
	}
	return none
}
