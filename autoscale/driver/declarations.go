package driver

import (
	"maps"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/registry"
)

// declarations holds what ScaledObjects have said of the pools, over their configuration.
type declarations struct {
	changed func() // called after a change

	mu     sync.Mutex
	byPool map[string]autoscale.Declaration
}

// set replaces what is declared of a pool.
func (d *declarations) set(pool string, of autoscale.Declaration) {
	d.mu.Lock()
	same := d.byPool[pool].Equal(of)
	d.byPool[pool] = of
	d.mu.Unlock()
	if !same {
		d.changed()
	}
}

// over returns the configured pools with what is declared of them.
func (d *declarations) over(pools []registry.Pool) []registry.Pool {
	d.mu.Lock()
	declared := maps.Clone(d.byPool)
	d.mu.Unlock()
	pools = slices.Clone(pools)
	for i, c := range pools {
		pools[i] = declared[c.Name].Over(c)
	}
	return pools
}
