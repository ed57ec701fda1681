package dispatch

import (
	"maps"
	"slices"
)

// Catalog is what a process knows of the models that runners serve, for processes that ask no
// runner.
type Catalog struct {
	Models []ModelInfo
	// Offered are the models that a user may name.
	Offered []string
	// Known are those of which batches wait, although no runner may serve them now.
	Known []string
	// Complete: a batch of any other model can't run.
	Complete bool
}

// Catalog returns what this process knows of models.
func (d *Dispatcher) Catalog() Catalog {
	now := d.settings.Load()
	known := map[string]bool{}
	for _, m := range now.Registry.Expected() {
		known[m] = true
	}
	for m := range now.removedModels {
		known[m] = true
	}
	for _, u := range now.open {
		for _, m := range u.Served() {
			known[m] = true
		}
	}
	offered := d.catalog.offered()
	for _, m := range offered {
		known[m] = true
	}
	return Catalog{Models: d.Models(), Offered: offered, Known: slices.Sorted(maps.Keys(known)),
		Complete: !now.WaitForModels && d.catalog.complete() && !d.catalog.takesAny()}
}

// Unserved returns a sentence for each of the models that no runner serves, as far as other
// processes know. It returns none if one of them may serve any, or if there is none.
func Unserved(catalogs []Catalog, models []string) map[string]string {
	var offered []string
	known := map[string]bool{}
	for _, c := range catalogs {
		if !c.Complete {
			return nil
		}
		offered = append(offered, c.Offered...)
		for _, m := range c.Known {
			known[m] = true
		}
	}
	if len(catalogs) == 0 {
		return nil
	}
	slices.Sort(offered)
	offered = slices.Compact(offered)
	sentences := map[string]string{}
	for _, m := range models {
		if !known[m] {
			sentences[m] = notServed(m, offered)
		}
	}
	return sentences
}
