package simulator

import (
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// saveEvery is the interval at which the daemon saves what it has learned.
const saveEvery = time.Minute

// saved is what the daemon has saved of what it learned.
type saved struct {
	learned []plan.Learned
	at      time.Time
	scaling []byte // JSON of autoscale.PoolLearned
	scaled  time.Time
}

// keepSaving saves again and again what the planner and the fleet have learned.
func (d *dispatcher) keepSaving() {
	sim := d.sim
	sim.queue.add(sim.now.Add(saveEvery), func() {
		if learned := d.planner.Learned(sim.now); !d.down && len(learned) > 0 {
			d.saved.learned, d.saved.at = learned, sim.now
		}
		if !d.down {
			d.saved.scaling, d.saved.scaled = sim.scaling.learned(), sim.now
		}
		d.keepSaving()
	})
}

// restart kills the daemon, which starts again after the time of the fault. Its lines in flight are
// cut off. Those that have been answered stay so.
func (d *dispatcher) restart(f scenario.Fault) {
	sim := d.sim
	if d.down {
		return
	}
	d.down, d.wake = true, time.Time{}
	d.lives++
	sim.scaling.stop()
	clear(d.replicas)
	sim.inline.killed()
	for _, j := range d.jobs {
		for _, line := range slices.Sorted(maps.Keys(j.attempts)) {
			d.cutOff(j.attempts[line])
		}
		clear(j.attempts)
		j.inFlight, j.claimed = 0, 0
	}
	planner, err := sim.newPlanner()
	if err != nil { // what was built once can be built again
		panic(err)
	}
	d.planner = planner
	d.observers.watch(planner)
	sim.queue.add(sim.now.Add(f.For), func() { d.startAgain(f.Forget) })
}

// cutOff ends a line whose sender is gone. Its engine notices that after the network's delay.
func (d *dispatcher) cutOff(a *attempt) {
	a.job.move(a.line, lineInFlight, lineReady)
	a.canceled, a.finished = true, true
	d.sim.queue.add(d.sim.now.Add(d.sim.setup.Scenario.Pool.Network), func() {
		if a.id != 0 {
			a.replica.abort(a.id)
		}
	})
}

// startAgain starts the daemon after a restart, with what it has saved unless that is forgotten.
func (d *dispatcher) startAgain(forget bool) {
	sim := d.sim
	d.down = false
	if !forget {
		recall := plan.Recall{}
		for _, l := range d.saved.learned {
			recall.Pools = append(recall.Pools, plan.Recalled{Learned: l,
				Age: sim.now.Sub(d.saved.at)})
		}
		d.step(recall)
	}
	sim.scaling.startAgain(d.saved, forget)
	for _, r := range sim.replicas {
		if r.phase == ready {
			d.runnerUp(r)
		}
	}
	d.scrapeGateway(sim.interactive.gateway)
	for _, j := range d.jobs {
		if !j.closed && !epoch.Add(j.At).After(sim.now) {
			d.put(j, epoch.Add(j.At))
		}
	}
	sim.scaling.stepNow()
}
