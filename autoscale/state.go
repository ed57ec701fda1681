package autoscale

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// State is what a controller observes at one moment. The caller owns it; a controller keeps no part
// of it.
type State struct {
	// Pools lists the pools that serve the model, each once, the same at every step.
	Pools []Pool
	// Jobs lists the jobs that have work left, each once, in any order. A job is listed as soon as
	// it is known, even if it may not start yet, until it is done, given up or cancelled.
	Jobs []Job
}

// Job is the lines of a batch for the model.
type Job struct {
	// ID is unique among the jobs. It orders jobs that are equal otherwise.
	ID string
	// Model is what the pool must serve. Empty: every pool serves the job.
	Model   string
	Created time.Time
	// StartBy is when the first line must have started. Zero: no such objective, or it has started.
	StartBy time.Time
	// Deadline is when the last line must have been answered. Zero: none; the job uses free
	// capacity only.
	Deadline time.Time
	// Lines counts the lines left, those in flight included.
	Lines int
	// Prompt and Output are the mean tokens of a line; see Pool.Lines.
	Prompt, Output float64
	// Work is the expected engine time of the lines left, in milliseconds. Pool.Harvested and
	// Lines.Work have the same unit.
	Work float64
	// Least is a certain lower bound of Work. A deadline that even this much work misses is
	// reported as infeasible. 0: nothing is certain, and nothing is reported.
	Least float64
	// Most is an upper estimate of Work as long as few lines were answered, and MostOutput the mean
	// output tokens of a line by it. 0: Work times DeadlineTuning.UnknownFactor.
	Most, MostOutput float64
	// Longest is the number of tokens of the longest answer so far. 0: unknown. The last lines may
	// take as long.
	Longest int
	// Answered counts the answered lines from which Work was estimated, InFlight the lines being
	// answered. While Answered is small, Work is little more than a guess.
	Answered, InFlight int
	// Paused jobs need no replicas. Their deadlines remain.
	Paused bool
}

// Pool is a group of replicas with the same price, which share the interactive traffic if they
// serve any.
type Pool struct {
	ID string
	// Models that the pool serves. Nil: it serves every job.
	Models []string
	// Min and Max bound the number of replicas. Min includes what others request, such as an
	// autoscaler for interactive traffic.
	Min, Max int
	// Price of a replica per hour, in any currency; only ratios between pools matter. 0 for all
	// pools: equal prices.
	Price float64
	// Reclaim is the share of replicas that the provider reclaims per hour, 0 to 1. 0: none.
	Reclaim float64
	// ColdStart is the expected time of a start before any was measured. 0: StartConfig.Cold.
	ColdStart time.Duration
	// Replicas lists the existing replicas, each once, in any order.
	Replicas []Replica
	// Interactive describes the traffic that has priority. Zero value: the pool serves batches
	// alone.
	Interactive Interactive
	// Engine describes the engine of the replicas. Without a cost model the harvest is estimated
	// from Harvested alone.
	Engine flowcontrol.Engine
	// SLO is the objective of interactive requests, which limits the time of iterations.
	SLO flowcontrol.SLO
	// BatchOnly says that flow control does not limit the time of iterations, because no
	// interactive request reaches the pool. Batch lines fill the engine.
	BatchOnly bool
	// Lines describes the mean line of the jobs. A Fleet computes it.
	Lines Lines
	// Harvested is the work of batch lines answered by this pool since any fixed moment, in
	// milliseconds. It only grows.
	Harvested float64
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
	// PerReplica is how many requests per second one replica serves within its SLO when it does
	// nothing else. 0: computed from the cost model. If that is unknown too, the pool keeps the
	// replicas that it has.
	PerReplica float64
}

// Lines describes the mean line of the jobs.
type Lines struct {
	Mix costmodel.Mix
	// Work of one line, in milliseconds.
	Work float64
}
