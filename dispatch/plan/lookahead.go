package plan

import (
	"maps"
	"slices"
	"time"
)

// claimAhead claims chunks for the next job before its lines run out. Once the ready and expected
// lines have LookAheadTokens prompt tokens, only a job without lines may claim, once for each free
// slot. So an urgent new job can still start, and the memory grows no faster than lines start.
func (p *Planner) claimAhead(now time.Time, pool *pool, slots int) {
	for pool.claims() && pool.expected < 2*p.lookAhead(pool) {
		id, ok := pool.loads.Next(now)
		if !ok {
			return
		}
		j := p.jobs[id]
		have := j.readyLines() + j.expecting
		if !j.claimable(now) || have >= j.enough(p.lookAhead(pool)) {
			return
		}
		if pool.promptTokens+pool.expectedTokens >= p.cfg.LookAheadTokens {
			if have > 0 || slots == 0 {
				return
			}
			slots--
		}
		p.claim(now, pool, j)
	}
}

// claims reports whether chunks are claimed for the pool.
func (p *pool) claims() bool { return p.limit > 0 && !p.closed }

// lookAhead returns the number of lines that should be ready: at least as many as are in flight,
// which may all end at once.
func (p *Planner) lookAhead(pool *pool) int { return max(p.cfg.LookAhead, pool.inFlight) }

// claim requests a chunk of the job. The number of its lines is an estimate until it is loaded.
func (p *Planner) claim(now time.Time, pool *pool, j *job) {
	expecting := max(1, min(j.lines-j.loaded()-j.expecting, p.cfg.LookAhead/2))
	c := pendingClaim{pool: pool, lines: expecting, tokens: int(float64(expecting) * j.promptMean)}
	j.claims = append(j.claims, c)
	j.expecting += c.lines
	pool.expected += c.lines
	pool.expectedTokens += c.tokens
	p.out.Claim = append(p.out.Claim, Claim{Key: j.key})
	p.offer(now, j)
}

// countReady adds to the prompt tokens of the ready lines of the job's pools, which are held in
// memory.
func (p *Planner) countReady(j *job, promptTokens int) {
	for _, pool := range j.pools {
		pool.promptTokens += promptTokens
	}
}

func (p *Planner) loaded(now time.Time, ev Loaded) {
	j := p.job(ev.Key)
	if j == nil {
		return
	}
	j.claimDone()
	if ev.Done > 0 {
		j.lines = max(j.loaded()+len(ev.Lines), j.lines-ev.Done)
		j.work = p.workLeft(j)
		p.rankIfChanged(j)
	}
	for _, l := range ev.Lines {
		j.ready.push(line{chunk: int32(ev.Chunk), slot: int32(l.Slot),
			prompt: int32(l.PromptTokens), max: int32(l.MaxTokens)})
		p.countReady(j, l.PromptTokens)
	}
	p.noteLoad(j, ev.Failed)
	j.more = ev.More
	j.claimAfter = time.Time{}
	if ev.Wait > 0 {
		j.claimAfter = now.Add(ev.Wait)
		p.timers.set(timer{at: j.claimAfter, job: j})
	}
	p.offer(now, j)
}

// noteLoad notes why the last claim of a job failed; Flowing: it did not, or the job is gone.
func (p *Planner) noteLoad(j *job, failed Reason) {
	if j.failed != Flowing {
		p.failedLoads--
	}
	if failed != Flowing {
		p.failedLoads++
	}
	j.failed = failed
}

// loadFailure returns why lines of the pool can't be loaded, the first reason by name. Flowing:
// they can.
func (p *Planner) loadFailure(pool *pool) (why Reason) {
	if p.failedLoads == 0 {
		return Flowing
	}
	for _, j := range p.jobs {
		if j.failed != Flowing && (why == Flowing || j.failed < why) &&
			slices.Contains(j.pools, pool) {
			why = j.failed
		}
	}
	return why
}

func (p *Planner) unloaded(now time.Time, ev Unloaded) {
	j := p.job(ev.Key)
	if j == nil {
		return
	}
	removed := j.ready.remove(int32(ev.Chunk))
	j.aside = slices.DeleteFunc(j.aside, func(l line) bool {
		if l.chunk == int32(ev.Chunk) {
			removed = append(removed, l)
		}
		return l.chunk == int32(ev.Chunk)
	})
	for _, l := range removed {
		p.countReady(j, -int(l.prompt))
	}
	retries := p.timers.dropRetries(j, int32(ev.Chunk))
	j.retrying -= len(retries)
	for _, l := range append(removed, retries...) {
		if l.trouble != nil {
			j.troubled--
		}
	}
	maps.DeleteFunc(j.sheds, func(at lineAt, _ shedRecord) bool {
		return at.chunk == int32(ev.Chunk)
	})
	j.more = true
	p.offer(now, j)
}
