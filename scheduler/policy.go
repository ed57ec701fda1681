package scheduler

import (
	"github.com/tidefill/tidefill/internal/byname"
)

// Policy ranks jobs. Lower ranks go first; equal ranks go by Priority, Created and ID.
//
// Rank must depend on the job alone, not on the clock, on earlier calls or on other jobs. For
// deadlines it returns an instant rather than a time left; Unix microseconds are exact in a
// float64. It is called once per Put, so it may take a microsecond but not a millisecond. A job
// without the property that the policy ranks by has rank +Inf. NaN says that the policy could not
// rank the job, which then goes last and is reported by Queue.Fault. One goroutine calls a
// policy.
//
// schedulertest.TestPolicy checks all this.
type Policy interface {
	Name() string
	Rank(Job) float64
}

// DeadlineAware is implemented by a policy under which jobs whose deadline is near overtake the
// others even without the setting urgency: always. The others share by work, since their order
// does not matter for deadlines.
type DeadlineAware interface {
	Policy
	DeadlineAware()
}

// Explainer is implemented by a policy that can explain why it returned NaN.
type Explainer interface {
	Policy
	// Fault returns the error of the last Rank, or nil.
	Fault() error
}

// policies holds the builders of policies by name.
var policies = byname.New[func(Config) (Policy, error)]("policy")

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

// Register adds a policy that configurations can name. Call it from an init function.
func Register(name string, build func(Config) (Policy, error)) { policies.Register(name, build) }

// Policies returns the registered names, sorted.
func Policies() []string { return policies.Names() }

// NewPolicy builds the policy of a name. The error for an unknown name lists the known ones and
// suggests the nearest.
func NewPolicy(name string, cfg Config) (Policy, error) {
	build, err := policies.Get(name)
	if err != nil {
		return nil, err
	}
	return build(cfg)
}

// edf ranks by the deadline, or by StartBy if that is earlier.
type edf struct{}

func (edf) Name() string       { return "edf" }
func (edf) Rank(j Job) float64 { return j.due() }
func (edf) DeadlineAware()     {}

// slack ranks by the latest start. Of two jobs with the same deadline the larger one goes first.
type slack struct{ assumedRate float64 }

func (slack) Name() string         { return "slack" }
func (s slack) Rank(j Job) float64 { return j.latestStart(s.assumedRate) }
func (slack) DeadlineAware()       {}

// fifo ranks by creation time.
type fifo struct{}

func (fifo) Name() string       { return "fifo" }
func (fifo) Rank(j Job) float64 { return instantOf(j.Created) }

// sjf ranks by the work left, the least first.
type sjf struct{}

func (sjf) Name() string       { return "sjf" }
func (sjf) Rank(j Job) float64 { return j.Work }

// priority ranks by priority, the highest first, then by deadline.
type priority struct{}

func (priority) Name() string { return "priority" }

// Rank combines both keys in one number: the priority above 32 bits, the deadline in Unix seconds
// below. Priorities are limited to 20 bits and a sign, about a million either way, so every such
// number is exact.
func (priority) Rank(j Job) float64 {
	const (
		highest = 1 << 20
		seconds = 1 << 32
	)
	level := float64(max(-highest, min(j.Priority, highest)))
	due := max(0, min(float64(int64(min(j.due(), seconds*1e6)/1e6)), seconds-1))
	return due - level*seconds
}
