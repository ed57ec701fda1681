package dispatch

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Messages to the loop besides planner events, loaded chunks and flights that ended.
type (
	// stopRun ends a batch's lines: none starts any more, those under way are recalled after the
	// grace.
	stopRun struct {
		run   *run
		grace time.Duration
	}
	// chunkDone is a chunk that is told done.
	chunkDone struct{ chunk *chunk }
	// drain starts no more lines; done is closed when none is under way.
	drain struct{ done chan struct{} }
)

// chunkKey finds the chunk of a planner's Start.
type chunkKey struct {
	batch string
	index int
}

// flightKey finds the line of a chunk that is under way.
type flightKey struct {
	chunk *chunk
	slot  int
}

// loop is the goroutine that owns the planner, and which lines of which chunk are under way.
func (s *session) loop() {
	l := loop{session: s, chunks: map[chunkKey]*chunk{}, flights: map[flightKey]*flight{}}
	timer := time.NewTimer(time.Hour)
	progress := time.NewTicker(s.cfg.ProgressEvery)
	defer timer.Stop()
	defer progress.Stop()
	var spent []any
	for !l.ended() {
		select {
		case <-s.inbox.signal:
		case <-progress.C:
			s.postProgress(l.session.planner)
		case <-timer.C:
			l.armed = time.Time{} // the same instant again needs the timer again
			l.step(plan.Tick{})
		}
		spent = s.inbox.take(spent)
		for _, message := range spent {
			l.handle(message)
		}
		if !l.wake.Equal(l.armed) {
			l.arm(timer)
		}
	}
	close(l.drained)
	s.postProgress(l.session.planner)
}

type loop struct {
	*session
	chunks   map[chunkKey]*chunk
	flights  map[flightKey]*flight // under way
	inFlight int
	spare    []*flight
	full     plan.Reason // why results can't be written down, if so
	lapsed   bool        // the lease may have run out
	crowded  bool        // results that are not durable yet have taken all their memory
	wake     time.Time
	armed    time.Time
	drained  chan struct{}
}

func (l *loop) ended() bool { return l.drained != nil && l.inFlight == 0 }

func (l *loop) arm(timer *time.Timer) {
	l.armed = l.wake
	wait := time.Hour
	if !l.wake.IsZero() {
		wait = max(0, time.Until(l.wake))
	}
	timer.Reset(wait)
}

func (l *loop) handle(message any) {
	switch m := message.(type) {
	case *flight:
		l.finished(m)
	case loadedChunk:
		l.loaded(m)
	case stopRun:
		l.stopRun(m)
	case chunkDone:
		delete(l.chunks, chunkKey{m.chunk.Batch, m.chunk.Index})
	case drain:
		l.drained = m.done
		l.step(plan.Drain{})
	case plan.Hold:
		l.full = m.Reason
		l.hold()
	case plan.Event:
		l.step(m)
	}
}

// hold tells the planner what keeps lines from starting, if anything does.
func (l *loop) hold() {
	reason := l.full
	if (l.lapsed || l.crowded) && reason == plan.Flowing {
		reason = plan.StoreDown
	}
	l.do(plan.Hold{Reason: reason})
}

// step asks the planner and does what it says. Nothing starts while the lease may have run out: a
// process that was frozen would send lines that others have long taken over.
func (l *loop) step(ev plan.Event) plan.Verdict {
	lapsed, crowded := l.session.lease.expired(time.Now()), l.memory.results.full()
	if lapsed != l.lapsed || crowded != l.crowded {
		l.lapsed, l.crowded = lapsed, crowded
		l.hold()
	}
	return l.do(ev)
}

func (l *loop) do(ev plan.Event) plan.Verdict {
	now := time.Now()
	actions := l.planner.Step(now, ev)
	if l.deps.Watcher != nil {
		l.deps.Watcher.Step(now, ev, actions)
	}
	for i := range actions.Start {
		l.start(&actions.Start[i])
	}
	for _, claim := range actions.Claim {
		l.loads.put(claim.Key)
	}
	for i := range actions.Recall {
		l.recall(&actions.Recall[i])
	}
	l.wake = actions.Wake
	return actions.Verdict
}

func (l *loop) start(start *plan.Start) {
	c := l.chunks[chunkKey{start.Key.Batch, start.Chunk}]
	c.inFlight++
	l.inFlight++
	var f *flight
	if n := len(l.spare); n > 0 {
		f, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		f = &flight{}
	}
	f.Start, f.chunk = *start, c
	l.flights[flightKey{c, start.Slot}] = f
	l.senders.hand(f)
}

// recall ends a line under way. It comes back as recalled, unless its answer was faster.
func (l *loop) recall(start *plan.Start) {
	c := l.chunks[chunkKey{start.Key.Batch, start.Chunk}]
	if f := l.flights[flightKey{c, start.Slot}]; f != nil {
		f.reins.pull()
	}
}

func (l *loop) finished(f *flight) {
	delete(l.flights, flightKey{f.chunk, f.Start.Slot})
	f.chunk.inFlight--
	l.inFlight--
	verdict := l.step(&f.Finished)
	// Good answers are in the journal already. A refusal is an answer too, and paid for, though its
	// batch be over.
	if f.Outcome != plan.Succeeded && (verdict == plan.Record || verdict == plan.Return &&
		f.Outcome == plan.Refused) {
		if f.Outcome == plan.Shed {
			f.answer = f.answer.shedTooOften()
		}
		l.record(f)
	}
	l.memory.answers.Give(f.answer.taken)
	l.letGo(f.chunk)
	*f = flight{}
	l.spare = append(l.spare, f)
}

func (l *loop) loaded(m loadedChunk) {
	if m.chunk != nil {
		l.chunks[chunkKey{m.chunk.Batch, m.chunk.Index}] = m.chunk
	}
	l.step(m.Loaded)
	if m.chunk != nil {
		l.letGo(m.chunk) // its batch may have been stopped while it was loaded
	}
}

func (l *loop) stopRun(m stopRun) {
	l.step(plan.BatchGone{Batch: m.run.id})
	m.run.recallAfter(m.grace)
	for _, c := range m.run.held() {
		l.letGo(c)
	}
}

// letGo releases a chunk of a stopped batch when nothing of it is under way.
func (l *loop) letGo(c *chunk) {
	if c.inFlight > 0 || !c.run.isStopped() {
		return
	}
	if l.chunks[chunkKey{c.Batch, c.Index}] != c {
		return // on its way already, or not here yet
	}
	delete(l.chunks, chunkKey{c.Batch, c.Index})
	l.background.Go(func() { l.releaseChunk(c) })
}
