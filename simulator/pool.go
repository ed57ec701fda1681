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
	// model is served by all pools, and all jobs ask for it.
	model = "model"
	// chat is the name of the pool with interactive traffic in the planner, if there are others.
	chat = "chat"
)

// pool is replicas of one kind. The first pool shares the interactive traffic; the others serve
// batch lines alone.
type pool struct {
	sim     *simulation
	name    string // empty: the first
	planned string // its name in the planner
	engine  engine.Config
	scaling scenario.Scaling

	replicas []*replica // that exist, by number
	numbers  int        // numbers that have been given out
	// the number of times that the replica of a number was built
	builds     map[int]int
	starts     int // of replicas, including those of lost ones
	wanted     int
	closed     bool    // to batch lines
	endedSpans []span  // when replicas that have ended were paid for
	work       float64 // of answered lines, in the planner's unit
}

// newPools builds the scenario's pools with the replicas that they begin with, which are ready.
func newPools(sim *simulation) error {
	s := sim.setup.Scenario
	sim.pools = []*pool{{planned: sim.setup.firstPool(), engine: sim.setup.Engine(),
		scaling: s.Pool.Scaling, wanted: s.Pool.Replicas}}
	for _, b := range s.BatchPools {
		sim.pools = append(sim.pools, &pool{name: b.Name, planned: b.Name,
			engine: sim.setup.BatchEngine(b), scaling: b.Scaling, wanted: b.Replicas})
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

// firstPool returns the name of the first pool in the planner.
func (s Setup) firstPool() string {
	if len(s.Scenario.BatchPools) > 0 {
		return chat
	}
	return ""
}

// models returns the models that every pool serves.
func models() []string { return []string{model} }

// build returns a new replica with an empty engine. A replica that is lost and restarted is built
// again with a random sequence of its own.
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

// add asks for another replica, which is paid for from now on.
func (x *pool) add() *replica {
	r := x.restart(x.numbers)
	x.numbers++
	return r
}

// restart asks for the replica of a number.
func (x *pool) restart(number int) *replica {
	r, err := x.build(number)
	if err != nil {
		panic(fmt.Sprintf("simulator: a replica can't be built again: %v", err))
	}
	x.starts++
	i, _ := slices.BinarySearchFunc(x.replicas, number, func(r *replica, number int) int {
		return r.number - number
	})
	// a loop over the old list may be in progress
	x.replicas = slices.Insert(slices.Clone(x.replicas), i, r)
	x.sim.refreshReplicas()
	return r
}

// remove forgets a replica that has ended.
func (x *pool) remove(r *replica) {
	i := slices.Index(x.replicas, r)
	x.replicas = slices.Delete(slices.Clone(x.replicas), i, i+1)
	x.endedSpans = append(x.endedSpans, span{r.created, x.sim.now})
	x.sim.refreshReplicas()
}

// refreshReplicas collects the replicas of all pools.
func (sim *simulation) refreshReplicas() {
	sim.replicas = nil
	for _, x := range sim.pools {
		sim.replicas = append(sim.replicas, x.replicas...)
	}
}

// byNumber returns the replica of a number; nil if there is none.
func (x *pool) byNumber(number int) *replica {
	i, found := slices.BinarySearchFunc(x.replicas, number, func(r *replica, number int) int {
		return r.number - number
	})
	if !found {
		return nil
	}
	return x.replicas[i]
}

// count returns the number of replicas in a phase.
func (x *pool) count(phase phase) int {
	n := 0
	for _, r := range x.replicas {
		if r.phase == phase {
			n++
		}
	}
	return n
}

// hours returns the replica hours so far, from being asked for to the end.
func (x *pool) hours() float64 {
	sum := time.Duration(0)
	for _, s := range x.spans() {
		sum += s.to.Sub(s.from)
	}
	return sum.Hours()
}

// span is a period of time.
type span struct{ from, to time.Time }

// spans returns the periods in which replicas were paid for so far.
func (x *pool) spans() []span {
	spans := slices.Clone(x.endedSpans)
	for _, r := range x.replicas {
		spans = append(spans, span{r.created, x.sim.now})
	}
	return spans
}

// PaidSlot is the resolution of NoBatch.Paid.
const PaidSlot = 10 * time.Minute

// paidBySlot returns the mean number of replicas that were paid for in each slot.
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

// replicaCounts returns the numbers of replicas that are wanted, that are ready, and that are
// starting.
func (sim *simulation) replicaCounts() (wanted, serving, coming int) {
	for _, x := range sim.pools {
		wanted += x.wanted
		serving += x.count(ready)
		coming += x.count(starting)
	}
	return wanted, serving, coming
}

// gpuHours returns the replica hours of all pools so far.
func (sim *simulation) gpuHours() float64 {
	sum := 0.0
	for _, x := range sim.pools {
		sum += x.hours()
	}
	return sum
}

// pool returns the pool with a name; the first has none.
func (sim *simulation) pool(name string) *pool {
	return sim.pools[slices.IndexFunc(sim.pools, func(x *pool) bool { return x.name == name })]
}
