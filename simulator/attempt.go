package simulator

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
)

// attempt is one try of a line in flight.
type attempt struct {
	start    plan.Start
	job      *job
	line     int
	sent     time.Time
	id       engine.ID // in the engine; 0: not there yet, or refused
	replica  *replica  // the replica that it has reached
	canceled bool      // evicted or aborted; its answer is ignored
	finished bool      // the planner has been notified of its end
}

// send starts a line's way to its runner.
func (d *dispatcher) send(s plan.Start) {
	sim := d.sim
	a := &attempt{start: s, job: d.byName[s.Key.Batch], line: s.Chunk*d.chunk + s.Slot,
		sent: sim.now}
	a.job.move(a.line, lineReady, lineInFlight)
	a.job.attempts[a.line] = a
	a.job.inFlight++
	sim.queue.add(sim.now.Add(sim.setup.Scenario.Pool.Network), func() { d.arrive(a) })
}

// arrive submits a line to its engine.
func (d *dispatcher) arrive(a *attempt) {
	sim, r := d.sim, d.sim.serving[a.start.Runner]
	if r == nil {
		d.fail(a, plan.Unreachable)
		return
	}
	a.replica = r
	if bound := sim.setup.Scenario.Pool.ShedAbove; bound > 0 &&
		r.engine.Snapshot(sim.now).Waiting >= bound {
		d.respond(a, 0, 0, &plan.Finished{Outcome: plan.Shed, Status: 503})
		return
	}
	if sim.now.Before(r.shedUntil) {
		d.respond(a, 0, 0, &plan.Finished{Outcome: plan.Shed, Status: 429})
		return
	}
	if wrong := r.wrongAnswer(); wrong != nil {
		d.respond(a, 0, 0, wrong)
		return
	}
	content := a.job.Line(a.line)
	req := &request{arrived: sim.now, sent: sim.now, input: content.Input, output: content.Output,
		line: a}
	a.id = sim.newID()
	if err := r.submit(a.id, req, content, priorityBatch); err != nil {
		sim.checkTooLong(req, err)
		a.id = 0
		d.respond(a, 0, 0, &plan.Finished{Outcome: plan.Refused, Status: 400})
	}
}

// evict cancels a line. The planner is notified at once, the engine after the network's delay.
func (d *dispatcher) evict(s plan.Start) {
	d.cancel(d.byName[s.Key.Batch].attempts[s.Chunk*d.chunk+s.Slot])
}

// cancel ends a line before its answer.
func (d *dispatcher) cancel(a *attempt) {
	sim := d.sim
	if a.canceled {
		return
	}
	a.canceled = true
	d.evictions++
	sim.queue.add(sim.now, func() {
		if !a.finished { // the daemon may have been killed
			d.finish(a, &plan.Finished{Start: a.start, Outcome: plan.Evicted,
				Latency: sim.now.Sub(a.sent)})
		}
	})
	sim.queue.add(sim.now.Add(sim.setup.Scenario.Pool.Network), func() {
		if a.id != 0 {
			a.replica.abort(a.id)
		}
	})
}

// fail reports that a line's connection broke or could not be made.
func (d *dispatcher) fail(a *attempt, outcome plan.Outcome) {
	d.respond(a, 0, 0, &plan.Finished{Outcome: outcome})
}

// firstToken sends a line's first token on its way back.
func (d *dispatcher) firstToken(a *attempt) {
	sim := d.sim
	sim.queue.add(sim.now.Add(engine.ServerDelay(1)+sim.setup.Scenario.Pool.Network), func() {
		if !a.canceled && !a.finished { // its replica may have died meanwhile
			d.step(&plan.FirstToken{Start: a.start, Latency: sim.now.Sub(a.sent)})
		}
	})
}

// answered takes a line's answer from the engine.
func (d *dispatcher) answered(req *request, c engine.Completion) {
	d.respond(req.line, engine.ServerDelay(c.Output), req.input-c.Cached+c.Output, &plan.Finished{
		Outcome: plan.Succeeded, Status: 200, InputTokens: req.input, OutputTokens: c.Output,
		CachedTokens: c.Cached,
	})
}

// respond sends a response on its way back; tokens is the number that the engine has computed for
// it.
func (d *dispatcher) respond(a *attempt, delay time.Duration, tokens int, f *plan.Finished) {
	sim := d.sim
	sim.queue.add(sim.now.Add(delay+sim.setup.Scenario.Pool.Network), func() {
		if a.canceled {
			d.wasted += int64(tokens)
			return
		}
		f.Start, f.Latency = a.start, sim.now.Sub(a.sent)
		d.finish(a, f)
	})
}

// finish notifies the planner of a line's outcome and counts it.
func (d *dispatcher) finish(a *attempt, f *plan.Finished) {
	j := a.job
	a.finished = true
	// The planner may start the line again before it returns its verdict, so the line is ready
	// first.
	j.move(a.line, lineInFlight, lineReady)
	j.inFlight--
	delete(j.attempts, a.line)
	if f.Outcome == plan.Shed {
		d.sheds++
	}
	verdict := d.step(f)
	// Like the dispatcher, record an answer although its batch has ended.
	kept := verdict == plan.Record || verdict == plan.Return && (f.Outcome == plan.Succeeded ||
		f.Outcome == plan.Refused)
	if !kept {
		return
	}
	j.move(a.line, lineReady, lineRecorded)
	if f.Outcome != plan.Succeeded {
		j.failed++
	} else {
		j.done++
		j.input += int64(f.InputTokens)
		j.output += int64(f.OutputTokens)
		d.sim.scaling.answered(a, f.InputTokens, f.OutputTokens)
		d.work += d.sim.setup.Profile.CostModel.LineWork(f.InputTokens, f.OutputTokens)
	}
	if j.done+j.failed == j.Lines {
		j.finished = d.sim.now.Sub(epoch)
		d.close(j)
	}
}

// preempted counts what an engine has computed for a line and will compute again.
func (d *dispatcher) preempted(tokens int) {
	d.preemptions++
	d.wasted += int64(tokens)
}
