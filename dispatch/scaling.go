package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/store"
)

// errNotRegistered says that this process is not registered with the store at this moment.
var errNotRegistered = errors.New("the dispatcher is not registered with the store yet")

// LeadScaling reports whether this process sets the number of replicas of pools. Of the processes
// that share a store one does, for as long as its registration lasts. It is the leader of their
// runners, which knows what they do.
func (d *Dispatcher) LeadScaling(ctx context.Context) (bool, error) {
	s := d.current.Load()
	if s == nil || d.StandsByForScaling() {
		return false, nil
	}
	_, others, err := d.deps.Metadata.Lead(ctx, s.lease.Owner, []string{lead.ScalingName})
	if err != nil {
		if errors.Is(err, store.ErrFenced) {
			return false, nil
		}
		return false, fmt.Errorf("acquire the leadership of scaling: %w", err)
	}
	return len(others) == 0, nil
}

// SaveStates keeps states for the process that leads scaling next, and for those that report what
// this one has decided.
func (d *Dispatcher) SaveStates(ctx context.Context, states []store.LearnedState) error {
	s := d.current.Load()
	if s == nil {
		return errNotRegistered
	}
	return d.deps.Metadata.SaveLearned(ctx, s.lease.Owner, states)
}

// States returns the states of a kind that were kept.
func (d *Dispatcher) States(ctx context.Context, kind string) ([]store.LearnedState, error) {
	all, err := d.deps.Metadata.Learned(ctx)
	if err != nil {
		return nil, err
	}
	var states []store.LearnedState
	for _, state := range all {
		if state.Kind == kind {
			states = append(states, state)
		}
	}
	return states, nil
}
