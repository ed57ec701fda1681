package simulator

import (
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

const (
	// readTime is what it takes to claim a chunk and read its lines.
	readTime = 5 * time.Millisecond
	// backlogLines is how many lines a backlog without end tells the planner.
	backlogLines = 1_000_000_000
	// sampleLines is how many lines of a backlog are measured to tell its size.
	sampleLines = 1000
)

// batches stand where the dispatcher does: they tell the planner what happens to
// the jobs and do what it says.
type batches struct {
	plant    *plant
	planner  *plan.Planner
	chunk    int // lines
	watchers watchers
	replicas map[string]*replica
	jobs     []*job
	byName   map[string]*job
	wake     time.Time

	sheds, preemptions, recalls int
	wasted                      int64   // tokens computed in vain
	work                        float64 // milliseconds of engine iterations
}

// job is a batch under way.
type job struct {
	*workload.Job
	lines                  []lineState      // of the chunks claimed so far
	underWay               map[int]*attempt // by line
	done, failed, inFlight int
	input, output          int64
	over                   bool          // no more lines start
	finished               time.Duration // when the last line was answered; 0: not yet
}

type lineState uint8

const (
	lineReady lineState = iota // held by the planner, now or for a later attempt
	lineUnderWay
	lineRecorded
)

// attempt is a line under way.
type attempt struct {
	start   plan.Start
	job     *job
	line    int
	sent    time.Time
	id      engine.ID // in the engine; 0: not there yet, or refused
	replica *replica  // that it has reached
	over    bool      // recalled: whatever still comes of it, nobody waits for
	settled bool      // the planner knows its end
}

func newBatches(p *plant) (*batches, error) {
	policy := p.setup.Policy
	planner, err := plan.New(policy.Plan, plan.Deps{Scheduler: policy.Scheduler,
		Flow: p.setup.told(), Random: p.setup.seed().Cause("planner")})
	if err != nil {
		return nil, err
	}
	b := &batches{plant: p, planner: planner, chunk: max(1, policy.ChunkLines),
		replicas: map[string]*replica{}, byName: map[string]*job{}}
	b.watchers = newWatchers(p.setup.Watch, planner, b.chunk)
	jobs, err := p.setup.jobs()
	if err != nil {
		return nil, err
	}
	p.agenda.put(epoch, func() {
		for _, r := range p.replicas {
			b.runnerUp(r)
		}
		b.watchGateway(p.users.gateway)
	})
	for {
		handed, ok := jobs.Next()
		if !ok {
			return b, nil
		}
		j := &job{Job: handed, underWay: map[int]*attempt{}}
		b.jobs = append(b.jobs, j)
		b.byName[j.Name] = j
		p.agenda.put(epoch.Add(j.At), func() { b.begin(j) })
	}
}

// runnerUp tells the planner of a replica that serves from now on.
func (b *batches) runnerUp(r *replica) {
	if r.pool.closed {
		return
	}
	switch known := b.replicas[r.name]; {
	case known == r:
		return
	case known != nil: // lost, and back before anybody has noticed
		b.runnerGone(known)
	}
	b.replicas[r.name] = r
	b.step(plan.RunnerUp{Runner: r.name, Models: r.pool.models})
	b.watch(r)
}

// runnerGone tells the planner that a replica serves no more.
func (b *batches) runnerGone(r *replica) {
	if b.replicas[r.name] == r {
		delete(b.replicas, r.name)
		b.step(plan.RunnerGone{Runner: r.name})
	}
}

// step asks the planner and does what it says, as the dispatcher's loop does.
func (b *batches) step(ev plan.Event) plan.Verdict {
	p := b.plant
	b.watchers.before(p.now)
	actions := b.planner.Step(p.now, ev)
	b.watchers.see(p.now, ev, actions)
	for _, s := range actions.Start {
		b.start(s)
	}
	for _, s := range actions.Recall {
		b.recall(s)
	}
	for _, c := range actions.Claim {
		p.agenda.put(p.now.Add(readTime), func() { b.load(c.Key) })
	}
	if wake := actions.Wake; !wake.Equal(b.wake) {
		b.wake = wake
		if !wake.IsZero() {
			p.agenda.put(wake, func() {
				if b.wake.Equal(wake) { // else it has thought better of it
					b.wake = time.Time{}
					b.step(plan.Tick{})
				}
			})
		}
	}
	return actions.Verdict
}

// begin hands a job in. Users know their prompts; the length of answers, nobody.
func (b *batches) begin(j *job) {
	left := plan.ModelLines{Model: model, Lines: j.Lines}
	if j.Lines == workload.Backlog {
		left.Lines = backlogLines
		left.PromptTokens = promptTokens(j, sampleLines) * (backlogLines / sampleLines)
	} else {
		left.PromptTokens = promptTokens(j, j.Lines)
	}
	batch := plan.Batch{ID: j.Name, Created: b.plant.now, Models: []plan.ModelLines{left}}
	if deadline, ok := j.Deadline(); ok {
		batch.Window, batch.Deadline = j.Window, epoch.Add(deadline)
		b.plant.agenda.put(batch.Deadline, func() { b.close(j) })
	}
	b.step(plan.BatchPut{Batch: batch})
	b.plant.scaling.happened()
}

func promptTokens(j *job, lines int) int64 {
	sum := int64(0)
	for i := range lines {
		sum += int64(j.Line(i).Input)
	}
	return sum
}

// close ends a job: all its lines are answered, or its time is over.
func (b *batches) close(j *job) {
	if !j.over {
		j.over = true
		b.step(plan.BatchGone{Batch: j.Name})
		b.plant.scaling.happened()
	}
}

// load answers a claim.
func (b *batches) load(key plan.JobKey) {
	j := b.byName[key.Batch]
	first := len(j.lines)
	loaded := plan.Loaded{Key: key, Chunk: first / b.chunk}
	for slot := range min(b.chunk, j.Lines-first) {
		loaded.Lines = append(loaded.Lines,
			plan.Line{Slot: slot, PromptTokens: j.Line(first + slot).Input})
		j.lines = append(j.lines, lineReady)
	}
	loaded.More = len(j.lines) < j.Lines
	b.step(loaded)
}

// start sends a line on its way to its runner.
func (b *batches) start(s plan.Start) {
	p := b.plant
	a := &attempt{start: s, job: b.byName[s.Key.Batch], line: s.Chunk*b.chunk + s.Slot, sent: p.now}
	a.job.move(a.line, lineReady, lineUnderWay)
	a.job.underWay[a.line] = a
	a.job.inFlight++
	p.agenda.put(p.now.Add(p.setup.Scenario.Pool.Network), func() { b.reach(a) })
}

// reach is the line's arrival at the engine.
func (b *batches) reach(a *attempt) {
	p, r := b.plant, b.plant.serving[a.start.Runner]
	if r == nil {
		b.broken(a, plan.Unreachable)
		return
	}
	a.replica = r
	if bound := p.setup.Scenario.Pool.ShedAbove; bound > 0 &&
		r.engine.Snapshot(p.now).Waiting >= bound {
		b.answer(a, 0, 0, &plan.Finished{Outcome: plan.Shed, Status: 503})
		return
	}
	request := a.job.Line(a.line)
	f := &flight{arrived: p.now, input: request.Input, output: request.Output, line: a}
	a.id = p.newID()
	if err := r.submit(a.id, f, request, priorityBatch); err != nil {
		p.refusal(f, err)
		a.id = 0
		b.answer(a, 0, 0, &plan.Finished{Outcome: plan.Refused, Status: 400})
	}
}

// recall hangs up on a line. The planner learns at once that it is over; the
// engine, when word has reached it.
func (b *batches) recall(s plan.Start) {
	b.hangUp(b.byName[s.Key.Batch].underWay[s.Chunk*b.chunk+s.Slot])
}

// hangUp ends a line before its answer.
func (b *batches) hangUp(a *attempt) {
	p := b.plant
	if a.over {
		return
	}
	a.over = true
	b.recalls++
	p.agenda.put(p.now, func() {
		b.settle(a, &plan.Finished{Start: a.start, Outcome: plan.Recalled, Latency: p.now.Sub(
			a.sent)})
	})
	p.agenda.put(p.now.Add(p.setup.Scenario.Pool.Network), func() {
		if a.id != 0 {
			a.replica.abort(a.id)
		}
	})
}

// broken tells the planner that a line's connection is broken, or could not be
// made.
func (b *batches) broken(a *attempt, outcome plan.Outcome) {
	b.answer(a, 0, 0, &plan.Finished{Outcome: outcome})
}

// firstToken sends a line's first token on its way back.
func (b *batches) firstToken(a *attempt) {
	p := b.plant
	p.agenda.put(p.now.Add(engine.ServerDelay(1)+p.setup.Scenario.Pool.Network), func() {
		if !a.over && !a.settled { // its replica may have died meanwhile
			b.step(&plan.FirstToken{Start: a.start, Latency: p.now.Sub(a.sent)})
		}
	})
}

// answered takes a line's answer from the engine.
func (b *batches) answered(f *flight, c engine.Completion) {
	b.answer(f.line, engine.ServerDelay(c.Output), f.input-c.Cached+c.Output, &plan.Finished{
		Outcome: plan.Succeeded, Status: 200, InputTokens: f.input, OutputTokens: c.Output,
		CachedTokens: c.Cached,
	})
}

// answer sends an answer on its way back, for which the engine has computed some
// tokens.
func (b *batches) answer(a *attempt, delay time.Duration, tokens int, f *plan.Finished) {
	p := b.plant
	p.agenda.put(p.now.Add(delay+p.setup.Scenario.Pool.Network), func() {
		if a.over {
			b.wasted += int64(tokens)
			return
		}
		f.Start, f.Latency = a.start, p.now.Sub(a.sent)
		b.settle(a, f)
	})
}

// settle tells the planner how a line ended and keeps the account.
func (b *batches) settle(a *attempt, f *plan.Finished) {
	j := a.job
	a.settled = true
	// The planner may start the line again before it returns its verdict, so the line is ready
	// first.
	j.move(a.line, lineUnderWay, lineReady)
	j.inFlight--
	delete(j.underWay, a.line)
	if f.Outcome == plan.Shed {
		b.sheds++
	}
	verdict := b.step(f)
	// An answer is kept though its batch be over, as the dispatcher keeps it.
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
		b.plant.scaling.answered(a, f.InputTokens, f.OutputTokens)
		b.work += workOf(b.plant.setup.Profile.Law, f.InputTokens, f.OutputTokens)
	}
	if j.done+j.failed == j.Lines {
		j.finished = b.plant.now.Sub(epoch)
		b.close(j)
	}
}

// preempted books what an engine has computed for a line and will compute again.
func (b *batches) preempted(tokens int) {
	b.preemptions++
	b.wasted += int64(tokens)
}

// workOf is the cost of a line to an engine in milliseconds of iteration, so that
// lines of long prompts and lines of long answers can be compared.
func workOf(l engine.Law, input, output int) float64 {
	in, out := float64(input), float64(output)
	prefill := l.C1 + l.C2 + l.P1 + float64(l.P2*in/2)
	decode := l.C1 + float64(l.KV*(in+float64(out/2)))
	return float64(prefill*in) + float64(decode*out)
}

// move checks that a line goes no other way than it may: each is recorded once,
// and is never under way twice.
func (j *job) move(line int, from, to lineState) {
	if got := j.lines[line]; got != from {
		panic(fmt.Sprintf("simulator: line %d of job %s goes to state %d from %d, want from %d",
			line, j.Name, to, got, from))
	}
	j.lines[line] = to
}
