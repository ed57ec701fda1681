package flowcontrol

import (
	"fmt"
	"reflect"

	"github.com/tidefill/tidefill/internal/byname"
)

// Factory makes the controllers of one policy and declares what the policy needs.
type Factory struct {
	// Default is the policy's own configuration with its default values; nil: the policy has
	// nothing to configure. It is a struct (not a pointer) whose fields have yaml tags. The
	// configuration file has it below flowcontrol, under the policy's name.
	Default PolicyConfig
	// Needs declares what the policy uses.
	Needs Needs
	// New returns a controller for one pool. It is called with a valid configuration, whose Policy
	// is the policy's name; OwnConfig returns the policy's part of it. An error means that the
	// controller cannot be built although the configuration is valid.
	New func(Config) (Controller, error)
}

// Needs declares what a policy uses, for those who provide it. The zero value is a policy that
// observes the fate of its lines and nothing else.
type Needs struct {
	// Readings says that the policy uses readings of metrics. If no pool's policy does, nobody
	// reads any.
	Readings bool
	// Streams says that the policy may ask for lines to be streamed. Without it, Allowance.Streams
	// is always 0.
	Streams bool
	// CostModel says that the policy cannot work without Engine.CostModel.
	CostModel bool
	// Protects says that the policy keeps the latency of interactive requests within the SLO.
	Protects bool
	// UnsharedIterations says that the policy lets iterations take as long as they need in a pool
	// that is not Shared. Predictions for such a pool ignore SLO.TPOT.
	UnsharedIterations bool
}

var policies = byname.New[Factory]("policy")

// Register makes a policy known to configurations by its name. Call it from an init function. It
// panics if the name is empty or taken, or if Default is neither nil nor a struct, since these are
// mistakes of the program.
func Register(name string, f Factory) {
	if f.Default != nil && reflect.TypeOf(f.Default).Kind() != reflect.Struct {
		panic(fmt.Sprintf("register policy %q: Default is a %T, not a struct", name, f.Default))
	}
	policies.Register(name, f)
}

// Policies returns the names of the registered policies, sorted.
func Policies() []string { return policies.Names() }

// NeedsOf returns what a registered policy uses; the zero value for one that is not registered.
func NeedsOf(policy string) Needs {
	f, _ := policies.Get(policy)
	return f.Needs
}

// New returns a controller of the policy that cfg selects, for one pool. The error is that of
// cfg.Validate or of the policy's factory.
func New(cfg Config) (Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("flowcontrol config: %w", err)
	}
	f, err := policies.Get(cfg.Policy)
	if err != nil {
		return nil, err
	}
	return f.New(cfg)
}
