package plan

import (
	"slices"
	"time"
)

// absence is a runner that does not know the model or the route of a job: one that has unloaded an
// adapter, or a gateway with a stale list. All lines of a job have the same, so none is at fault.
// They go to other runners or wait, and one is sent now and then to try the runner. Other jobs use
// it as before.
type absence struct {
	on     runnerLife
	answer RunnerFailure
	// after is the number of starts before the last answer: only answers to later ones show
	// anything new.
	after  uint64
	trials int
	until  time.Time // of the next trial
	lines  []lineAt  // that were answered so, the first fewFailed
}

// missed notes that a runner does not know the model or the route of a Start.
func (p *Planner) missed(now time.Time, f *Finished) {
	j, r := f.Start.job, f.Start.runner
	a := j.absent(r)
	switch {
	case a == nil:
		j.unknown = append(slices.DeleteFunc(j.unknown, absence.gone),
			absence{on: runnerLife{r, r.life}})
		a = &j.unknown[len(j.unknown)-1]
	case f.Start.number <= a.after:
		a.note(&f.Start)
		return
	}
	a.note(&f.Start)
	a.answer, a.after = RunnerFailure{f.Outcome, f.Status}, p.starts
	p.pauseTrials(now, a)
	a.trials++
}

func (a *absence) note(s *Start) {
	at := lineAt{s.line.chunk, s.line.slot}
	if len(a.lines) < fewFailed && !slices.Contains(a.lines, at) {
		a.lines = append(a.lines, at)
	}
}

// unknownPatience is the time after which an answer that the model is unknown is counted against a
// line, though the runner answers others of its job. Where a part of the engines behind a runner
// has lost the model, a line meets the others earlier.
const unknownPatience = 20 * time.Minute

// maxMisses limits the answers that are counted so.
const maxMisses = 6

// decideUnknown returns whether a line waits for a runner that knows its model. It does, unless one
// that has answered lines well that were sent after the first such answer goes on answering so, and
// to few other lines: then the line names something else that is unknown.
func (p *Planner) decideUnknown(now time.Time, j *job, l *line, f *Finished) retryDecision {
	t := p.troubleOf(now, j, l)
	t.number = f.Start.number
	if t.missed == 0 {
		t.missed, t.missedAt = p.starts, now
	}
	knows := j.wellOn == f.Start.runner && j.well > t.missed
	few := len(j.absent(f.Start.runner).lines) < fewFailed
	if knows && few && now.Sub(t.missedAt) >= unknownPatience {
		t.misses++
		t.missedAt = now
	}
	return retryDecision{again: t.misses < maxMisses}
}

// pauseTrials has the next trial of a runner wait.
func (p *Planner) pauseTrials(now time.Time, a *absence) {
	b := p.cfg.Breaker
	a.until = now.Add(doubling(b.Base, longerProbes*b.Max, a.trials))
	p.timers.set(timer{at: a.until, runner: a.on.runner})
}

// known notes that a runner has answered a Start well.
func (j *job) known(s *Start) {
	j.unknown = slices.DeleteFunc(j.unknown, func(a absence) bool {
		return a.on.runner == s.runner && s.number > a.after
	})
}

// gone reports whether the runner was removed.
func (a absence) gone() bool { return a.on.runner.pool == nil || a.on.runner.life != a.on.life }

// absent returns the absence of the job on a runner; nil: the runner may know its model.
func (j *job) absent(r *runner) *absence {
	i := slices.IndexFunc(j.unknown, func(a absence) bool {
		return a.on == runnerLife{r, r.life}
	})
	if i < 0 {
		return nil
	}
	return &j.unknown[i]
}

// shuns reports whether no line of the job may start on a runner now, because it does not know the
// model.
func (j *job) shuns(now time.Time, r *runner) bool {
	a := j.absent(r)
	return a != nil && a.until.After(now)
}

// shunsAll reports whether no runner of a pool may know the model of the job.
func (j *job) shunsAll(of *pool) bool {
	return !slices.ContainsFunc(of.runners, func(r *runner) bool { return j.absent(r) == nil })
}
