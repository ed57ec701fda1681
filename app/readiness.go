package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/humanize"
)

// readyInterval is the time between two checks for Options.Ready.
const readyInterval = 20 * time.Millisecond

// readiness is the answer of /readyz: whether the daemon takes requests, and why not.
type readiness struct {
	Ready   bool     `json:"ready"`
	Waiting []string `json:"waiting"`
	// Degraded is what does not work and keeps no role from its work.
	Degraded  []string                      `json:"degraded"`
	Roles     map[config.Role]roleReadiness `json:"roles"`
	FreeBytes *uint64                       `json:"free_bytes"` // null: unknown
}

// roleReadiness is whether the process does the work of a role, and why not.
type roleReadiness struct {
	Ready   bool     `json:"ready"`
	Waiting []string `json:"waiting"`
	// State says what the process does: serving, leading, standing by, waiting for runners,
	// deciding, following or stopping.
	State string `json:"state"`
}

// readiness returns at once what is known of the parts. A full disk is reported and does not count,
// because results must stay reachable and files deletable.
func (a *App) readiness() readiness {
	r := readiness{Waiting: []string{}, Degraded: []string{},
		Roles: map[config.Role]roleReadiness{}}
	var common []string
	if !a.dispatches() && !a.registered.Load() {
		common = append(common, "registering with the store")
	}
	if err := a.store.Available(); err != nil {
		common = append(common, err.Error())
	}
	database, _ := a.check.away()
	if database != "" {
		common = append(common, "the store: "+database)
	}
	if misplaced := a.misplaced(); misplaced != "" {
		common = append(common, misplaced)
	}
	stops := a.draining.Load()
	if stops { // whatever else is missing then
		common = []string{"shutting down"}
	}
	r.Waiting = append(r.Waiting, common...)
	for _, role := range a.cfg.Roles {
		one := roleReadiness{State: "stopping"}
		if !stops {
			one = a.roleReadiness(role)
		}
		r.Waiting = append(r.Waiting, one.Waiting...)
		one.Waiting = append(append([]string{}, common...), one.Waiting...)
		one.Ready = len(one.Waiting) == 0
		r.Roles[role] = one
	}
	r.Degraded = append(append(r.Degraded, a.problems()...), a.sourcesAway()...)
	if free, err := a.store.FreeBytes(); err == nil {
		r.FreeBytes = &free
	}
	r.Ready = len(r.Waiting) == 0
	return r
}

// answersStopped returns why some lines do not start whose answers can't be kept; empty: all do.
func (a *App) answersStopped() string {
	if a.dispatcher == nil {
		return ""
	}
	return a.dispatcher.AnswersStopped().Text()
}

// failing names the runners that get single lines only, because their answers are bad.
func (a *App) failing() (names []string) {
	if a.dispatcher == nil {
		return nil
	}
	for _, f := range a.dispatcher.Failures() {
		if f.Failing {
			names = append(names, fmt.Sprintf("runner %s is failing: %s", f.Runner, f.Text()))
		}
	}
	return names
}

// problems lists what does not work, besides sources of readings.
func (a *App) problems() (all []string) {
	if _, bucket := a.check.away(); bucket != "" {
		all = append(all, "the bucket: "+bucket)
	}
	if away := a.sharing.degraded(); away != "" {
		all = append(all, away)
	}
	if _, older := a.check.files(); older != "" {
		all = append(all, older)
	}
	all = append(append(all, a.failing()...), append(a.feed.problems(), a.pools.problems()...)...)
	all = append(all, a.targets.away()...)
	if full := cmp.Or(a.diskFull(), a.answersStopped()); full != "" {
		all = append(all, full)
	}
	return append(all, a.notLedNow()...)
}

// diskFull returns the reason that the disk is full: that of the data directory or, as the pools of
// this process say, that of the database. Empty: none is.
func (a *App) diskFull() string {
	switch {
	case slices.ContainsFunc(a.dispatcher.Pools(), func(p plan.PoolStatus) bool {
		return p.Reason == plan.DiskFull
	}):
		return plan.DiskFull.Text()
	case a.store.CheckSpace() == nil:
		return ""
	case a.store.BucketAway == nil:
		return plan.DiskFull.Text()
	}
	return plan.DiskFull.Because("The data directory is full, and answers above 1 MiB need it.")
}

// partAway says which part of the store is away, for users.
func (a *App) partAway() string {
	switch database, bucket := a.check.away(); {
	case database == notLooked:
	case database != "":
		return "The database does not answer."
	case bucket != "":
		return "The bucket, which holds files and results, does not answer."
	}
	return ""
}

// maxSources is the greatest number of sources of readings that are named because they give none.
const maxSources = 20

// sourcesAway names the sources of readings that give none.
func (a *App) sourcesAway() (names []string) {
	all := a.degraded()
	for _, d := range all[:min(len(all), maxSources)] {
		names = append(names, fmt.Sprintf("%s of %s: %s", d.Source, d.Target, d.State))
	}
	if more := len(all) - maxSources; more > 0 {
		names = append(names, humanize.Count(more, "more source"))
	}
	return names
}

// misplaced returns why this process does not reach the files of the store, unless that is said
// already: of the data directory, or by the dispatcher. Empty: it does.
func (a *App) misplaced() string {
	if a.store.Available() != nil || a.dispatcher.Obstacle() != "" {
		return ""
	}
	misplaced, _ := a.check.files()
	return misplaced
}

// roleReadiness checks what only one role needs.
func (a *App) roleReadiness(role config.Role) (r roleReadiness) {
	switch role {
	case config.RoleAPI:
		r.State = "serving"
	case config.RoleDispatch:
		_, leads := a.dispatcher.Epoch()
		switch {
		case a.dispatcher.Obstacle() != "":
			r.State = "leading nothing"
			r.Waiting = append(r.Waiting, "the dispatcher: "+a.dispatcher.Obstacle())
		case !a.dispatcher.Ready():
			r.State = "starting"
			r.Waiting = append(r.Waiting,
				"the dispatcher is taking over the batches in the store")
		case leads:
			r.State = "leading"
		case a.dispatcher.StandsBy():
			r.State = "standing by"
		default:
			r.State = "waiting for runners"
		}
	case config.RoleScale:
		switch {
		case !a.plansReplicas():
			r.State = "no pools are configured"
		case a.sharing.decides.Load():
			r.State = "deciding"
		default:
			r.State = "following"
		}
	}
	return r
}

// notifyReady calls Options.Ready once the daemon is ready, unless ctx ends before.
func (a *App) notifyReady(ctx context.Context) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for !a.readiness().Ready {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	a.options.Ready()
	return nil
}
