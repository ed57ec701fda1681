package plan

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func (p *Planner) finished(now time.Time, f *Finished) Verdict {
	s := &f.Start
	j, r, l := s.job, s.runner, s.line
	j.inFlight--
	j.batch.inFlight--
	r.inFlight--
	r.unload(float64(l.work))
	r.countServed(f)
	if f.Outcome.good() {
		p.harvest(f)
		r.lines.succeeded(now, s.number)
		if s.life == r.life {
			j.cached.computedOn(r)
		}
		j.cached.add(f.InputTokens, f.CachedTokens)
	}
	r.lines.remove(s.number)
	cause := p.judge(now, f)
	switch {
	case r.pool != nil:
		r.pool.inFlight--
		r.pool.outcomes.busy = now
	case !r.busy():
		delete(p.runners, r.id)
		p.dropTallies(r)
	}
	if s.life == r.life && r.pool != nil {
		p.report(now, f, r, cause)
	}
	if limit := j.batch.MaxConcurrency; limit > 0 && j.batch.inFlight == limit-1 {
		p.offerAll(now, j.batch)
	}
	if j.room.Reason != Flowing {
		p.offer(now, j)
	}
	var sheds shedRecord
	switch f.Outcome {
	case Succeeded, Refused, Failed, Garbled, TooLong, CheckFailed:
		if !f.Unsent {
			s.tally.answered++
		}
	default:
		if f.turnedAway() {
			sheds = p.shed(now, s)
		}
	}
	if j.gone {
		return Return
	}
	d := p.decide(now, j, &l, f, cause, sheds)
	if !d.again {
		p.complete(now, j, l, f)
		p.offer(now, j)
		return Record
	}
	if f.Outcome == CheckFailed {
		l.checks++
		l.prompt += int32(f.PromptGrowth)
	}
	switch {
	case d.chargedTry:
		l.tries++
	case d.chargedDeath:
		l.deaths++
	case d.pause > 0:
		l.waits++
	}
	if d.pause == 0 {
		p.requeue(j, l, cause == ofModel)
		p.offer(now, j)
		return Retry
	}
	j.retrying++
	p.timers.set(timer{at: now.Add(p.jitter(d.pause)), job: j, line: l, retry: true})
	return Retry
}

// decide returns whether a line is tried again. It notes the runner that has failed it.
func (p *Planner) decide(
	now time.Time, j *job, l *line, f *Finished, cause fault, sheds shedRecord,
) retryDecision {
	b, cfg := &j.batch.Batch, p.cfg.Retry
	decided := func() retryDecision {
		return decideRetry(cfg, b, *l, sheds, f.Outcome, f.Status, f.RetryAfter)
	}
	switch {
	case f.Outcome == Shed && l.waits >= manySheds:
		p.failedOn(now, &f.Start, l)
		return decided()
	case cause == none && f.Outcome != Died && f.Outcome != TimedOut:
		return decided()
	case cause == ofModel:
		return p.decideUnknown(now, j, l, f)
	case cause == none || cause == ofLine || cause == likely:
		d := decided()
		if cause == likely { // time for others to fail, if the runner is at fault
			d.pause = max(d.pause, cfg.backoff(int(l.tries)+2))
		}
		if d.again {
			t := p.failedOn(now, &f.Start, l)
			t.charged, t.later = now, false
		}
		return d
	}
	t := p.failedOn(now, &f.Start, l)
	if t.overdue(now, j) {
		switch {
		case cause == doubtful && f.Outcome == Failed:
			t.charged = now
			return decided()
		case cause == ofRunner && f.mayBeOfLine() && // many new ones at once: a lost key
			(t.proven || len(f.Start.runner.answers.lines) < fewFailed):
			t.charged = now
			t.blamed += 2 // it has waited for long
		}
	}
	other := p.elsewhere(l, j)
	if f.Outcome == Refused && cause != ofRunner && !other { // no runner can show more
		t.charged = now
		return decided()
	}
	t.later = !other
	return decideElsewhere(cfg, *l, cause, other)
}

// turnedAway reports whether the line was answered, and by no engine: it was shed, or a gateway
// found no engine for it.
func (f *Finished) turnedAway() bool {
	return f.Outcome == Shed || f.Outcome == Unreachable && f.Status > 0
}

// report reports the end of a line to the breaker and to flow control. cause is that of a bad
// answer.
func (p *Planner) report(now time.Time, f *Finished, r *runner, cause fault) {
	trial := f.Start.trial
	outcome := f.Outcome
	if f.Unsent {
		outcome = Evicted
	}
	load, seen := r.load(), &r.pool.observed
	seen.answered = flowcontrol.Answered{Load: load, Latency: f.Latency,
		PromptTokens: f.InputTokens, OutputTokens: f.OutputTokens, CachedTokens: f.CachedTokens,
		Estimated: int(f.Start.line.prompt)}
	seen.shed = flowcontrol.Shed{Load: load, RetryAfter: f.RetryAfter}
	seen.broken = flowcontrol.Broken{Load: load}
	seen.evicted = flowcontrol.Evicted{Load: load, Latency: f.Latency}
	var o flowcontrol.Observation = &seen.answered
	switch outcome {
	case Evicted:
		r.breaker.pass(trial)
		o = &seen.evicted
	case TimedOut:
		r.breaker.pass(trial)
		o = &seen.broken
	case Unreachable, Died:
		r.failed = RunnerFailure{f.Outcome, f.Status}
		if until, opened := r.breaker.fail(now, p.cfg.Breaker, trial); opened {
			p.timers.set(timer{at: until, runner: r})
		}
		o = &seen.broken
	case Shed:
		r.breaker.answer(trial)
		o = &seen.shed
		r.hold(now, f.RetryAfter)
		p.pauseGateway(now, r)
	case Succeeded, CheckFailed:
		r.breaker.succeed(trial)
	default:
		if cause != doubtful && cause != ofRunner {
			r.breaker.answer(trial)
			break
		}
		why := suspicion
		if cause == ofRunner {
			why = certainty
		}
		if until, opened := r.breaker.misanswer(now, p.cfg.Breaker, trial, why,
			r.pool.suspected(r)); opened {
			p.timers.set(timer{at: until, runner: r})
		}
		o = &seen.broken
	}
	r.pool.observe(now, o)
	r.pool.countTokens(f.InputTokens, f.OutputTokens)
}

// complete counts a line that has its result.
func (p *Planner) complete(now time.Time, j *job, l line, f *Finished) {
	j.lines--
	delete(j.sheds, lineAt{l.chunk, l.slot})
	if l.trouble != nil {
		j.troubled--
	}
	if f.Outcome.good() && f.OutputTokens > 0 {
		j.output.add(f.OutputTokens)
		j.lengths.add(f.OutputTokens)
		j.longest = max(j.longest, f.OutputTokens)
		o := p.outputs[j.key.Model]
		if o == nil {
			o = &outputMean{}
			p.outputs[j.key.Model] = o
		}
		o.add(f.OutputTokens)
		if j.output.seen >= trustedAnswers {
			o.longest = max(o.longest, j.output.mean)
		}
	}
	j.work = p.workLeft(j)
	if r := f.Start.runner; r.pool != nil {
		r.pool.rate.add(now, float64(l.work))
		r.pool.outcomes.done(f)
	}
	p.rankIfChanged(j)
}

// rankIfChanged ranks a job again when the work left has changed by a twentieth since the last
// time.
func (p *Planner) rankIfChanged(j *job) {
	if math.Abs(j.ranked-j.work) > 0.05*j.ranked {
		p.rank(j)
	}
}

func (p *Planner) jitter(pause time.Duration) time.Duration {
	return pause + time.Duration(0.2*p.random.Float64()*float64(pause))
}

// requeue makes a line the next to start. If last, it comes after those that are ready. So does one
// on which a connection has broken: it may be the cause, and would be each trial of a runner that
// it has broken.
func (p *Planner) requeue(j *job, l line, last bool) {
	switch {
	case l.deaths > 0 || last:
		j.ready.push(l)
	case l.trouble != nil && l.trouble.later:
		j.ready.insert(suspectAfter, l)
	default:
		j.ready.pushFront(l)
	}
	p.countReady(j, int(l.prompt))
}
