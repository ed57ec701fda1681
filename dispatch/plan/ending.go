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
	if f.Outcome == Succeeded {
		r.underWay.answered(s.number)
	}
	r.underWay.remove(s.number)
	switch {
	case r.pool != nil:
		r.pool.inFlight--
	case r.inFlight == 0:
		delete(p.runners, r.id)
	}
	if s.life == r.life && r.pool != nil {
		p.heed(now, f, r)
	}
	if limit := j.batch.MaxConcurrency; limit > 0 && j.batch.inFlight == limit-1 {
		p.offerAll(now, j.batch)
	}
	var sheds shedRecord
	switch f.Outcome {
	case Succeeded, Refused, Failed, Garbled:
		j.near.answered++
	case Shed:
		sheds = p.shed(now, s)
	}
	if j.gone {
		return Return
	}
	judged := judge(p.cfg.Retry, &j.batch.Batch, l, sheds, f.Outcome, f.Status, f.RetryAfter)
	if !judged.again {
		p.settle(now, j, l, f)
		p.offer(now, j)
		return Record
	}
	switch {
	case judged.chargedTry:
		l.tries++
	case judged.chargedDeath:
		l.deaths++
	case judged.pause > 0:
		l.waits++
	}
	if judged.pause == 0 {
		p.giveBack(j, l)
		p.offer(now, j)
		return Again
	}
	j.retrying++
	p.timers.set(timer{at: now.Add(p.jitter(judged.pause)), job: j, line: l, retry: true})
	return Again
}

// heed tells breaker and flow control how a line ended.
func (p *Planner) heed(now time.Time, f *Finished, r *runner) {
	o := r.observation(flowcontrol.Answered)
	o.Latency, o.RetryAfter = f.Latency, f.RetryAfter
	o.PromptTokens, o.OutputTokens, o.CachedTokens = f.InputTokens, f.OutputTokens, f.CachedTokens
	trial := f.Start.trial
	switch f.Outcome {
	case Recalled:
		r.breaker.pass(trial)
		o.Kind = flowcontrol.Recalled
	case TimedOut:
		r.breaker.pass(trial)
		o.Kind = flowcontrol.Broken
	case Unreachable, Died:
		if until, opened := r.breaker.fail(now, p.cfg.Breaker, trial); opened {
			p.timers.set(timer{at: until, runner: r})
		}
		o.Kind = flowcontrol.Broken
	case Shed:
		r.breaker.succeed()
		o.Kind = flowcontrol.Shed
	default:
		r.breaker.succeed()
	}
	r.pool.observe(now, o)
}

// settle takes a line that has its result out of what is left.
func (p *Planner) settle(now time.Time, j *job, l line, f *Finished) {
	j.lines--
	delete(j.sheds, lineAt{l.chunk, l.slot})
	if f.Outcome == Succeeded && f.OutputTokens > 0 {
		j.output.learn(f.OutputTokens)
		j.lifetimes.learn(f.OutputTokens)
		j.longest = max(j.longest, f.OutputTokens)
		o := p.outputs[j.key.Model]
		if o == nil {
			o = &outputMean{}
			p.outputs[j.key.Model] = o
		}
		o.learn(f.OutputTokens)
	}
	j.work = p.workLeft(j)
	if r := f.Start.runner; r.pool != nil {
		r.pool.rate.add(now, float64(l.work))
	}
	p.rankIfMoved(j)
}

// rankIfMoved lets a rank follow the work that is left; a twentieth of it is soon enough.
func (p *Planner) rankIfMoved(j *job) {
	if math.Abs(j.ranked-j.work) > 0.05*j.ranked {
		p.rank(j)
	}
}

func (p *Planner) jitter(pause time.Duration) time.Duration {
	return pause + time.Duration(0.2*p.random.Float64()*float64(pause))
}

// giveBack puts a line where it is started next.
func (p *Planner) giveBack(j *job, l line) {
	j.ready.pushFront(l)
	p.countReady(j, int(l.prompt))
}
