package autoscale

import "time"

// Snapshot is what was decided last, and the state that it was decided on: for KEDA, the API,
// metrics and the console. Nobody changes a snapshot once it is published. Processes exchange it as
// JSON.
type Snapshot struct {
	At    time.Time
	Pools []PoolSnapshot // as configured
	Jobs  []Forecast     // of all jobs with a deadline
}

// Pool returns the snapshot of a pool, nil if there is none of this name.
func (s *Snapshot) Pool(name string) *PoolSnapshot {
	for i := range s.Pools {
		if s.Pools[i].Pool == name {
			return &s.Pools[i]
		}
	}
	return nil
}

// PoolSnapshot is the decision for a pool and its state.
type PoolSnapshot struct {
	Wanted
	// Min and Max are the bounds that the decision respects.
	Min, Max int
	// Starting, Ready and Draining count the replicas.
	Starting, Ready, Draining int
	// InFlight counts the batch lines in flight on the replicas, Lines those left of the jobs that
	// the pool can serve, including the former.
	InFlight, Lines int
}

// Active reports whether the pool must not be scaled to zero: replicas are wanted, or lines are in
// flight on some.
func (p *PoolSnapshot) Active() bool { return p.Reported > 0 || p.InFlight > 0 }
