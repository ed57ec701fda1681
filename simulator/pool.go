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
	sim    *simulation
	name   string // empty: the first
	models []string
	engine engine.Config
	scaled scenario.Scaled

	replicas   []*replica // that exist, in order of number
	numbers    int        // how many there have ever been
	builds     map[int]int
	starts     int // of replicas, those of lost ones again among them
	wanted     int
	closed     bool    // to batch lines
	endedSpans []span  // of those that are gone, while they were paid for
	work       float64 // of lines answered, in the planner's unit
}

// newPools builds the scenario's pools and the replicas they begin with, which
// have served for long.
func newPools(sim *simulation) error {
	s := sim.setup.Scenario
	sim.pools = []*pool{{models: sim.setup.firstModels(), engine: sim.setup.Engine(),
		scaled: s.Pool.Scaled, wanted: s.Pool.Replicas}}
	for _, b := range s.BatchPools {
		sim.pools = append(sim.pools, &pool{name: b.Name, models: batchModels(b),
			engine: sim.setup.BatchEngine(b), scaled: b.Scaled, wanted: b.Replicas})
	}
	for _, x := range sim.pools {
		x.sim, x.builds = sim, map[int]int{}
		if _, err := x.build(0); err != nil { // what can be built once can be built again
			return fmt.Errorf("pool %q: %w", x.name, err)
		}
		x.builds[0] = 0
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
	x.builds[number]++
	name := "replica-" + strconv.Itoa(number)
	if x.name != "" {
		name = x.name + "-" + strconv.Itoa(number)
	}
	cause := name
	if life := x.builds[number]; life > 1 {
		cause += "/" + strconv.Itoa(life)
	}
	e, err := engine.New(x.engine, x.sim.setup.seed().Rand("engine "+cause))
	if err != nil {
		return nil, err
	}
	x.sim.installFiller(name, x.engine, e)
	return &replica{sim: x.sim, pool: x, name: name, cause: cause, number: number, engine: e,
		phase: starting, created: x.sim.now, since: x.sim.now}, nil
}

// add asks for a replica, which is paid for from now on.
func (x *pool) add() *replica {
	r := x.restart(x.numbers)
	x.numbers++
	return r
}

// again asks for a replica of a number.
func (x *pool) restart(number int) *replica {
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
	x.sim.refreshReplicas()
	return r
}

// remove forgets a replica that is gone.
func (x *pool) remove(r *replica) {
	i := slices.Index(x.replicas, r)
	x.replicas = slices.Delete(slices.Clone(x.replicas), i, i+1)
	x.endedSpans = append(x.endedSpans, span{r.created, x.sim.now})
	x.sim.refreshReplicas()
}

// list is the replicas of all pools.
func (sim *simulation) refreshReplicas() {
	sim.replicas = nil
	for _, x := range sim.pools {
		sim.replicas = append(sim.replicas, x.replicas...)
	}
}

// replica is the one of a number, nil if there is none.
func (x *pool) byNumber(number int) *replica {
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
	spans := slices.Clone(x.endedSpans)
	for _, r := range x.replicas {
		spans = append(spans, span{r.created, x.sim.now})
	}
	return spans
}

// PaidSlot is the grain of Quiet.Paid.
const PaidSlot = 10 * time.Minute

// paidBySlot is how many replicas were paid for in the mean of each slot.
func (x *pool) paidBySlot() []float64 {
	paid := make([]float64, (x.sim.now.Sub(epoch)+PaidSlot-1)/PaidSlot)
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
func (sim *simulation) replicaCounts() (wanted, serving, coming int) {
	for _, x := range sim.pools {
		wanted += x.wanted
		serving += x.count(ready)
		coming += x.count(starting)
	}
	return wanted, serving, coming
}

// gpuHours are the replica hours of all pools so far.
func (sim *simulation) gpuHours() float64 {
	sum := 0.0
	for _, x := range sim.pools {
		sum += x.hours()
	}
	return sum
}

// poolNamed finds a pool as a scenario names it.
func (sim *simulation) pool(name string) *pool {
	return sim.pools[slices.IndexFunc(sim.pools, func(x *pool) bool { return x.name == name })]
}
