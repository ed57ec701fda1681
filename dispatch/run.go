package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// run is a batch that this process works on. It is safe for concurrent use.
type run struct {
	id      string
	tenant  string
	limited bool            // its own results may stop it
	ctx     context.Context // of its requests in flight
	cancel  context.CancelCauseFunc
	evicted error // the cause with which its requests are canceled
	inbox   *inbox
	limits  limitStopper

	planned bool // the planner was given the batch; only the reconciler uses it
	again   bool // the batch was finalizing before, and some of its chunks run again

	first    firstStart
	edits    map[editsKey]edits // by url and model; written when the source is opened
	attempts atomic.Int64       // requests sent in this session
	// of them, those of lines that were put back without a result, which no record counts
	unrecorded atomic.Int64

	claiming sync.Mutex // held until a claimed chunk is among the held ones, for the next claim
	// held while a chunk is marked done or the results are counted, so that the two agree
	finishing sync.Mutex

	mu       sync.Mutex  // of all below
	batch    store.Batch // as last read
	source   *source     // its open files; nil until its first claim
	held     heldChunks
	results  resultCounts
	failures store.Failures // of lines that this process has recorded
	canary   canaryGate
	speed    speed
	stopping bool // it passed a limit of its own; the store is being notified
	stopped  bool // its lines may not start any more
	// why its chunks can't be loaded or its state not advanced; Flowing: they can
	blocked plan.Reason
}

// limitStopper stops batches that have passed a limit of their own.
type limitStopper interface {
	// stopLater stops a batch in another goroutine. A run calls it while it is locked.
	stopLater(id, code, reason string)
}

// close closes the run's files. None of its lines is in flight.
func (r *run) close() {
	r.evict()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil {
		r.source.close()
		r.source = nil
	}
}

// read takes over what was read of the batch, unless a newer version was read before.
func (r *run) read(b store.Batch) {
	b.Metadata, b.OptionsJSON, b.Errors = nil, nil, nil // large, and of no use here
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.Version >= r.batch.Version {
		r.batch = b
	}
}

// lastRead returns the batch as last read.
func (r *run) lastRead() store.Batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batch
}

// models returns the models of the batch.
func (r *run) models() []store.ModelLines {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batch.Models
}

// unlessStopped calls do with the batch as last read, unless the run has stopped. What do sends to
// the loop comes before the message that the run has stopped.
func (r *run) unlessStopped(do func(b *store.Batch)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		do(&r.batch)
	}
}

// stop lets no more of the run's lines start. It reports whether they might before, and how many
// chunks are held or being read.
func (r *run) stop() (first bool, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.stopped
	r.stopped = true
	return first, r.held.len()
}

func (r *run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// replacedBy reports whether the run has stopped and holds nothing, but its batch is in progress
// again.
func (r *run) replacedBy(b store.Batch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped && r.held.len() == 0 && b.State == store.InProgress &&
		b.Version > r.batch.Version
}

// evict cancels the run's requests in flight.
func (r *run) evict() { r.cancel(r.evicted) }

// evictAfter cancels the run's requests in flight after the grace time.
func (r *run) evictAfter(grace time.Duration) {
	if grace <= 0 {
		r.evict()
		return
	}
	timer := time.AfterFunc(grace, r.evict)
	context.AfterFunc(r.ctx, func() { timer.Stop() }) // closed before
}

// setBlocked notes why the run can't go on; plan.Flowing: it can.
func (r *run) setBlocked(reason plan.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = reason
}

// setLoading notes why the run's lines can't be loaded; plan.Flowing: they can. It returns false
// for a stopped run, which needs no lines: its requests to the store were cancelled, and what
// delays its end may be something else, which users are to see.
func (r *run) setLoading(reason plan.Reason) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.blocked = reason
	}
	return !r.stopped
}

// errStopped ends work on a batch whose lines may not start any more.
var errStopped = errors.New("stopped")

// opened returns the open files of the batch, nil before the first claim, and the batch.
func (r *run) opened() (*source, store.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source, r.batch
}

// open takes over the open files of the batch and its edits. It closes the files if the run has
// some already, which it returns, or has stopped.
func (r *run) open(src *source, p store.Parameters) (*source, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil { // another worker was first
		src.close()
		return r.source, nil
	}
	if r.stopped {
		src.close()
		return nil, fmt.Errorf("batch %s: %w", r.id, errStopped)
	}
	r.source, r.edits = src, allEdits(p, src.inputs)
	r.blocked = plan.Flowing
	r.canary = newCanaryGate(&r.batch)
	return src, nil
}

// editsOf returns the changes to a line's body that the batch asked for.
func (r *run) editsOf(line *sourceLine) edits {
	if len(r.edits) == 0 {
		return edits{}
	}
	return r.edits[editsKey{line.url(), line.model()}]
}

// canaries returns the gate that holds back all lines but the canaries, and the batch.
func (r *run) canaries() (canaryGate, store.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.canary, r.batch
}

// passCanaries opens the gate.
func (r *run) passCanaries() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.canary.passed = true
}

// nextChunk returns the next chunk of a model: one that was claimed ahead, or else the first that
// claim claims. The others are claimed ahead. held lists the chunks that are held or being read.
// stopped: the run had stopped before it had those that were claimed now.
func (r *run) nextChunk(
	model string, claim func(held []int, canary bool) ([]store.Chunk, error),
) (c store.Chunk, ok, stopped bool, err error) {
	r.claiming.Lock()
	defer r.claiming.Unlock()
	r.mu.Lock()
	if c, ok = r.held.next(model); ok {
		r.mu.Unlock()
		return c, true, false, nil
	}
	canary, held := !r.canary.passed, r.held.indexes()
	r.mu.Unlock()
	claimed, err := claim(held, canary)
	if err != nil || len(claimed) == 0 {
		return c, false, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.claimed(model, claimed)
	return claimed[0], true, r.stopped, nil
}

// leaveAhead returns the chunks that were claimed ahead, of the models for which leave returns
// true. The run does not have them ahead any more.
func (r *run) leaveAhead(leave func(model string) bool) []store.Chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.leaveAhead(leave)
}

// notRead notes that chunks, which were claimed, are not read. It reports whether the run has
// stopped.
func (r *run) notRead(chunks []store.Chunk) (stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range chunks {
		delete(r.held.reading, c.Index)
	}
	return r.stopped
}

// hold adds a chunk to those that the run holds; false: the run is stopped, perhaps by the results
// that the chunk has.
func (r *run) hold(c *chunk) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.results.found(c)
		r.stopIfOver()
	}
	if r.stopped || r.stopping {
		return false
	}
	delete(r.held.reading, c.Index)
	r.held.chunks[c.Index] = c
	r.results.hold(c)
	c.leaving = c.pending == 0
	return true
}

// holds reports whether a chunk is held.
func (r *run) holds(index int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.chunks[index] != nil
}

// idle reports whether no chunk of the run is held or being read.
func (r *run) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.len() == 0
}

// heldIndexes lists the indexes of the chunks that are held or being read.
func (r *run) heldIndexes() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.indexes()
}

// heldModels adds the models of the chunks that are held or being read.
func (r *run) heldModels(to map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.held.chunks {
		to[c.Model] = true
	}
	for _, model := range r.held.reading {
		to[model] = true
	}
}

// heldChunks lists the chunks that are held.
func (r *run) heldChunks() (chunks []*chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.held.chunks {
		chunks = append(chunks, c)
	}
	return chunks
}

// leave notes that a chunk is given back; false: it is being finished, or given back already.
func (r *run) leave(c *chunk) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !c.leaving
	c.leaving = true
	return first
}

// complete reports whether every line of a chunk has a durable result.
func (r *run) complete(c *chunk) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.pending == 0
}

// giveBack notes that the run does not hold a chunk any more. Its results stay in the progress
// until the chunk is claimed again.
func (r *run) giveBack(c *chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.held.chunks[c.Index]; !held {
		return // finished
	}
	delete(r.held.chunks, c.Index)
	r.results.giveBack(c)
}

// setUnsaved notes whether the results of a chunk wait for space on the disk.
func (r *run) setUnsaved(c *chunk, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waits {
		r.held.unsaved[c] = true
	} else {
		delete(r.held.unsaved, c)
	}
}

// appended counts a result that was appended to a journal. A batch with limits is stopped by its
// results as they come, not only when they are durable, so that no requests but those in flight
// exceed the limit.
func (r *run) appended(result store.Record) {
	if !r.limited {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results.unwritten = plus(r.results.unwritten, tallyOf(result))
	r.stopIfOver()
}

// committed adds durable results to the counts of their chunk and batch. It returns true once, when
// every line of the chunk has a durable result.
func (r *run) committed(c *chunk, commit store.Commit) (complete bool) {
	now := store.Tally{Completed: commit.Completed, Failed: commit.Failed, Usage: commit.Usage}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.tally, r.results.live = plus(c.tally, now), plus(r.results.live, now)
	if r.limited {
		r.results.unwritten = minus(r.results.unwritten, now)
	}
	c.pending -= commit.Records
	r.speed.add(commit.Records)
	complete = c.pending == 0 && !c.leaving
	if complete {
		c.leaving = true
	}
	r.stopIfOver()
	return complete
}

// stopIfOver stops the batch if its results have passed a limit of its own. mu is held.
func (r *run) stopIfOver() {
	if r.stopped || r.stopping {
		return
	}
	code, why := exceeded(&r.batch.Options, r.batch.Counts.Total, r.results.all())
	if code == "" {
		return
	}
	r.stopping = true
	paused := planBatch(&r.batch)
	paused.Paused = true // at once, before the store knows
	r.inbox.event(plan.BatchPut{Batch: paused})
	r.limits.stopLater(r.id, code, why)
}

// countFailure counts why a line has failed.
func (r *run) countFailure(cause store.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures.Add(cause)
}

// causes returns the most frequent of the causes, with the runners as far as this process knows
// them.
func (r *run) causes(all store.Failures) []store.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	top := shownFailures(all)
	for i := range top {
		top[i].Runner = r.failures.RunnerOf(top[i])
	}
	return top
}

// outdate has the results of the batch counted again, since other processes may have worked on it.
// It reports whether the run needs that now: it holds chunks. If it holds none and has not stopped,
// it sends the lines left, as remaining has them, to the planner.
func (r *run) outdate(remaining *remaining) (holds bool) {
	r.mu.Lock()
	defer r.mu.Unlock() // after the message: that of a stop comes later
	r.results.counted = false
	switch {
	case r.stopped: // the planner would take it for a new batch
	case r.held.len() > 0:
		return true
	default:
		put := planBatch(&r.batch)
		put.Models = planModels(&r.batch, remaining.of(&r.batch))
		r.inbox.event(plan.BatchPut{Batch: put})
	}
	return false
}

// count counts the results that the store has of the batch, unless they have been counted since
// outdate, and sends the chunks to the loop. read returns the chunks and, of batches with limits,
// the results in the journals of those that were claimed before and are not done. No chunk of the
// run is marked done meanwhile.
func (r *run) count(
	read func() (chunks []store.Chunk, behind map[int]store.Tally, err error),
) error {
	r.finishing.Lock()
	defer r.finishing.Unlock()
	if r.isCounted() {
		return nil
	}
	chunks, behind, err := read()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results.count(chunks, behind, r.held.chunks)
	if !r.stopped {
		r.inbox.put(chunksCounted{r.batch, chunks})
	}
	return nil
}

func (r *run) isCounted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results.counted
}

// markDone marks chunks done in the store, by mark, and then in their runs. The results of the runs
// are not counted between the two.
func markDone(chunks []*chunk, mark func(done []store.Chunk) error) error {
	for _, r := range runsOf(chunks) {
		r.finishing.Lock()
		defer r.finishing.Unlock()
	}
	done := make([]store.Chunk, len(chunks))
	for i, c := range chunks {
		done[i] = c.run.withTally(c)
	}
	if err := mark(done); err != nil {
		return err
	}
	for _, c := range chunks {
		c.run.finished(c)
	}
	return nil
}

// withTally returns a chunk as the store is to have it when it is done.
func (r *run) withTally(c *chunk) store.Chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := c.Chunk
	done.Tally = c.tally
	return done
}

// finished notes that a chunk is done.
func (r *run) finished(c *chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held.chunks, c.Index)
	r.results.finished(c)
}

// runsOf returns the runs of chunks, each once, in an order in which their locks can be taken.
func runsOf(chunks []*chunk) (runs []*run) {
	for _, c := range chunks {
		if !slices.Contains(runs, c.run) {
			runs = append(runs, c.run)
		}
	}
	slices.SortFunc(runs, func(a, b *run) int { return strings.Compare(a.id, b.id) })
	return runs
}

// afterFinished returns what may follow the end of a chunk: idle, the run holds no chunk; canary,
// its canaries have not passed; and its models.
func (r *run) afterFinished() (idle, canary bool, models []store.ModelLines) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held.chunks) == 0, !r.canary.passed, r.batch.Models
}

// waitsForItsEnd reports whether the run goes on when its complete chunks are marked done: it holds
// no other ones, has stopped, or runs its canaries.
func (r *run) waitsForItsEnd() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped || !r.canary.passed || r.held.allLeave()
}

// runState is a run at one instant, for those who publish it.
type runState struct {
	batch store.Batch // as last read
	// chunks counts the durable results of the held chunks, and of those that were given back
	// unfinished, by index
	chunks   []store.ChunkProgress
	inFlight int // lines of the held chunks
	attempts int64
	// linesPerSecond is the present rate of results, rate that of the last window that has ended
	linesPerSecond, rate float64
	results              store.Tally // durable ones
	counted              bool        // results agree with the store
	failures             [store.ShownFailures]store.Failure
	blocked              plan.Reason
}

// state returns the run's state. The loop calls it, which knows the lines in flight.
func (r *run) state(now time.Time) runState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := runState{
		batch: r.batch, chunks: r.chunkProgress(), attempts: r.attempts.Load(), rate: r.speed.last,
		results: r.results.durable(), counted: r.results.counted, failures: r.failures.Top(),
		blocked: r.blocked,
	}
	s.linesPerSecond = r.speed.perSecond(now)
	for _, c := range r.held.chunks {
		s.inFlight += c.inFlight
	}
	if s.blocked == plan.Flowing && len(r.held.unsaved) > 0 {
		s.blocked = plan.DiskFull
	}
	return s
}

// chunkProgress counts the durable results of the held chunks, and of those that were given back
// unfinished, by index. mu is held.
func (r *run) chunkProgress() []store.ChunkProgress {
	var chunks []store.ChunkProgress
	add := func(c store.Chunk, t store.Tally) {
		if t.Completed+t.Failed > 0 {
			chunks = append(chunks, store.ChunkProgress{Index: c.Index, Epoch: c.Epoch,
				Completed: t.Completed, Failed: t.Failed})
		}
	}
	for _, c := range r.held.chunks {
		add(c.Chunk, c.tally)
	}
	for _, c := range r.results.givenBack {
		add(c, c.Tally)
	}
	slices.SortFunc(chunks, func(a, b store.ChunkProgress) int { return a.Index - b.Index })
	return chunks
}
