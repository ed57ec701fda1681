package autoscale

import (
	"time"

	"github.com/tidefill/tidefill/registry"
)

// Declaration is what a user of a pool says of it besides its configuration, such as a ScaledObject
// of KEDA. Nil: it says nothing about that.
type Declaration struct {
	Min, Max       *int
	ColdStart      *time.Duration
	Price, Reclaim *float64
}

// Over returns the configuration of a pool with what is declared of it. The configured bounds limit
// what may be declared: GPUs cost money.
func (d Declaration) Over(c registry.Pool) registry.Pool {
	if d.Max != nil {
		c.Max = min(c.Max, *d.Max)
	}
	if d.Min != nil {
		c.Min = max(c.Min, *d.Min)
	}
	c.Min = min(c.Min, c.Max)
	if d.ColdStart != nil {
		c.ColdStart = *d.ColdStart
	}
	if d.Price != nil {
		c.Price = *d.Price
	}
	if d.Reclaim != nil {
		c.Reclaim = *d.Reclaim
	}
	return c
}

// Equal reports whether both declare the same.
func (d Declaration) Equal(other Declaration) bool {
	return equal(d.Min, other.Min) && equal(d.Max, other.Max) &&
		equal(d.ColdStart, other.ColdStart) && equal(d.Price, other.Price) &&
		equal(d.Reclaim, other.Reclaim)
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
