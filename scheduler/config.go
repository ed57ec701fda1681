package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Urgency says whether jobs whose time runs out overtake the others of their queue.
type Urgency string

const (
	UrgencyAuto   Urgency = "auto"   // as the policy has it: edf and slack yes, the others no
	UrgencyAlways Urgency = "always" // under every policy
	UrgencyNever  Urgency = "never"  // the policy's rank alone decides
)

// DefaultQueue is the name of the queue that takes what no rule matches.
const DefaultQueue = "default"

// Config says how the jobs of a pool are ordered. Start from DefaultConfig.
type Config struct {
	// Policy ranks jobs: edf, slack, fifo, priority, sjf, expression or a registered one. Default:
	// slack.
	Policy string `yaml:"policy"`
	// Expression is the operator's own rank, lower first, for the policy expression;
	// docs/operations.md lists what it may use. Default: empty, which that policy refuses.
	Expression string `yaml:"expression,omitempty"`
	// Urgency says whether jobs whose time runs out overtake the others: auto (edf and slack yes,
	// the others no), always or never. Default: auto.
	Urgency Urgency `yaml:"urgency"`
	// GuardMin is the least time before its latest start at which a job becomes urgent. It covers
	// what the estimate of the work can't know: a replica's start, a slow answer. 0: GuardShare
	// alone counts. Default: 10m.
	GuardMin time.Duration `yaml:"guard_min"`
	// GuardShare is the same as a share of the job's window, between 0 and 1; the longer of the two
	// counts. 0: GuardMin alone. Default: 0.10.
	GuardShare float64 `yaml:"guard_share"`
	// AssumedRate stands in for the rate of a job that has none yet, in work units (milliseconds of
	// engine iteration) per second. One engine gives at most 1,000; assuming too little starts jobs
	// early, which is the safe side. Default: 500, half an engine.
	AssumedRate float64 `yaml:"assumed_rate"`
	// Quantum is the work a tenant of weight 1 may start in its turn, in work units, at least 1.
	// Smaller takes turns more often, larger keeps more of a prefix group together. Default:
	// 200000, some minutes of one engine.
	Quantum float64 `yaml:"quantum"`
	// TenantWeights multiply the quantum, between 0.001 and 1000, by tenant name. Default: 1 for
	// each.
	TenantWeights map[string]float64 `yaml:"tenant_weights,omitempty"`
	// BetweenQueues chooses between the named queues: strict (in listed order), weighted (by work
	// started for its weight) or a registered one. Default: strict.
	BetweenQueues string `yaml:"between_queues"`
	// Queues are the named queues, in order; the first with a matching rule takes a job. The queue
	// "default" takes the rest; it stands last unless it is listed. Default: none but that.
	Queues []QueueConfig `yaml:"queues,omitempty"`
}

// QueueConfig is one named queue.
type QueueConfig struct {
	// Name is unique and not empty.
	Name string `yaml:"name"`
	// Match are the rules of which one must fit. The queue "default" has none, every other at least
	// one ({} fits every job).
	Match []Match `yaml:"match,omitempty"`
	// Policy ranks the jobs of this queue. Empty: Config.Policy.
	Policy string `yaml:"policy,omitempty"`
	// Expression is for the policy expression of this queue. Empty: Config.Expression.
	Expression string `yaml:"expression,omitempty"`
	// Urgency is that of this queue. Empty: Config.Urgency.
	Urgency Urgency `yaml:"urgency,omitempty"`
	// Weight is this queue's share under weighted, between 0.001 and 1000. 0: 1.
	Weight float64 `yaml:"weight,omitempty"`
}

// DefaultConfig orders by slack in a single queue.
func DefaultConfig() Config {
	return Config{
		Policy:        "slack",
		Urgency:       UrgencyAuto,
		GuardMin:      10 * time.Minute,
		GuardShare:    0.10,
		AssumedRate:   500,
		Quantum:       200_000,
		BetweenQueues: "strict",
	}
}

// Validate reports every fault with the path of its field. It builds each policy, so that an
// expression is checked too.
func (c Config) Validate() error {
	var all faults
	if _, err := NewPolicy(c.Policy, c); err != nil {
		all.add("policy", "%w", err)
	}
	if !c.Urgency.known() {
		all.add("urgency", "%q is none of auto, always, never", c.Urgency)
	}
	if c.GuardMin < 0 {
		all.add("guard_min", "is %v, must not be negative", c.GuardMin)
	}
	if !(c.GuardShare >= 0 && c.GuardShare <= 1) {
		all.add("guard_share", "is %v, must be between 0 and 1", c.GuardShare)
	}
	if !(c.AssumedRate > 0) || math.IsInf(c.AssumedRate, 0) {
		all.add("assumed_rate", "is %v, must be above 0", c.AssumedRate)
	}
	if !(c.Quantum >= 1) || math.IsInf(c.Quantum, 0) {
		all.add("quantum", "is %v, must be at least 1", c.Quantum)
	}
	for _, tenant := range slices.Sorted(maps.Keys(c.TenantWeights)) {
		if weight := c.TenantWeights[tenant]; !validWeight(weight) {
			all.add("tenant_weights."+tenant, "is %v, must be between 0.001 and 1000", weight)
		}
	}
	if _, err := NewArbiter(c.BetweenQueues, c); err != nil {
		all.add("between_queues", "%w", err)
	}
	names := map[string]bool{}
	for i, queue := range c.Queues {
		path := fmt.Sprintf("queues[%d].", i)
		if queue.Name == "" || names[queue.Name] {
			all.add(path+"name", "%q must be unique and not empty", queue.Name)
		}
		names[queue.Name] = true
		queue.validate(c, path, &all)
	}
	return errors.Join(all...)
}

func (qc QueueConfig) validate(c Config, path string, all *faults) {
	if (qc.Name == DefaultQueue) != (len(qc.Match) == 0) {
		all.add(path+"match", "queue %q must have rules, and the queue %q none", qc.Name,
			DefaultQueue)
	}
	for i, m := range qc.Match {
		rule := fmt.Sprintf("%smatch[%d].", path, i)
		if m.MinPriority != nil && m.MaxPriority != nil && *m.MinPriority > *m.MaxPriority {
			all.add(rule+"min_priority", "is %d, above max_priority %d: nothing fits",
				*m.MinPriority, *m.MaxPriority)
		}
		if m.MinWindow < 0 || m.MaxWindow < 0 {
			all.add(rule+"min_window", "windows must not be negative")
		}
		if m.MaxWindow > 0 && m.MinWindow > m.MaxWindow {
			all.add(rule+"min_window", "is %v, above max_window %v: nothing fits", m.MinWindow,
				m.MaxWindow)
		}
	}
	if qc.Policy != "" || qc.Expression != "" {
		own := c.of(qc)
		if _, err := NewPolicy(own.Policy, own); err != nil {
			all.add(path+"policy", "%w", err)
		}
	}
	if qc.Urgency != "" && !qc.Urgency.known() {
		all.add(path+"urgency", "%q is none of auto, always, never", qc.Urgency)
	}
	if qc.Weight != 0 && !validWeight(qc.Weight) {
		all.add(path+"weight", "is %v, must be between 0.001 and 1000", qc.Weight)
	}
}

// of is the configuration as it holds inside one named queue.
func (c Config) of(queue QueueConfig) Config {
	c.Policy = cmp.Or(queue.Policy, c.Policy)
	c.Expression = cmp.Or(queue.Expression, c.Expression)
	c.Urgency = cmp.Or(queue.Urgency, c.Urgency)
	return c
}

func (u Urgency) known() bool {
	return u == UrgencyAuto || u == UrgencyAlways || u == UrgencyNever
}

// validWeight keeps shares within a factor that the quanta can express without a round of turns
// taking for ever.
func validWeight(w float64) bool { return w >= 0.001 && w <= 1000 }

// faults collects what is wrong, each with the path of its field.
type faults []error

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
}
