package simulator

import (
	"fmt"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/workload"
)

const (
	// claimLatency is the time to claim a chunk and read its lines.
	claimLatency = 5 * time.Millisecond
	// backlogLines is the number of lines that the planner gets for a job without end.
	backlogLines = 1_000_000_000
	// sampledLines is the number of lines of such a job that are measured to estimate its prompt
	// tokens.
	sampledLines = 1000
)

// job is a batch in progress.
type job struct {
	*workload.Job
	lines                  []lineState      // of the chunks claimed so far
	claimed                int              // lines of chunks that this planner has claimed
	attempts               map[int]*attempt // lines in flight, by number
	done, failed, inFlight int
	input, output          int64
	closed                 bool                 // no more lines start
	finished               time.Duration        // when the last line was answered; 0: not yet
	preview                autoscale.JobPreview // when it was submitted
}

type lineState uint8

const (
	lineReady lineState = iota // held by the planner, now or for a later attempt
	lineInFlight
	lineRecorded
)

// submit creates the job's batch.
func (d *dispatcher) submit(j *job) {
	if deadline, ok := j.Deadline(); ok {
		d.sim.queue.add(epoch.Add(deadline), func() { d.close(j) })
	}
	d.put(j, d.sim.now)
	d.sim.scaling.preview(j)
	d.sim.scaling.stepNow()
}

// put gives the planner what is left of the job. The prompts are known; the lengths of the answers
// are not.
func (d *dispatcher) put(j *job, created time.Time) {
	left := plan.ModelLines{Model: model, Lines: j.Lines - j.done - j.failed}
	if j.Lines == workload.Backlog {
		left.Lines = backlogLines
		left.PromptTokens = promptTokens(j, sampledLines) * (backlogLines / sampledLines)
	} else {
		left.PromptTokens = promptTokens(j, j.Lines) * int64(left.Lines) / int64(j.Lines)
	}
	batch := plan.Batch{ID: j.Name, Tenant: j.Tenant, Created: created,
		Models: []plan.ModelLines{left}}
	if deadline, ok := j.Deadline(); ok {
		batch.Window, batch.Deadline = j.Window, epoch.Add(deadline)
	}
	d.step(plan.BatchPut{Batch: batch})
}

func promptTokens(j *job, lines int) int64 {
	sum := int64(0)
	for i := range lines {
		sum += int64(j.Line(i).Input)
	}
	return sum
}

// close ends a job: all its lines are answered, or it has expired.
func (d *dispatcher) close(j *job) {
	if !j.closed {
		j.closed = true
		d.step(plan.BatchGone{Batch: j.Name})
		d.sim.scaling.stepNow()
	}
}

// load answers a claim.
func (d *dispatcher) load(key plan.JobKey) {
	j := d.byName[key.Batch]
	loaded := plan.Loaded{Key: key}
	for len(loaded.Lines) == 0 && j.claimed < j.Lines { // after a restart chunks may be done
		first := j.claimed
		loaded.Chunk = first / d.chunk
		for slot := range min(d.chunk, j.Lines-first) {
			if first+slot == len(j.lines) {
				j.lines = append(j.lines, lineReady)
			}
			if j.lines[first+slot] == lineReady {
				loaded.Lines = append(loaded.Lines,
					plan.Line{Slot: slot, PromptTokens: j.Line(first + slot).Input})
			}
			j.claimed++
		}
	}
	loaded.More = j.claimed < j.Lines
	d.step(loaded)
}

// move changes the state of a line. It panics if the line is not in the expected state: each line
// is recorded once and is never in flight twice.
func (j *job) move(line int, from, to lineState) {
	if got := j.lines[line]; got != from {
		panic(fmt.Sprintf("simulator: line %d of job %s goes to state %d from %d, want from %d",
			line, j.Name, to, got, from))
	}
	j.lines[line] = to
}

// report sums up the harvest and the jobs.
func (d *dispatcher) report() (Batch, []Job) {
	sum := Batch{Wasted: d.wasted, Preemptions: d.preemptions, Sheds: d.sheds,
		Evictions: d.evictions,
		Work:      d.work / 1000}
	jobs := make([]Job, 0, len(d.jobs))
	horizon := d.sim.setup.Scenario.Horizon
	for _, j := range d.jobs {
		result := Job{Name: j.Name, Submitted: j.At.Seconds(), Kind: j.Kind.Name, Lines: j.Lines,
			Done: j.done, Failed: j.failed, InFlight: j.inFlight, Finished: j.finished.Seconds()}
		if j.Lines == workload.Backlog {
			result.Lines = 0
		}
		deadline, due := j.Deadline()
		result.Forecast = forecastOf(j.preview)
		result.Flagged = d.sim.scaling.flagged(j.Name).Seconds()
		if due {
			result.Deadline = deadline.Seconds()
		}
		inTime := j.finished > 0 && (!due || j.finished <= deadline)
		switch {
		case inTime:
			result.Outcome = Finished
		case due && deadline <= horizon:
			result.Outcome = Expired
		case j.At > horizon:
			result.Outcome = NotSubmitted
		default:
			result.Outcome = Unfinished
		}
		if due && deadline <= horizon {
			sum.Deadlines++
			if inTime {
				sum.Met++
			}
		}
		sum.Lines += j.done
		sum.Failed += j.failed
		sum.Input += j.input
		sum.Output += j.output
		jobs = append(jobs, result)
	}
	sum.Useful = sum.Input + sum.Output
	return sum, jobs
}
