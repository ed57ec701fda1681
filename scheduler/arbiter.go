package scheduler

import "github.com/tidefill/tidefill/internal/registry"

// Arbiter chooses between named queues.
//
// Pick gets the queues that have something to offer, at least one, in listed order, and returns an
// index into them. It must depend on its argument alone and not keep it.
type Arbiter interface {
	Name() string
	Pick([]Contender) int
}

// Contender is a named queue that has something to offer.
type Contender struct {
	Name   string
	Weight float64 // from the configuration, above 0
	// Served is the work started from this queue. A queue that comes back after having nothing to
	// offer is lifted to the share that the others have reached, so nobody saves up.
	Served float64
}

// arbiters holds the builders of arbiters by name.
var arbiters = registry.New[func(Config) (Arbiter, error)]("arbiter between queues")

func init() {
	RegisterArbiter("strict", func(Config) (Arbiter, error) { return strict{}, nil })
	RegisterArbiter("weighted", func(Config) (Arbiter, error) { return weighted{}, nil })
}

// RegisterArbiter makes an arbiter known to configurations by its name. Call it from an init
// function.
func RegisterArbiter(name string, build func(Config) (Arbiter, error)) {
	arbiters.Register(name, build)
}

// Arbiters are the registered names, sorted.
func Arbiters() []string { return arbiters.Names() }

// NewArbiter builds the arbiter of that name. The error of an unknown name lists the known ones and
// the nearest.
func NewArbiter(name string, cfg Config) (Arbiter, error) {
	build, err := arbiters.Get(name)
	if err != nil {
		return nil, err
	}
	return build(cfg)
}

// strict serves a queue only while all listed before it have nothing to offer.
type strict struct{}

func (strict) Name() string         { return "strict" }
func (strict) Pick([]Contender) int { return 0 }

// weighted serves the queue that has had the least work for its weight.
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
