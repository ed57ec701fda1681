package simulator

import (
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/autoscale"
)

// Redecider decides on what a daemon has observed, as a simulation would. With the daemon's
// configuration it comes to the daemon's decisions. With another one it shows what would have been
// decided at each moment, though not what would have come of it: the states stay those that the
// daemon's decisions have led to.
type Redecider struct {
	cfg     autoscale.Config
	scaling *scaling // nil: nothing was observed
}

// NewRedecider returns a Redecider that has observed nothing.
func NewRedecider(cfg autoscale.Config) (*Redecider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Redecider{cfg: cfg}, nil
}

// errNoBegin says that steps are missing.
var errNoBegin = errors.New("the first decision does not begin a fleet, so its beginning is " +
	"missing; give the complete file")

// Step returns the decision for a recorded step. The steps come in their order.
func (r *Redecider) Step(s autoscale.Row) (autoscale.Decision, error) {
	switch {
	case s.Begin != "":
		r.scaling = newScaling(&simulation{})
		var err error
		if r.scaling.fleet, err = autoscale.NewFleet(r.cfg); err != nil {
			return autoscale.Decision{}, err
		}
	case r.scaling == nil:
		return autoscale.Decision{}, errNoBegin
	}
	for _, l := range s.Recalled {
		if err := r.scaling.fleet.Recall(l.At, l.PoolLearned, l.Age); err != nil {
			return autoscale.Decision{}, fmt.Errorf("decide on the state of %v: %w", s.At, err)
		}
	}
	r.scaling.sim.now = s.At
	return r.scaling.decide(s.State), nil
}
