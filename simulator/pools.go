package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

const (
	// model is what all pools serve and all jobs ask for.
	model = "model"
	// chat is what only the pool with interactive traffic serves, where there are others: runners
	// that serve different models are different pools to the planner, each with a flow control of
	// its own.
	chat = "chat"
)

// pool is replicas of one kind. The first shares the interactive traffic; the
// others serve batch lines alone.
type pool struct {
	plant  *plant
	name   string // empty: the first
	models []string
	engine engine.Config
	scaled scenario.Scaled

	replicas []*replica // that exist, in order of number
	asked    int        // how many there have ever been
	lives    map[int]int
	starts   int // of replicas, those of lost ones again among them
	wanted   int
	closed   bool    // to batch lines
	lived    []span  // of those that are gone, while they were paid for
	work     float64 // of lines answered, in the planner's unit
}

// newPools builds the scenario's pools and the replicas they begin with, which
// have served for long.
func newPools(p *plant) error {
	s := p.setup.Scenario
	p.pools = []*pool{{models: p.setup.firstModels(), engine: p.setup.engineConfig(),
		scaled: s.Pool.Scaled, wanted: s.Pool.Replicas}}
	for _, b := range s.BatchPools {
		p.pools = append(p.pools, &pool{name: b.Name, models: batchModels(b),
			engine: p.setup.batchEngine(b), scaled: b.Scaled, wanted: b.Replicas})
	}
	for _, x := range p.pools {
		x.plant, x.lives = p, map[int]int{}
		if _, err := x.build(0); err != nil { // what can be built once can be built again
			return fmt.Errorf("pool %q: %w", x.name, err)
		}
		x.lives[0] = 0
		for range x.wanted {
			x.add().serve()
		}
	}
	return nil
}

// firstModels are what the first pool serves.
func (s Setup) firstModels() []string {
	if len(s.Scenario.BatchPools) > 0 {
		return []string{chat, model}
	}
	return []string{model}
}

// batchModels are what a further pool serves.
func batchModels(b scenario.BatchPool) []string { return []string{model, b.Name} }

// build makes a replica that knows nothing yet. A replica that was lost and comes
// back has another life.
func (x *pool) build(number int) (*replica, error) {
	x.lives[number]++
	name := "replica-" + strconv.Itoa(number)
	if x.name != "" {
		name = x.name + "-" + strconv.Itoa(number)
	}
	cause := name
	if life := x.lives[number]; life > 1 {
		cause += "/" + strconv.Itoa(life)
	}
	e, err := engine.New(x.engine, x.plant.setup.seed().Cause("engine "+cause))
	if err != nil {
		return nil, err
	}
	x.plant.fill(name, x.engine, e)
	return &replica{plant: x.plant, pool: x, name: name, cause: cause, number: number, engine: e,
		phase: starting, asked: x.plant.now, since: x.plant.now}, nil
}

// add asks for a replica, which is paid for from now on.
func (x *pool) add() *replica {
	r := x.again(x.asked)
	x.asked++
	return r
}

// again asks for a replica of a number.
func (x *pool) again(number int) *replica {
	r, err := x.build(number)
	if err != nil {
		panic(fmt.Sprintf("simulator: a replica can't be built again: %v", err))
	}
	x.starts++
	i, _ := slices.BinarySearchFunc(x.replicas, number, func(r *replica, number int) int {
		return r.number - number
	})
	// somebody may be looking through the old list
	x.replicas = slices.Insert(slices.Clone(x.replicas), i, r)
	x.plant.list()
	return r
}

// remove forgets a replica that is gone.
func (x *pool) remove(r *replica) {
	i := slices.Index(x.replicas, r)
	x.replicas = slices.Delete(slices.Clone(x.replicas), i, i+1)
	x.lived = append(x.lived, span{r.asked, x.plant.now})
	x.plant.list()
}

// list is the replicas of all pools.
func (p *plant) list() {
	p.replicas = nil
	for _, x := range p.pools {
		p.replicas = append(p.replicas, x.replicas...)
	}
}

// replica is the one of a number, nil if there is none.
func (x *pool) replica(number int) *replica {
	i, found := slices.BinarySearchFunc(x.replicas, number, func(r *replica, number int) int {
		return r.number - number
	})
	if !found {
		return nil
	}
	return x.replicas[i]
}

// count is how many replicas are in a phase.
func (x *pool) count(phase phase) int {
	n := 0
	for _, r := range x.replicas {
		if r.phase == phase {
			n++
		}
	}
	return n
}

// hours are the replica hours so far, from being asked for to being gone.
func (x *pool) hours() float64 {
	sum := time.Duration(0)
	for _, s := range x.spans() {
		sum += s.to.Sub(s.from)
	}
	return sum.Hours()
}

// span is a stretch of time.
type span struct{ from, to time.Time }

// spans are when replicas were paid for so far.
func (x *pool) spans() []span {
	spans := slices.Clone(x.lived)
	for _, r := range x.replicas {
		spans = append(spans, span{r.asked, x.plant.now})
	}
	return spans
}

// PaidSlot is the grain of Quiet.Paid.
const PaidSlot = 10 * time.Minute

// paidBySlot is how many replicas were paid for in the mean of each slot.
func (x *pool) paidBySlot() []float64 {
	paid := make([]float64, (x.plant.now.Sub(epoch)+PaidSlot-1)/PaidSlot)
	for _, s := range x.spans() {
		for i := range paid {
			begin := epoch.Add(time.Duration(i) * PaidSlot)
			from, to := s.from, s.to
			if from.Before(begin) {
				from = begin
			}
			if end := begin.Add(PaidSlot); to.After(end) {
				to = end
			}
			if to.After(from) {
				paid[i] += to.Sub(from).Seconds() / PaidSlot.Seconds()
			}
		}
	}
	return paid
}

// replicaCounts are how many replicas somebody wants, how many serve, and how many
// are on their way.
func (p *plant) replicaCounts() (wanted, serving, coming int) {
	for _, x := range p.pools {
		wanted += x.wanted
		serving += x.count(ready)
		coming += x.count(starting)
	}
	return wanted, serving, coming
}

// gpuHours are the replica hours of all pools so far.
func (p *plant) gpuHours() float64 {
	sum := 0.0
	for _, x := range p.pools {
		sum += x.hours()
	}
	return sum
}

// poolNamed finds a pool as a scenario names it.
func (p *plant) poolNamed(name string) *pool {
	return p.pools[slices.IndexFunc(p.pools, func(x *pool) bool { return x.name == name })]
}
