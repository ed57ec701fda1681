package scenario

import (
	"errors"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Pool is the replicas that share the traffic.
type Pool struct {
	// Profile is a bundled profile's name, or a file that profile fit has written, from the scenario's folder.
	Profile string `yaml:"profile"`
	// Replicas is how many engines there are.
	Replicas int `yaml:"replicas"`
	// Scheduling is the engine's waiting queue: priority (interactive first) or fcfs.
	Scheduling engine.Scheduling `yaml:"scheduling"`
	// PrefixCaching keeps the KV blocks of prompts that begin alike.
	PrefixCaching bool `yaml:"prefix_caching"`
	// Noise is the standard deviation of the logarithm of an iteration's time.
	Noise float64 `yaml:"noise"`
	// KVTokens, MaxBatchedTokens and MaxSeqs are the engine's limits. 0: the profile's.
	KVTokens         int `yaml:"kv_tokens"`
	MaxBatchedTokens int `yaml:"max_batched_tokens"`
	MaxSeqs          int `yaml:"max_seqs"`
	// ShedAbove is the number of waiting requests from which an engine answers batch lines with 503. 0: it queues without end.
	ShedAbove int `yaml:"shed_above"`
	// Network is what a batch line's way to the engine takes, and its answer's way back.
	Network time.Duration `yaml:"network"`
}

func (p Pool) validate() error {
	var all faults
	all.check(p.Profile != "", "pool.profile is empty; name a bundled profile (see tidefill profile list) or a fitted file")
	all.check(p.Replicas >= 1 && p.Replicas <= mostReplicas, "pool.replicas is %d, want 1 to %d", p.Replicas, mostReplicas)
	all.check(p.Scheduling == engine.ByPriority || p.Scheduling == engine.FirstCome, "pool.scheduling is %q, want %q or %q", p.Scheduling, engine.ByPriority, engine.FirstCome)
	all.check(p.Noise >= 0 && p.Noise <= 1, "pool.noise is %v, want 0 to 1", p.Noise)
	all.check(p.KVTokens >= 0, "pool.kv_tokens is %d, want 0 for the profile's or more", p.KVTokens)
	all.check(p.MaxBatchedTokens >= 0, "pool.max_batched_tokens is %d, want 0 for the profile's or more", p.MaxBatchedTokens)
	all.check(p.MaxSeqs >= 0, "pool.max_seqs is %d, want 0 for the profile's or more", p.MaxSeqs)
	all.check(p.ShedAbove >= 0, "pool.shed_above is %d, want 0 for never or more", p.ShedAbove)
	all.check(p.Network >= 0 && p.Network <= time.Minute, "pool.network is %s, want 0 to %s", p.Network, time.Minute)
	return errors.Join(all...)
}
