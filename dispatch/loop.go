package dispatch

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/claim"
	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/finish"
	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/send"
	"github.com/tidefill/tidefill/dispatch/work"
)

// loop owns the planner, and which lines of which chunk are in flight. Its goroutine is the only
// one that uses them: all others send messages to its inbox.
type loop struct {
	*work.Session
	planner *plan.Planner
	watcher Watcher // nil: none
	// decisions records what flow control decides.
	decisions *decision.Recorder
	failures  *runnerFailures

	registration *lead.Registration
	senders      *send.Senders
	claimer      *claim.Claimer
	recorder     *finish.Recorder
	requests     *requests
	publishers   []publisher
	publishEvery time.Duration

	chunks   map[chunkKey]*work.Chunk
	flights  map[flightKey]*work.Flight
	inFlight int
	spare    []*work.Flight
	blocked  plan.Reason // why results can't be written, if so
	stale    bool        // the lease may have expired
	full     bool        // results that are not durable yet take all of their memory
	wake     time.Time   // when the planner wants its next event
	armed    time.Time   // when the timer fires
	draining bool
	done     chan struct{} // closed when run ends
}

// publisher publishes what the planner knows. The loop calls it, since only the loop may read the
// planner, so it must not block.
type publisher interface {
	post(now time.Time, planner *plan.Planner)
	// end comes before no more lines start.
	end(now time.Time, planner *plan.Planner)
}

// chunkKey identifies the chunk of a planner's Start.
type chunkKey struct {
	batch string
	index int
}

// flightKey identifies a line in flight.
type flightKey struct {
	chunk *work.Chunk
	slot  int
}

// run processes messages until the loop is drained.
func (l *loop) run() {
	defer close(l.done)
	timer := time.NewTimer(time.Hour)
	progress := time.NewTicker(l.publishEvery)
	defer timer.Stop()
	defer progress.Stop()
	var messages []work.Message
	for !l.draining || l.inFlight > 0 {
		select {
		case <-l.Inbox.Signal():
		case <-progress.C:
			l.decisions.Tick(time.Now())
			for _, ev := range l.requests.report() {
				l.step(ev)
			}
			l.publish()
		case <-timer.C:
			l.armed = time.Time{} // the same instant again needs the timer again
			l.step(plan.Tick{})
		}
		messages = l.Inbox.Take(messages)
		for _, m := range messages {
			l.handle(m)
		}
		if !l.wake.Equal(l.armed) {
			l.arm(timer)
		}
	}
	l.publish()
}

// publish has the planner's state published.
func (l *loop) publish() {
	now := time.Now()
	for _, p := range l.publishers {
		p.post(now, l.planner)
	}
}

// drain starts no more lines. The channel is closed when none is in flight and the loop has ended.
func (l *loop) drain() <-chan struct{} {
	l.Inbox.Put(work.DrainAsked{})
	return l.done
}

func (l *loop) arm(timer *time.Timer) {
	l.armed = l.wake
	wait := time.Hour
	if !l.wake.IsZero() {
		wait = max(0, time.Until(l.wake))
	}
	timer.Reset(wait)
}

func (l *loop) handle(m work.Message) {
	switch m := m.(type) {
	case *work.Flight:
		l.finished(m)
	case work.PlannerEvent:
		l.step(m.Event)
	case work.ChunkLoaded:
		l.loaded(m)
	case work.ChunkFinished:
		delete(l.chunks, chunkKey{m.Chunk.Batch, m.Chunk.Index})
	case work.ChunksCounted:
		l.counted(m)
	case work.BatchStopped:
		l.stopRun(m)
	case work.ModelsUnserved:
		l.giveBack(m)
	case work.ResultsBlocked:
		l.blocked = m.Reason
		l.hold()
	case work.PlannerAsked:
		m.Ask(time.Now(), l.planner)
	case work.DrainAsked:
		l.draining = true
		now := time.Now()
		for _, p := range l.publishers {
			p.end(now, l.planner)
		}
		l.step(plan.Drain{})
	}
}

// hold sends the planner the reason why no line may start, if there is one.
func (l *loop) hold() {
	reason := l.blocked
	if (l.stale || l.full) && reason == plan.Flowing {
		reason = plan.StoreDown
	}
	l.do(plan.Hold{Reason: reason})
}

// step gives the planner an event and does what it decides. Nothing starts while the lease may have
// expired: a process that was suspended would send lines that another has taken over.
func (l *loop) step(ev plan.Event) plan.Verdict {
	stale, full := l.registration.Expired(time.Now()), l.Memory.Results.Full()
	if stale != l.stale || full != l.full {
		l.stale, l.full = stale, full
		l.hold()
	}
	return l.do(ev)
}

func (l *loop) do(ev plan.Event) plan.Verdict {
	now := time.Now()
	actions := l.planner.Step(now, ev)
	if l.watcher != nil {
		l.watcher.Step(now, ev, actions)
	}
	l.decisions.Step(now, ev, &actions)
	for i := range actions.Start {
		l.start(&actions.Start[i])
	}
	for _, claim := range actions.Claim {
		l.claimer.Enqueue(claim.Key)
	}
	for i := range actions.Evict {
		l.evict(&actions.Evict[i])
	}
	l.wake = actions.Wake
	verdict := actions.Verdict
	l.answerRequests(actions)
	return verdict
}

func (l *loop) start(start *plan.Start) {
	c := l.chunks[chunkKey{start.Key.Batch, start.Chunk}]
	c.InFlight++
	l.inFlight++
	var f *work.Flight
	if n := len(l.spare); n > 0 {
		f, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		f = &work.Flight{}
	}
	f.Start, f.Chunk = *start, c
	if c.Run.NoteStart() {
		l.Batches.Add(c.Run.ID)
	}
	l.flights[flightKey{c, start.Slot}] = f
	l.senders.Submit(f)
}

// answerRequests passes what the planner says to those who wait for it. A request whose user has
// gone meanwhile ends.
func (l *loop) answerRequests(actions plan.Actions) {
	for i := range actions.Refuse {
		refused := actions.Refuse[i]
		l.requests.answer(refused.ID, answer{refused: &refused})
	}
	var gone []uint64
	for _, admitted := range actions.Admit {
		if !l.requests.answer(admitted.ID, answer{admitted: admitted}) {
			gone = append(gone, admitted.ID)
		}
	}
	for _, id := range gone {
		l.do(&plan.RequestEnded{ID: id, Outcome: plan.Evicted})
	}
}

// evict cancels a line in flight. Its sender returns it as evicted, unless the answer came first.
func (l *loop) evict(start *plan.Start) {
	c := l.chunks[chunkKey{start.Key.Batch, start.Chunk}]
	if f := l.flights[flightKey{c, start.Slot}]; f != nil {
		f.Cancel.Evict()
	}
}

// finished takes a line back from its sender and records its failure if the planner decides so. A
// good answer is in the journal already.
func (l *loop) finished(f *work.Flight) {
	delete(l.flights, flightKey{f.Chunk, f.Start.Slot})
	f.Chunk.InFlight--
	l.inFlight--
	l.failures.count(time.Now(), f)
	verdict := l.step(&f.Finished)
	// A refusal is an answer too, and paid for, even if its batch has been stopped.
	if f.Outcome != plan.Succeeded && (verdict == plan.Record || verdict == plan.Return &&
		(f.Outcome == plan.Refused || f.Outcome == plan.CheckFailed)) {
		if f.Outcome == plan.Shed || f.Outcome == plan.Unreachable {
			f.Failure = f.Failure.ShedTooOften()
		}
		l.recorder.RecordFailure(f)
	}
	l.Memory.Answers.Give(f.Failure.Taken)
	l.releaseIdle(f.Chunk)
	*f = work.Flight{}
	l.spare = append(l.spare, f)
}

func (l *loop) loaded(m work.ChunkLoaded) {
	if m.Chunk != nil {
		l.chunks[chunkKey{m.Chunk.Batch, m.Chunk.Index}] = m.Chunk
	}
	l.step(m.Loaded)
	if m.Chunk != nil {
		l.releaseIdle(m.Chunk) // its batch may have been stopped while it was loaded
	}
}

func (l *loop) stopRun(m work.BatchStopped) {
	l.step(plan.BatchGone{Batch: m.Run.ID})
	m.Run.EvictAfter(m.Grace)
	for _, c := range m.Run.HeldChunks() {
		l.releaseIdle(c)
	}
}

// counted corrects the lines left of a batch. Only the loop knows which chunks were loaded by now.
func (l *loop) counted(m work.ChunksCounted) {
	left := map[string]int{}
	for _, c := range m.Chunks {
		if !c.Done && l.chunks[chunkKey{c.Batch, c.Index}] == nil {
			left[c.Model] += c.Count
		}
	}
	put := l.Runs.Plan(&m.Batch)
	put.Models = work.PlanModels(&m.Batch, func(model string) int { return left[model] })
	l.step(plan.BatchPut{Batch: put})
}

func (l *loop) giveBack(m work.ModelsUnserved) {
	for key, c := range l.chunks {
		if m.Models[c.Model] && c.InFlight == 0 && !c.Run.Stopped() {
			delete(l.chunks, key)
			l.step(plan.Unloaded{Key: plan.JobKey{Batch: c.Batch, Model: c.Model}, Chunk: c.Index})
			l.claimer.ReleaseLater(c)
		}
	}
}

// releaseIdle gives back a chunk of a stopped batch when none of its lines is in flight.
func (l *loop) releaseIdle(c *work.Chunk) {
	if c.InFlight > 0 || !c.Run.Stopped() {
		return
	}
	if l.chunks[chunkKey{c.Batch, c.Index}] != c {
		return // released already, or not loaded yet
	}
	delete(l.chunks, chunkKey{c.Batch, c.Index})
	l.claimer.ReleaseLater(c)
}
