// Package collectors registers Prometheus collectors of parts that may be built more than once.
package collectors

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Once registers a collector, or returns the one that is registered in its place. Without a
// registerer it only returns the collector.
func Once[C prometheus.Collector](registerer prometheus.Registerer, c C) C {
	if registerer == nil {
		return c
	}
	err := registerer.Register(c)
	if before := (prometheus.AlreadyRegisteredError{}); errors.As(err, &before) {
		return before.ExistingCollector.(C)
	}
	if err != nil {
		panic(err) // as MustRegister
	}
	return c
}
