package app

import (
	"context"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
)

// dispatches reports whether this process sends lines.
func (a *App) dispatches() bool { return a.cfg.Has(config.RoleDispatch) }

// servesAPI reports whether this process serves users.
func (a *App) servesAPI() bool { return a.cfg.Has(config.RoleAPI) }

// scales reports whether this process reports replicas.
func (a *App) scales() bool { return a.cfg.Has(config.RoleScale) }

// models returns the models of this process and of others in the API's form.
func (a *App) models() []api.ModelInfo {
	var models []api.ModelInfo
	listed := map[string]bool{}
	add := func(all []dispatch.ModelInfo) {
		for _, m := range all {
			if !listed[m.ID] {
				listed[m.ID] = true
				models = append(models, api.ModelInfo{ID: m.ID, Created: m.Since,
					OwnedBy: "tidefill"})
			}
		}
	}
	add(a.dispatcher.Models())
	if !a.dispatches() {
		for _, c := range a.catalogs(context.Background()) {
			add(c.Models)
		}
	}
	return a.scaling.withModels(sortedModels(models))
}

// unservedModels returns a sentence for each of the models that no upstream serves.
func (a *App) unservedModels(
	ctx context.Context, models []string,
) (map[string]string, error) {
	if !a.dispatches() {
		return dispatch.Unserved(a.catalogs(ctx), models), nil
	}
	return a.dispatcher.UnservedModels(ctx, models)
}
