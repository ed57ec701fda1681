package autoscale

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

// State is what a controller observes at one moment. The caller owns it; a controller keeps no part
// of it.
type State struct {
	// At is when the state was observed.
	At time.Time
	// Pools lists the pools that serve the model, each once, the same at every step.
	Pools []PoolState
	// Jobs lists the jobs that have work left, each once, in any order. A job is listed as soon as
	// it is known, even if it may not start yet, until it is done, given up or cancelled.
	// Work of a job and of lines have the same unit as Pool.Harvested.
	Jobs []plan.Demand
}

// PoolState is what is known of a pool of the registry. Its replicas share the interactive traffic
// if they serve any.
type PoolState struct {
	registry.Pool
	// Engine describes the engine of the replicas. Without a cost model the harvest is estimated
	// from Harvested alone.
	Engine flowcontrol.Engine
	// SLO is the objective of interactive requests, which limits the time of iterations.
	SLO flowcontrol.SLO
	// Unshared says that flow control does not limit the time of iterations, because no
	// interactive request reaches the pool. Batch lines fill the engine.
	Unshared bool
	// Replicas lists the existing replicas, each once, in any order.
	Replicas []Replica
	// Interactive describes the traffic that has priority. Zero value: the pool serves batches
	// alone.
	Interactive Interactive
	// Harvested is the work of batch lines answered by this pool since any fixed moment, in
	// milliseconds. It only grows.
	Harvested float64
	// Lines describes the mean line of the jobs. A Fleet computes it.
	Lines Lines `json:"-"`
}

// NewPool returns a pool with the settings of its flow control.
func NewPool(p registry.Pool, flow flowcontrol.Config) PoolState {
	return PoolState{Pool: p, Engine: flow.Engine, SLO: flow.SLO,
		Unshared: p.Role == registry.RoleBatch || flow.UnsharedIterations()}
}

// Replica is one model server of a pool.
type Replica struct {
	// ID is unique in the pool.
	ID    string
	Phase Phase
	// Since is when the phase began. A Starting replica was requested then.
	Since time.Time
	// Progress is the work done for batch lines in flight on the replica, in milliseconds. It is
	// lost if they are cancelled, so the replica with the least progress is removed first.
	Progress float64
}

// Phase is a stage in the life of a replica.
type Phase uint8

const (
	// Starting replicas were requested and do not answer yet. One that fails and is tried again
	// stays Starting.
	Starting Phase = iota + 1
	// Ready replicas serve.
	Ready
	// Draining replicas get no new lines and end when they are empty. They do not count as wanted.
	Draining
)

// Interactive describes the traffic that has priority.
type Interactive struct {
	// Served says that the pool serves interactive traffic.
	Served bool
	// Rate is the number of requests per second, over the last minute or since the last step,
	// whichever is longer. NaN: unknown at this moment; the forecast remains as it is.
	Rate float64
	// Mix is the mean request: the prompt tokens that must be computed, and the output tokens.
	Mix costmodel.Mix
	// PerReplica is the rate that one replica serves within its SLO when it does nothing else, in
	// requests a second. 0: computed from the cost model. If that is unknown too, the pool keeps
	// the replicas that it has.
	PerReplica float64
}

// Lines describes the mean line of the jobs.
type Lines struct {
	Mix costmodel.Mix
	// Work of one line, in milliseconds.
	Work float64
}
