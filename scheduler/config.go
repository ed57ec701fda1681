package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// Urgency sets whether jobs whose deadline is near overtake the others of their queue.
type Urgency string

const (
	UrgencyAuto   Urgency = "auto"   // yes under edf and slack, no under the others
	UrgencyAlways Urgency = "always" // under every policy
	UrgencyNever  Urgency = "never"  // only the rank counts
)

// DefaultQueue is the name of the queue for jobs that match no rule.
const DefaultQueue = "default"

// Config sets how the jobs of a pool are ordered. Start from DefaultConfig.
type Config struct {
	// Policy ranks jobs: slack (least time to spare first), edf (earliest deadline
	// first), fifo, priority, sjf (least work first), expression, or a registered one. Default:
	// slack.
	Policy string `yaml:"policy"`
	// Expression computes a job's rank, lower first, for the policy expression, which requires it.
	// docs/scheduling.md lists the names that it may use. Default: empty.
	Expression string `yaml:"expression,omitempty"`
	// Urgency sets whether jobs whose deadline is near overtake the other jobs of their queue:
	// always, never, or auto (under the policies slack and edf only). The other jobs of a tenant
	// share by work under slack and edf, and go by rank under other policies or with never.
	// Default: auto.
	Urgency Urgency `yaml:"urgency"`
	// TenantWeights sets how much work a tenant gets compared with the others, by name, between
	// 0.001 and 1000. Default: 1 for each.
	TenantWeights map[string]float64 `yaml:"tenant_weights,omitempty"`
	// BetweenQueues chooses the next queue: strict (in the listed order), weighted (by the work
	// started in proportion to the weight), or a registered one. Default: strict.
	BetweenQueues string `yaml:"between_queues"`
	// Queues divides the jobs into named queues. A job goes to the first queue with a rule that it
	// matches, or to the queue "default", which is the last unless it is listed. Default: the queue
	// "default" alone.
	Queues []QueueConfig `yaml:"queues,omitempty"`

	// AssumedRate replaces the rate of a job whose Rate is 0, in work units per second, above 0. It
	// is no key of the scheduler: the planner sets it from its cost estimate.
	// Default: costmodel.AssumedRate.
	AssumedRate float64 `yaml:"-"`

	Tuning `yaml:"tuning"`
}

// Tuning holds what ordering can be tuned by.
type Tuning struct {
	// GuardMin makes a job urgent at least this long before the latest time at which it can start
	// and still meet its deadline, or a tenth of the time from its creation to its deadline if that
	// is longer. Raise it if deadlines are missed because replicas start slowly or answers take
	// long. Default: 10m.
	GuardMin time.Duration `yaml:"guard_min"`
	// Quantum is how much work a job, or a tenant of weight 1, may start in a round, in work units,
	// at least 1. A smaller value alternates more often; a larger one sends more lines with a
	// common prefix together. The first twentieth of a quantum of a new job does not wait for its
	// turn. It is no key: tests set it.
	Quantum float64 `yaml:"-"`
}

const (
	// guardShare is GuardMin as a share of a job's window, since an estimate of a long time is off
	// by more.
	guardShare = 0.10
	// defaultQuantum is the work of some minutes of one engine.
	defaultQuantum = 200_000
)

// QueueConfig describes one named queue.
type QueueConfig struct {
	// Name identifies the queue; it is unique and not empty.
	Name string `yaml:"name"`
	// Match lists the rules of which a job must match one. The queue "default" has none, every
	// other at least one ({} matches every job).
	Match []Match `yaml:"match,omitempty"`
	// Policy ranks the jobs of this queue. Empty: Config.Policy.
	Policy string `yaml:"policy,omitempty"`
	// Expression computes the rank in this queue, for the policy expression. Empty:
	// Config.Expression.
	Expression string `yaml:"expression,omitempty"`
	// Weight sets the share of this queue if BetweenQueues is weighted, between 0.001 and 1000.
	// 0: 1.
	Weight float64 `yaml:"weight,omitempty"`
}

// DefaultConfig orders by slack in a single queue.
func DefaultConfig() Config {
	return Config{
		Policy:        "slack",
		Urgency:       UrgencyAuto,
		BetweenQueues: "strict",
		AssumedRate:   costmodel.AssumedRate,
		Tuning: Tuning{
			GuardMin: 10 * time.Minute,
			Quantum:  defaultQuantum,
		},
	}
}

// Validate reports every fault with the path of its field. It builds each policy, so it checks
// expressions too.
func (c Config) Validate() error {
	var all faults
	if _, err := NewPolicy(c.Policy, c); err != nil {
		all.add("policy", "%w", err)
	}
	if !c.Urgency.known() {
		all.add("urgency", "is %q, must be auto, always or never", c.Urgency)
	}
	if c.GuardMin < 0 {
		all.add("tuning.guard_min", "is %v, must not be negative", c.GuardMin)
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
			all.add(path+"name", "is %q, must be unique and not empty", queue.Name)
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
			all.add(rule+"min_priority", "is %d, above max_priority %d: no job matches",
				*m.MinPriority, *m.MaxPriority)
		}
		if m.MinWindow < 0 || m.MaxWindow < 0 {
			all.add(rule+"min_window", "windows must not be negative")
		}
		if m.MaxWindow > 0 && m.MinWindow > m.MaxWindow {
			all.add(rule+"min_window", "is %v, above max_window %v: no job matches", m.MinWindow,
				m.MaxWindow)
		}
	}
	if qc.Policy != "" || qc.Expression != "" {
		own := c.of(qc)
		if _, err := NewPolicy(own.Policy, own); err != nil {
			all.add(path+"policy", "%w", err)
		}
	}
	if qc.Weight != 0 && !validWeight(qc.Weight) {
		all.add(path+"weight", "is %v, must be between 0.001 and 1000", qc.Weight)
	}
}

// of returns the configuration that applies in a named queue.
func (c Config) of(queue QueueConfig) Config {
	c.Policy = cmp.Or(queue.Policy, c.Policy)
	c.Expression = cmp.Or(queue.Expression, c.Expression)
	return c
}

func (u Urgency) known() bool {
	return u == UrgencyAuto || u == UrgencyAlways || u == UrgencyNever
}

// validWeight reports whether a weight is in the supported range.
func validWeight(w float64) bool { return w >= 0.001 && w <= 1000 }

// faults collects errors, each with the path of its field.
type faults []error

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
}
