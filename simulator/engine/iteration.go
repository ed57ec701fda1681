package engine

import (
	"slices"
	"time"
)

// Iteration reports what the engine did between Start and End: one iteration, or a run of several
// in which the same requests decode. Its slices are valid until the next call of Begin or End.
type Iteration struct {
	Start, End time.Time
	Steps      []time.Duration // the time of each iteration
	Tokens     int             // scheduled in each iteration
	Admitted   []Admission     // at Start, for the first time or again
	Preempted  []Loss          // at Start; they wait again
	// Produced lists the requests that got a token at the end of each of Steps.
	Produced []ID
	First    []ID         // of Produced: those that got their first token
	Finished []Completion // at End
	Aborted  []Loss       // at End
}

// Loss is a request that released its KV blocks before it was done.
type Loss struct {
	ID ID
	// Tokens is the number of tokens that were computed for it since its last admission and are not
	// in the prefix cache.
	Tokens int
}

// Admission is a request admitted from the waiting queue.
type Admission struct {
	ID     ID
	Cached int // tokens found in the prefix cache, which need not be computed
}

// Next returns when the present iteration or run ends, and false if there is none.
func (e *Engine) Next() (time.Time, bool) { return e.report.End, e.busy }

// Begin schedules an iteration, or a run of them, that starts now, and returns when it ends. busy
// is false if there is nothing to do. Call it only when no iteration is in progress.
func (e *Engine) Begin(now time.Time) (end time.Time, busy bool) {
	if e.busy {
		panic("engine: Begin before End of the previous iteration")
	}
	idle := len(e.running) == 0 && len(e.waiting) == 0
	if idle && e.filler == nil {
		return time.Time{}, false
	}
	e.reset(now)
	budget := e.scheduleRunning(e.cfg.Profile.MaxBatchedTokens)
	if len(e.report.Preempted) == 0 {
		e.admit(now, budget)
	}
	e.planRun()
	if idle && !e.filled {
		return time.Time{}, false
	}
	e.busy = true
	return e.report.End, true
}

// End completes the present iteration or run and reports it.
func (e *Engine) End() *Iteration {
	if !e.busy {
		panic("engine: End without Begin")
	}
	e.busy = false
	it := &e.report
	steps := len(it.Steps)
	e.noise = append(e.noise[:0], e.noise[min(steps, len(e.noise)):]...)
	e.counters.Iterations += uint64(steps)
	e.counters.Busy += it.End.Sub(it.Start)
	e.addGaps(&e.gaps, steps)

	for _, s := range e.running {
		if s.scheduled > 0 {
			e.apply(s, steps)
		}
	}
	e.leave()
	if e.filled {
		e.filled = false
		e.filler.Filled(it.End)
	}
	return it
}

// Advance completes the iterations that end by now, passes each of them to report, and begins the
// next one if there are requests. Call it before Submit and Abort, to complete the iterations that
// end at the same instant, and after them, to begin an iteration if the engine was idle.
func (e *Engine) Advance(now time.Time, report func(*Iteration)) {
	at := now
	for {
		if e.busy {
			if e.report.End.After(now) {
				return
			}
			at = e.report.End
			report(e.End())
		}
		if _, busy := e.Begin(at); !busy {
			return
		}
	}
}

func (e *Engine) reset(now time.Time) {
	it := &e.report
	e.previousEnd = it.End
	*it = Iteration{
		Start: now, Steps: it.Steps[:0], Admitted: it.Admitted[:0], Preempted: it.Preempted[:0],
		Produced: it.Produced[:0], First: it.First[:0], Finished: it.Finished[:0],
		Aborted: it.Aborted[:0],
	}
}

// apply adds the results of the completed iterations to a request.
func (e *Engine) apply(s *sequence, steps int) {
	if s.prefilling {
		e.applyPrefill(s)
		return
	}
	s.computed += steps
	s.known += steps
	s.produced += steps
	if need := blocksFor(s.computed) - s.blocks(); need > 0 {
		e.kv.take(need)
		s.private += need
	}
	e.counters.GeneratedTokens += uint64(steps)
	e.report.Produced = append(e.report.Produced, s.ID)
}

func (e *Engine) applyPrefill(s *sequence) {
	s.computed += s.scheduled
	e.pending -= s.scheduled
	e.counters.PrefilledTokens += uint64(s.scheduled)
	for s.shared < min(len(s.Prefix), s.computed/BlockSize) {
		e.kv.share(s.Prefix[s.shared])
		s.shared++
		s.private--
	}
	if s.computed < s.known {
		return
	}
	s.prefilling = false
	s.known++
	s.produced++
	e.pending++
	e.counters.GeneratedTokens++
	e.report.Produced = append(e.report.Produced, s.ID)
	if s.firstToken.IsZero() {
		s.firstToken = e.report.End
		e.firstTokens.add((s.firstToken.Sub(s.submitted) + ServerDelay(1)).Seconds())
		e.counters.PromptTokens += uint64(s.Prompt)
		e.report.First = append(e.report.First, s.ID)
	} else {
		e.gaps.add(1, e.report.End.Sub(s.lastToken))
	}
}

// leave removes the finished and the aborted requests from the running ones.
func (e *Engine) leave() {
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool {
		switch {
		case s.aborted:
			e.counters.Aborted++
			e.report.Aborted = append(e.report.Aborted, s.loss())
		case s.produced >= s.Output:
			e.counters.Finished++
			e.prompts.add(s.Prompt)
			e.answers.add(s.produced)
			e.report.Finished = append(e.report.Finished, s.completion(e.report.End))
		default:
			return false
		}
		e.kv.release(s)
		e.forget(s)
		return true
	})
}
