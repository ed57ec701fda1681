package autoscale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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
	return policies[cfg.Policy](cfg), nil
}

// policies by name.
var policies = map[string]func(Config) Controller{
	"interactive":  newInteractive,
	"queue_length": newQueueLength,
	"separate":     newSeparate,
	"slack":        newSlack,
	"static":       newStatic,
}

// Policies lists the names that Config.Policy knows.
func Policies() []string { return slices.Sorted(maps.Keys(policies)) }

func known(policy string) error {
	if policies[policy] == nil {
		return fmt.Errorf("%q is unknown; known are %s", policy, strings.Join(Policies(), ", "))
	}
	return nil
}
