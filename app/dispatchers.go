package app

import (
	"slices"
	"strings"
	"time"

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
