package autoscale

import (
	"time"

	"github.com/tidefill/tidefill/internal/registry"
)

// Controller decides for the pools of one model.
//
// One goroutine uses it. It reads no clock: now must not go back from call to call. The same calls
// give the same answers.
type Controller interface {
	Name() string
	// Step answers what the state asks for. Call it at Decision.Wake at the latest, and when a job
	// comes or goes, when replicas are lost or become ready. It remembers what it has seen, so the
	// state of every step is the whole truth of that moment.
	Step(now time.Time, s State) Decision
}

// New builds the controller that the configuration names.
func New(cfg Config) (Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	build, err := policies.Get(cfg.Policy)
	if err != nil {
		return nil, err
	}
	return build(cfg), nil
}

// policies holds the builders of policies by name.
var policies = registry.New[func(Config) Controller]("policy")

func init() {
	policies.Register("interactive", newInteractive)
	policies.Register("queue_length", newQueueLength)
	policies.Register("separate", newSeparate)
	policies.Register("slack", newSlack)
	policies.Register("static", newStatic)
}

// Policies lists the names that Config.Policy knows.
func Policies() []string { return policies.Names() }
