package scheduler

import (
	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/internal/registry"
)

// Policy ranks jobs: lower goes first, equal ranks go by Created, then ID.
//
// Rank must depend on the job alone, not on the clock, on earlier calls or on other jobs: a
// deadline becomes an instant (Unix microseconds are exact in a float64), never a time left. It is
// called once per Put, so it may cost a microsecond, not a millisecond. A job without what the
// policy looks at is ranked +Inf; NaN says that the policy could not rank the job, which then goes
// last and is reported by Queue.Unranked. One goroutine calls a policy.
//
// schedulertest.TestPolicy checks all this.
type Policy interface {
	Name() string
	Rank(Job) float64
}

// DeadlineAware is implemented by a policy under which jobs whose time runs out overtake the others
// without the setting urgency: always. Policies that don't implement it leave deadlines alone.
type DeadlineAware interface {
	Policy
	DeadlineAware()
}

// Explainer is implemented by a policy that can say why it ranked the last job NaN.
type Explainer interface {
	Policy
	// Fault is about the last Rank; nil if that went well.
	Fault() error
}

// policies holds the builders of policies by name.
var policies = registry.New[func(Config) (Policy, error)]("policy")

func init() {
	Register("edf", func(Config) (Policy, error) { return edf{}, nil })
	Register("slack", func(cfg Config) (Policy, error) { return slack{cfg.AssumedRate}, nil })
	Register("fifo", func(Config) (Policy, error) { return fifo{}, nil })
	Register("priority", func(Config) (Policy, error) { return priority{}, nil })
	Register("sjf", func(Config) (Policy, error) { return sjf{}, nil })
	Register("expression", func(cfg Config) (Policy, error) {
		return newExpression(cfg.Expression, cfg.AssumedRate)
	})
}

// Register makes a policy known to configurations by its name. Call it from an init function.
func Register(name string, build func(Config) (Policy, error)) { policies.Register(name, build) }

// Policies are the registered names, sorted.
func Policies() []string { return policies.Names() }

// NewPolicy builds the policy of that name. The error of an unknown name lists the known ones and
// the nearest.
func NewPolicy(name string, cfg Config) (Policy, error) {
	build, err := policies.Get(name)
	if err != nil {
		return nil, err
	}
	return build(cfg)
}

// edf puts the job first that has the earliest deadline (or time to start by, if that is earlier).
type edf struct{}

func (edf) Name() string       { return "edf" }
func (edf) Rank(j Job) float64 { return j.due() }
func (edf) DeadlineAware()     {}

// slack puts the job first that must start earliest to be done in time: a large job goes before a
// small one of the same deadline.
type slack struct{ assumedRate float64 }

func (slack) Name() string         { return "slack" }
func (s slack) Rank(j Job) float64 { return j.latestStart(s.assumedRate) }
func (slack) DeadlineAware()       {}

// fifo puts the oldest job first.
type fifo struct{}

func (fifo) Name() string       { return "fifo" }
func (fifo) Rank(j Job) float64 { return instantOf(j.Created) }

// sjf puts the job first that has the least work left.
type sjf struct{}

func (sjf) Name() string       { return "sjf" }
func (sjf) Rank(j Job) float64 { return j.Work }

// priority puts the job of the highest priority first, and of those the one with the earliest
// deadline.
type priority struct{}

func (priority) Name() string { return "priority" }

// Rank packs both keys into one number: the priority above 32 bits, the deadline in Unix seconds
// below. With priorities held to 20 bits and a sign (about a million either way) every such number
// is exact.
func (priority) Rank(j Job) float64 {
	const (
		highest = 1 << 20
		seconds = 1 << 32
	)
	level := float64(max(-highest, min(j.Priority, highest)))
	due := max(0, min(float64(int64(min(j.due(), seconds*1e6)/1e6)), seconds-1))
	return due - portable.Rounded(level*seconds)
}
