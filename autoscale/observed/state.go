package observed

import (
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// State is what is known at one moment.
type State struct {
	At    time.Time
	Jobs  []plan.Demand
	Pools []Pool
}

// Pool is what is known of a pool.
type Pool struct {
	autoscale.PoolConfig
	// Engine and SLO are those of the pool's flow control.
	Engine flowcontrol.Engine
	SLO    flowcontrol.SLO
	// Unshared says that flow control does not limit the time of iterations.
	Unshared    bool
	Replicas    []autoscale.Replica
	Interactive autoscale.Interactive
	Harvested   float64 // see autoscale.Pool
}

// NewPool returns a pool with its configuration and that of its flow control.
func NewPool(c autoscale.PoolConfig, flow flowcontrol.Config) Pool {
	return Pool{PoolConfig: c, Engine: flow.Engine, SLO: flow.SLO,
		Unshared: c.Role == autoscale.RoleBatch || flow.UnsharedIterations()}
}

// JobID identifies a job: a batch has one for each of its models. The ID is that of the batch if
// the model is not named.
func JobID(key plan.JobKey) string {
	if key.Model == "" {
		return key.Batch
	}
	return key.Batch + "/" + key.Model
}

// Autoscale returns the state on which replicas are decided.
func (s State) Autoscale() autoscale.State {
	var state autoscale.State
	for _, d := range s.Jobs {
		state.Jobs = append(state.Jobs, Job(d))
	}
	for _, p := range s.Pools {
		state.Pools = append(state.Pools, autoscale.Pool{
			ID: p.Name, Models: p.Models, Min: p.Min, Max: p.Max, Price: p.Price,
			Reclaim: p.Reclaim, ColdStart: p.ColdStart, Replicas: p.Replicas,
			Interactive: p.Interactive, Engine: p.Engine, SLO: p.SLO, BatchOnly: p.Unshared,
			Harvested: p.Harvested,
		})
	}
	return state
}

// Job returns a job as replicas are decided for it.
func Job(d plan.Demand) autoscale.Job {
	return autoscale.Job{
		ID: JobID(d.Key), Model: d.Key.Model, Created: d.Created, StartBy: d.StartBy,
		Deadline: d.Deadline, Lines: d.Lines, Work: d.Work, Least: d.Least, Most: d.Most,
		MostOutput: d.MostOutput, Prompt: d.Prompt, Output: d.Output, Longest: d.Longest,
		Answered: d.Answered, InFlight: d.InFlight, Paused: d.Paused,
	}
}
