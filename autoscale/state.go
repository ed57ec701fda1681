package autoscale

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// State is what a controller sees of the world at one moment. The caller owns it; a controller
// keeps nothing of it.
type State struct {
	// Pools are those that serve the model, each once, the same at every step.
	Pools []Pool
	// Jobs are those that have work left, each once, in any order. A job appears as soon as it is
	// known, also when it may not start yet, and disappears when it is done, given up or cancelled.
	Jobs []Job
}

// Job is a batch's lines of the model.
type Job struct {
	// ID is unique among the jobs and breaks ties.
	ID string
	// Created is when it came.
	Created time.Time
	// StartBy is when its first line must have started; zero: there is no such promise, or it has
	// begun.
	StartBy time.Time
	// Deadline is when its last line must have been answered; zero: it has none, and is done by
	// whatever is free.
	Deadline time.Time
	// Lines left, those under way included.
	Lines int
	// Work left, those lines' expected engine time in milliseconds. It is measured in the same unit
	// as Pool.Harvested and Lines.Work, so that rates and work can be compared.
	Work float64
	// Least is what that work is at the least, as far as is certain: a deadline that even this much
	// can't meet is told to be infeasible. 0: nothing is certain, and nothing is told.
	Least float64
	// Longest is the tokens of the longest answer so far; 0: none is known. The last lines may take
	// as long.
	Longest int
	// Answered is how many lines have been answered that the work of the others is judged by,
	// UnderWay how many are being answered. While few have been, Work is hardly more than a guess.
	Answered, UnderWay int
	// Paused jobs need nothing until they go on. Their deadline runs all the same.
	Paused bool
}

// Pool is the replicas that share a price and, if they serve it, the interactive traffic.
type Pool struct {
	ID string
	// Min and Max bound the replicas wanted. Min is also what others, an autoscaler for interactive
	// traffic, ask for.
	Min, Max int
	// Price of a replica for an hour, in any currency; pools are compared. 0 for all: they cost the
	// same.
	Price float64
	// Reclaim is the share of replicas that the provider takes back in an hour, 0 to 1. 0: they are
	// ours as long as we like.
	Reclaim float64
	// Replicas there are, each once, in any order. One that is gone is left out.
	Replicas []Replica
	// Interactive is the traffic that comes first; the zero value: the pool serves batches alone.
	Interactive Interactive
	// Engine is what is known of the replicas' engine. Without a law the harvest is learnt from
	// what was harvested.
	Engine flowcontrol.Engine
	// SLO is what interactive users are promised, and thereby how slow batch work may make an
	// iteration.
	SLO flowcontrol.SLO
	// Unhurried says that flow control lets iterations take as long as they like, as nobody waits
	// for them: lines fill the engine.
	Unhurried bool
	// Lines is what lines of the jobs are like.
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
	// Since is when the phase began: a Starting one was asked for then, and is paid for since; a
	// Ready one answers since.
	Since time.Time
	// Progress is the work that batch lines under way there have had, in milliseconds. It is lost
	// if they are cut off, so the replica with the least is the best to do without.
	Progress float64
}

// Phase of a replica's life.
type Phase uint8

const (
	// asked for, not yet answering; one that fails and is tried again stays Starting
	Starting Phase = iota + 1
	Ready          // serving
	// gets no new lines and goes when it is empty; it is not among the replicas wanted
	Draining
)

// Interactive is traffic that comes first.
type Interactive struct {
	// Served says that the pool serves such traffic.
	Served bool
	// Rate is the requests a second that came lately, over a minute or since the last step,
	// whichever is longer. NaN: not known at this moment, and the forecast stands.
	Rate float64
	// Mix is the mean tokens of a request: those of the prompt that must be computed, and those of
	// the answer.
	Mix costmodel.Mix
	// PerReplica is how many requests a second one replica serves within its SLO when it does
	// nothing else. 0: as the engine's law says; without a law nobody knows, and the pool keeps the
	// replicas that it has.
	PerReplica float64
}

// Lines describes the lines of the jobs in the mean.
type Lines struct {
	Mix costmodel.Mix
	// Work of one line, in milliseconds.
	Work float64
}
