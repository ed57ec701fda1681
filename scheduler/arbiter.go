package scheduler

import "github.com/tidefill/tidefill/internal/byname"

// Arbiter chooses between named queues.
//
// Pick returns the index of the queue to serve. Its argument lists the queues that have a job to
// offer, at least one, in configured order. The result must depend on the argument alone, and Pick
// must not retain the argument.
type Arbiter interface {
	Name() string
	Pick([]Contender) int
}

// Contender is a named queue that has a job to offer.
type Contender struct {
	Name   string
	Weight float64 // from the configuration, above 0
	// Served is the work started from this queue. A queue that had nothing to offer for a while is
	// raised to the share that the others have reached, so it cannot save up.
	Served float64
}

// arbiters holds the builders of arbiters by name.
var arbiters = byname.New[func(Config) (Arbiter, error)]("arbiter between queues")

func init() {
	RegisterArbiter("strict", func(Config) (Arbiter, error) { return strict{}, nil })
	RegisterArbiter("weighted", func(Config) (Arbiter, error) { return weighted{}, nil })
}

// RegisterArbiter adds an arbiter that configurations can name. Call it from an init function.
func RegisterArbiter(name string, build func(Config) (Arbiter, error)) {
	arbiters.Register(name, build)
}

// Arbiters returns the registered names, sorted.
func Arbiters() []string { return arbiters.Names() }

// NewArbiter builds the arbiter of a name. The error for an unknown name lists the known ones and
// suggests the nearest.
func NewArbiter(name string, cfg Config) (Arbiter, error) {
	build, err := arbiters.Get(name)
	if err != nil {
		return nil, err
	}
	return build(cfg)
}

// strict serves a queue only while the ones listed before it have nothing to offer.
type strict struct{}

func (strict) Name() string         { return "strict" }
func (strict) Pick([]Contender) int { return 0 }

// weighted serves the queue with the least work in proportion to its weight.
type weighted struct{}

func (weighted) Name() string { return "weighted" }

func (weighted) Pick(queues []Contender) int {
	best := 0
	for i, queue := range queues {
		if queue.Served*queues[best].Weight < queues[best].Served*queue.Weight {
			best = i
		}
	}
	return best
}
