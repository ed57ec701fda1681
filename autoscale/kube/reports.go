package kube

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// reports holds the present fault of each request that a pool makes again and again. It counts
// faults, and logs when one begins, changes its kind, or ends.
type reports struct {
	pool   string // empty: it belongs to none
	log    *slog.Logger
	gauges *gauges

	mu     sync.Mutex
	faults map[string]error // by resource
}

func (c *Cluster) newReports(pool string) *reports {
	return &reports{pool: pool, log: c.log, gauges: c.gauges, faults: map[string]error{}}
}

// set sets the fault of a resource; nil: there is none.
func (r *reports) set(resource string, err error) {
	r.mu.Lock()
	before := r.faults[resource]
	if err != nil {
		r.faults[resource] = err
	} else {
		delete(r.faults, resource)
	}
	r.mu.Unlock()
	if err != nil {
		r.gauges.errors.WithLabelValues(r.pool, resource, kindOf(err)).Inc()
	}
	switch {
	case err != nil && (before == nil || kindOf(before) != kindOf(err)):
		r.log.Warn("a request to Kubernetes failed, retrying; the last state is held", "pool",
			r.pool, "resource", resource, "error", err)
	case err == nil && before != nil:
		r.log.Info("requests to Kubernetes succeed again", "pool", r.pool, "resource", resource)
	}
}

// get returns the faults in the order of the resources' names.
func (r *reports) get() (faults []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(r.faults)) {
		faults = append(faults, r.faults[resource])
	}
	return faults
}
