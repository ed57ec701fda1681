package app

import (
	"context"
	"errors"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/inline"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/registry"
)

// newInline builds the path of interactive requests, if it is enabled.
func (a *App) newInline() (err error) {
	if !a.cfg.Inline.Enabled {
		return nil
	}
	a.inline, err = inline.New(a.cfg.Inline, inline.Deps{Admission: admission{a},
		UseCases: &useCases{a}, Logger: a.log, Registerer: a.options.Registry})
	if err != nil {
		return err
	}
	a.onClose("interactive requests", func() error {
		a.inline.Close()
		return nil
	})
	return nil
}

// inlineSettings returns the planner's part of the configuration of interactive requests.
func inlineSettings(cfg config.Config) plan.InlineConfig {
	// Half of the connections are left to requests that have a place, and to those that come.
	bounds, _ := cfg.HTTP.Within(httpserver.OpenFiles())
	return plan.InlineConfig{Enabled: cfg.Inline.Enabled, Flows: cfg.Inline.Config,
		MaxRunning: cfg.Inline.MaxRunning, MaxWaiting: bounds.MaxConnections / 2}
}

// admission has the dispatcher find places for interactive requests, or says which other process
// does: the one that leads the pool has the only account of what runs there.
type admission struct{ app *App }

// Admit implements inline.Admission.
func (a admission) Admit(ctx context.Context, r plan.Request) (inline.Place, error) {
	place, err := a.app.dispatcher.Admit(ctx, r)
	if refused, is := errors.AsType[*dispatch.Refused](err); is {
		if why := refused.Why; why == plan.NoRunner || why == plan.NoDispatcher {
			if to := a.app.leaderOf(ctx, r.Model); to != nil {
				return nil, &inline.Elsewhere{URL: to}
			}
		}
		return nil, &inline.Refused{Refusal: refused.Refusal}
	}
	if err != nil {
		return nil, err
	}
	return place, nil
}

// useCases resolves models by the registry.
type useCases struct{ app *App }

// Find implements inline.UseCases.
func (u *useCases) Find(tenant, model string) (inline.UseCase, bool) {
	catalogs, _ := u.app.feed.now() // while it is unread, it has none
	match := catalogs.UseCase(tenant, model, u.exists)
	if len(match.UseCases) == 0 {
		pools := u.implicit(match.Implicit)
		return inline.UseCase{Name: model, Implicit: true, Pools: pools},
			len(pools) > 0 && (u.app.dispatcher.Knows(model) || u.app.knownElsewhere(model))
	}
	found := match.UseCases[0]
	made := inline.UseCase{Name: model, Key: found.Set + "\x00" + model,
		Class: found.Class, Objective: found.Objective,
		Weight: found.Weight, Critical: found.Objective > 0}
	if len(found.Pools) > 0 {
		made.Pools = found.Pools
	}
	for _, t := range found.Targets {
		made.Targets = append(made.Targets, inline.Target{Model: t.Model,
			Weight: float64(t.Weight)})
	}
	switch found.Sticky {
	case registry.StickyNone:
	case registry.StickyPrefix:
		made.Sticky.Prefix = true
	default:
		made.Sticky.Header = found.Sticky
	}
	return made, true
}

// Names implements inline.UseCases.
func (u *useCases) Names(tenant string) []string {
	catalogs, _ := u.app.feed.now()
	return catalogs.UseCaseModels(tenant, u.exists)
}

// Objective implements inline.UseCases.
func (u *useCases) Objective(name string) (class string, found bool) {
	catalogs, _ := u.app.feed.now()
	o, found := catalogs.Objective(name)
	return o.Class(), found
}

func (u *useCases) exists(pool string) bool { return u.app.poolsNow().HasPool(pool) }

// implicit lists the pools that serve models without a use case, as far as may says of each. The
// name of the upstreams that name no pool is empty.
func (u *useCases) implicit(may func(pool string) bool) (pools []string) {
	now := u.app.poolsNow()
	if may("") && now.AllowsImplicit("") {
		pools = append(pools, "")
	}
	for _, p := range now.Pools() {
		if now.AllowsImplicit(p.Name) && may(p.Name) {
			pools = append(pools, p.Name)
		}
	}
	return pools
}

// interactive returns what serves interactive requests; nil: nothing.
func (a *App) interactive() api.Inline {
	if a.inline == nil {
		return nil
	}
	return a.inline
}
