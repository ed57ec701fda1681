package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Pool describes the replicas that serve the interactive traffic.
type Pool struct {
	// Profile is the name of a bundled profile, or a file that profile fit has written, relative to
	// the scenario's folder.
	Profile string `yaml:"profile"`
	// Replicas is the number of replicas at the beginning. All of them are ready.
	Replicas int `yaml:"replicas"`
	Scaling  `yaml:",inline"`
	// Scheduling is the order of the engine's queue: priority (interactive requests first) or fcfs
	// (first come, first served).
	Scheduling engine.Scheduling `yaml:"scheduling"`
	// PrefixCaching reuses the KV blocks of prompts with the same beginning.
	PrefixCaching bool `yaml:"prefix_caching"`
	// Noise is the standard deviation of the logarithm of an iteration's time. 0: no noise.
	Noise float64 `yaml:"noise"`
	// KVTokens, MaxBatchedTokens and MaxSeqs are the engine's limits. 0: the profile's.
	KVTokens         int `yaml:"kv_tokens"`
	MaxBatchedTokens int `yaml:"max_batched_tokens"`
	MaxSeqs          int `yaml:"max_seqs"`
	// ShedAbove is the number of waiting requests at which an engine begins to answer batch lines
	// with 503. 0: never.
	ShedAbove int `yaml:"shed_above"`
	// Network is the latency of a request from Tidefill to the engine, and of its answer back.
	Network time.Duration `yaml:"network"`
	// Router is how the router chooses a replica for an interactive request.
	Router Router `yaml:"router"`
	// RouterView is the maximum age of the load by which the router chooses a replica. 0: it uses
	// the present load.
	RouterView time.Duration `yaml:"router_view"`
	// Discovery is the time from the start or the loss of a replica until the daemon detects it.
	Discovery time.Duration `yaml:"discovery"`
	// Start is the duration of cold starts.
	Start Start `yaml:"start"`
	// Drain limits the duration of draining.
	Drain Drain `yaml:"drain"`
	// CostModelError makes the cost model in the policies' configuration wrong.
	CostModelError CostModelError `yaml:"cost_model_error"`
	// FactsWithheld keeps the engine's limits and cost model from the policies, as where nobody has
	// configured flowcontrol.engine.
	FactsWithheld bool `yaml:"facts_withheld"`
}

// Scaling limits the number of replicas and sets their price.
type Scaling struct {
	// Min and Max limit the number of replicas that the autoscale policy may set. Max 0: the number
	// is fixed.
	Min int `yaml:"min"`
	Max int `yaml:"max"`
	// Price is the price of a replica for an hour, in any currency.
	Price float64 `yaml:"price"`
	// Reclaim is the share of the replicas that the provider removes per hour, without notice. 0:
	// none.
	Reclaim float64 `yaml:"reclaim"`
}

// Start is the distribution of the duration of a cold start: log-normal, limited by Min and Max.
type Start struct {
	Median time.Duration `yaml:"median"`
	// Sigma is the standard deviation of the logarithm of the duration.
	Sigma float64       `yaml:"sigma"`
	Min   time.Duration `yaml:"min"`
	Max   time.Duration `yaml:"max"`
	// NewNode is the share of starts that first wait for a new node.
	NewNode float64 `yaml:"new_node"`
	// NodeTime is the additional duration of these starts.
	NodeTime time.Duration `yaml:"node_time"`
	// Fail is the share of starts that fail once and begin again.
	Fail float64 `yaml:"fail"`
}

// Drain sets the times that a draining replica waits for its requests.
type Drain struct {
	// Batch is the time after which batch lines are evicted.
	Batch time.Duration `yaml:"batch"`
	// Interactive is the time after which interactive requests are aborted.
	Interactive time.Duration `yaml:"interactive"`
}

// CostModelError holds the factors by which coefficients of the engine's cost model are multiplied
// in the policies' configuration. 0: the coefficient is not changed.
type CostModelError struct {
	C0 float64 `yaml:"c0"`
	KV float64 `yaml:"kv"`
	// Prefill multiplies all coefficients of the cost of a prompt token.
	Prefill float64 `yaml:"prefill"`
}

// BatchPool describes a further pool, which serves only batch lines. What it does not set is as in
// Scenario.Pool, the first pool.
type BatchPool struct {
	Name string `yaml:"name"`
	// Profile is the profile of its engines. Empty: the first pool's.
	Profile  string `yaml:"profile"`
	Replicas int    `yaml:"replicas"`
	Scaling  `yaml:",inline"`
	// KVTokens, MaxBatchedTokens and MaxSeqs are the engine's limits. 0: the first pool's.
	KVTokens         int `yaml:"kv_tokens"`
	MaxBatchedTokens int `yaml:"max_batched_tokens"`
	MaxSeqs          int `yaml:"max_seqs"`
}

// largestPoolSize returns the largest number of replicas that a pool may have. Empty name: the
// first pool. ok is false if there is no such pool.
func (s Scenario) largestPoolSize(pool string) (most int, ok bool) {
	if pool == "" {
		return max(s.Pool.Replicas, s.Pool.Max), true
	}
	for _, p := range s.BatchPools {
		if p.Name == pool {
			return max(p.Replicas, p.Max), true
		}
	}
	return 0, false
}

func (p Pool) validate() error {
	var all problems
	all.check(
		p.Profile != "", "pool.profile is empty; name a bundled profile (see tidefill profile "+
			"list) or a fitted file")
	all.add("pool", p.Scaling.validate(p.Replicas))
	all.check(p.Scheduling == engine.ByPriority || p.Scheduling == engine.FirstCome,
		"pool.scheduling is %q, want %q or %q", p.Scheduling, engine.ByPriority, engine.FirstCome)
	all.check(p.Noise >= 0 && p.Noise <= 1, "pool.noise is %v, want 0 to 1", p.Noise)
	all.check(p.KVTokens >= 0, "pool.kv_tokens is %d, want 0 for the profile's or more", p.KVTokens)
	all.check(p.MaxBatchedTokens >= 0,
		"pool.max_batched_tokens is %d, want 0 for the profile's or more", p.MaxBatchedTokens)
	all.check(p.MaxSeqs >= 0, "pool.max_seqs is %d, want 0 for the profile's or more", p.MaxSeqs)
	all.check(p.ShedAbove >= 0, "pool.shed_above is %d, want 0 for never or more", p.ShedAbove)
	all.check(p.Network >= 0 && p.Network <= time.Minute, "pool.network is %s, want 0 to %s",
		p.Network, time.Minute)
	all.check(slices.Contains(routers, p.Router), "pool.router is %q, want one of %q", p.Router,
		routers)
	all.check(p.RouterView >= 0 && p.RouterView <= time.Minute,
		"pool.router_view is %s, want 0 to %s", p.RouterView, time.Minute)
	all.check(p.Discovery >= 0 && p.Discovery <= time.Hour, "pool.discovery is %s, want 0 to %s",
		p.Discovery, time.Hour)
	all.add("pool.start", p.Start.validate())
	all.check(p.Drain.Batch >= 0 && p.Drain.Batch <= time.Hour,
		"pool.drain.batch is %s, want 0 to %s", p.Drain.Batch, time.Hour)
	all.check(p.Drain.Interactive >= 0 && p.Drain.Interactive <= time.Hour,
		"pool.drain.interactive is %s, want 0 to %s", p.Drain.Interactive, time.Hour)
	for _, factor := range []struct {
		key    string
		factor float64
	}{{"c0", p.CostModelError.C0}, {"kv", p.CostModelError.KV},
		{"prefill", p.CostModelError.Prefill}} {
		all.check(factor.factor >= 0 && factor.factor <= 100,
			"pool.cost_model_error.%s is %v, want 0 for the engine's own or a factor up to 100",
			factor.key,
			factor.factor)
	}
	all.check(!p.FactsWithheld || p.CostModelError == CostModelError{},
		"pool.cost_model_error needs pool.facts_withheld: false: a policy without a cost model "+
			"has no error in it")
	return errors.Join(all...)
}

func (s Scaling) validate(replicas int) error {
	var all problems
	all.check(replicas >= 0 && replicas <= maxReplicas, "replicas is %d, want 0 to %d", replicas,
		maxReplicas)
	all.check(replicas != 0 || s.Max > 0,
		"replicas is %d and max is %d, so the pool never has a replica; set either above 0",
		replicas, s.Max)
	all.check(s.Max >= 0 && s.Max <= maxReplicas,
		"max is %d, want 0 for a fixed number or up to %d", s.Max, maxReplicas)
	all.check(s.Min >= 0, "min is %d, want 0 or more", s.Min)
	all.check(s.Max == 0 || s.Min <= s.Max, "min is %d, want at most max, %d", s.Min, s.Max)
	all.check(s.Max > 0 || s.Min == 0,
		"min is %d, but without max the number of replicas is fixed; set both", s.Min)
	all.check(s.Max == 0 || replicas >= s.Min && replicas <= s.Max,
		"replicas is %d, want min to max, %d to %d", replicas, s.Min, s.Max)
	all.check(s.Price >= 0 && s.Price <= 1e6, "price is %v, want 0 to 1000000", s.Price)
	all.check(s.Reclaim >= 0 && s.Reclaim < 1, "reclaim is %v, want a share per hour, 0 to below 1",
		s.Reclaim)
	return errors.Join(all...)
}

func (s Start) validate() error {
	var all problems
	all.check(s.Min >= 0 && s.Min <= s.Median && s.Median <= s.Max && s.Max <= 24*time.Hour,
		"median is %s, want min to max, %s to %s, and max at most 24h", s.Median, s.Min, s.Max)
	all.check(s.Median > 0, "median is %s, want above 0", s.Median)
	all.check(s.Sigma >= 0 && s.Sigma <= 5, "sigma is %v, want 0 to 5", s.Sigma)
	all.check(s.NewNode >= 0 && s.NewNode <= 1, "new_node is %v, want a share, 0 to 1", s.NewNode)
	all.check(s.NodeTime >= 0 && s.NodeTime <= 24*time.Hour, "node_time is %s, want 0 to %s",
		s.NodeTime, 24*time.Hour)
	all.check(s.Fail >= 0 && s.Fail <= 1, "fail is %v, want a share, 0 to 1", s.Fail)
	return errors.Join(all...)
}

// reservedPools are no names of batch pools: the model of all pools, by which flow control would
// take the pool's entry for the first pool's too; the first pool in the planner; and how the names
// of the first pool's replicas begin.
var reservedPools = []string{"model", "chat", "replica"}

func validateBatchPools(pools []BatchPool) error {
	var all problems
	names := map[string]bool{}
	for i, p := range pools {
		path := fmt.Sprintf("batch_pools[%d]", i)
		all.check(p.Name != "", "%s.name is empty", path)
		all.check(!names[p.Name], "%s.name is %q, the name of another pool; give it another", path,
			p.Name)
		names[p.Name] = true
		all.check(!slices.Contains(reservedPools, p.Name),
			"%s.name is %q, which the simulator uses itself; give the pool another name", path,
			p.Name)
		all.add(path, p.Scaling.validate(p.Replicas))
		all.check(p.KVTokens >= 0, "%s.kv_tokens is %d, want 0 for the first pool's or more", path,
			p.KVTokens)
		all.check(p.MaxBatchedTokens >= 0,
			"%s.max_batched_tokens is %d, want 0 for the first pool's or more", path,
			p.MaxBatchedTokens)
		all.check(p.MaxSeqs >= 0, "%s.max_seqs is %d, want 0 for the first pool's or more", path,
			p.MaxSeqs)
	}
	return errors.Join(all...)
}
