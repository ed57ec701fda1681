package gradient

import (
	"time"

	"github.com/tidefill/tidefill/internal/faults"
)

// Config is the configuration of the policy gradient, with Netflix's names and defaults.
type Config struct {
	// Initial is a runner's limit at first, from min to max. Default: 20.
	Initial int `yaml:"initial"`
	// Min is the lowest limit, at least 1. Default: 20.
	Min int `yaml:"min"`
	// Max is the highest limit. Default: 200.
	Max int `yaml:"max"`
	// PerPool limits how many lines the pool carries, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
	// Tolerance is by how much latency may exceed its long-term mean before the limit falls, at
	// least 1. Default: 1.5.
	Tolerance float64 `yaml:"tolerance"`
	// Tuning holds the other constants of the algorithm.
	Tuning Tuning `yaml:"tuning"`
}

// Tuning holds constants of Gradient2, with Netflix's names.
type Tuning struct {
	// Queue is by how many the limit grows, before smoothing, while latency stays. Default: 4.
	Queue int `yaml:"queue"`
	// Smoothing is the share of a new limit that is taken over at once, above 0 and at most 1.
	// Default: 0.2.
	Smoothing float64 `yaml:"smoothing"`
	// LongWindow is over how many windows the long-term mean looks back, at least 1. Default: 600.
	LongWindow int `yaml:"long_window"`
	// Window is the shortest time between two updates of a limit. Default: 1s.
	Window time.Duration `yaml:"window"`
	// Samples is how many answers an update needs at least, at least 1. Default: 10.
	Samples int `yaml:"samples"`
}

// DefaultConfig returns the defaults of Netflix's library.
func DefaultConfig() Config {
	return Config{
		Initial: 20, Min: 20, Max: 200, Tolerance: 1.5,
		Tuning: Tuning{Queue: 4, Smoothing: 0.2, LongWindow: 600, Window: time.Second,
			Samples: 10},
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	all.AtLeast("min", c.Min, 1)
	all.AtLeast("initial", c.Initial, c.Min)
	if c.Max < c.Initial {
		all.Add("max", "is %d, must be at least initial (%d)", c.Max, c.Initial)
	}
	all.AtLeast("per_pool", c.PerPool, 0)
	if !(c.Tolerance >= 1 && c.Tolerance <= 100) {
		all.Add("tolerance", "is %v, must be from 1 to 100", c.Tolerance)
	}
	all.AtLeast("tuning.queue", c.Tuning.Queue, 0)
	if !(c.Tuning.Smoothing > 0 && c.Tuning.Smoothing <= 1) {
		all.Add("tuning.smoothing", "is %v, must be above 0 and at most 1", c.Tuning.Smoothing)
	}
	all.AtLeast("tuning.long_window", c.Tuning.LongWindow, 1)
	all.Positive("tuning.window", c.Tuning.Window)
	all.AtLeast("tuning.samples", c.Tuning.Samples, 1)
	return all.Err()
}
