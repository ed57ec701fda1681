package autoscale

import (
	"time"

	"github.com/tidefill/tidefill/internal/byname"
)

// Controller sets the number of replicas that the pools of one model need.
//
// One goroutine uses it. It reads no clock; now must not decrease from call to call. The same
// sequence of calls gives the same results.
type Controller interface {
	Name() string
	// Step returns the decision for a state, which must be complete at every call. Call it no later
	// than Decision.Wake, and at once when a job is added or removed and when a replica becomes
	// ready or is lost. The controller keeps a history of what it has observed.
	Step(now time.Time, s State) Decision
}

// New builds the controller of Config.Policy.
func New(cfg Config) (Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	build, err := policies.Get(cfg.Policy)
	if err != nil {
		return nil, err
	}
	return build(cfg, newTracker(cfg)), nil
}

// policies holds the builders of policies by name.
var policies = byname.New[func(Config, *tracker) Controller]("policy")

func init() {
	policies.Register("interactive", newInteractive)
	policies.Register("queue_length", newQueueLength)
	policies.Register("request_rate", newRequestRate)
	policies.Register("separate", newSeparate)
	policies.Register("slack", newSlack)
	policies.Register("static", newStatic)
}
