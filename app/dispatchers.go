package app

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/keda"
	"github.com/tidefill/tidefill/store"
)

// needsOwners reports whether it matters now which processes are registered with the store: KEDA
// asks, or a batch waits for one.
func (a *App) needsOwners() bool {
	if a.ScalerAddr() != "" {
		return true
	}
	waiting, err := a.dispatcher.Waiting(anyModels)
	return err != nil || waiting > 0
}

func anyModels([]string) bool { return true }

// dispatchersOf returns the registered processes that dispatch and whose lease lasts, or lasted
// until the given time ago. Those that do not dispatch register under other names; see present.
func dispatchersOf(owners []store.KnownOwner, age time.Duration) []store.KnownOwner {
	return slices.DeleteFunc(slices.Clone(owners), func(o store.KnownOwner) bool {
		return o.LeaseLeft <= age || strings.ContainsAny(o.Node, "/*")
	})
}

// dispatching returns the work for dispatchers of a pool, as the store has it: a process that does
// not dispatch is asked too, and it is the only one before the first dispatcher is started.
func (a *App) dispatching(
	pools []autoscale.PoolConfig, pool string,
) (work keda.Dispatching, err error) {
	work.Batches, err = a.dispatcher.Waiting(func(models []string) bool {
		return needsPool(pools, pool, models)
	})
	if err != nil || work.Batches > 0 {
		return work, err
	}
	owners, age, known := a.check.known()
	if !known {
		return work, errUnknownOwners
	}
	work.Dispatchers = len(dispatchersOf(owners, age))
	return work, nil
}

var errUnknownOwners = errors.New("the store has not said lately which processes dispatch; " +
	"/readyz says why")

// needsPool reports whether a pool serves one of the models of a batch. A batch whose models no
// pool serves needs some dispatcher too, which ends it or says what it waits for.
func needsPool(pools []autoscale.PoolConfig, pool string, models []string) bool {
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
