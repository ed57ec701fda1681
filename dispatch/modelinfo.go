package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/upstream"
)

// ModelInfo lists the runners that serve a model.
type ModelInfo struct {
	ID      string
	Runners []string
	Since   time.Time // first seen
}

// Models lists the models that the upstreams serve, by name.
func (d *Dispatcher) Models() []ModelInfo { return modelsOf(d.settings.Load().open) }

// modelsOf lists the models of runners, by name.
func modelsOf(runners map[string]*upstream.Runner) []ModelInfo {
	byID := map[string]*ModelInfo{}
	for _, u := range runners {
		u.EachModel(func(m string, since time.Time) {
			info := byID[m]
			if info == nil {
				info = &ModelInfo{ID: m, Since: since}
				byID[m] = info
			}
			info.Runners = append(info.Runners, u.Name)
			if since.Before(info.Since) {
				info.Since = since
			}
		})
	}
	all := make([]ModelInfo, 0, len(byID))
	for _, info := range byID {
		slices.Sort(info.Runners)
		all = append(all, *info)
	}
	slices.SortFunc(all, func(a, b ModelInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
