package work

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/answercheck"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// Run is a batch that this process works on. It is safe for concurrent use.
type Run struct {
	ID      string
	Tenant  string
	Limited bool // its own results may stop it
	// RequestTimeout limits one of its requests; 0: the configured limit does.
	RequestTimeout time.Duration
	Context        context.Context // of its requests in flight
	cancel         context.CancelCauseFunc
	evicted        error // the cause with which its requests are canceled
	inbox          *Inbox
	limits         Stopper
	pools          func() *registry.Snapshot

	// Planned says that the planner was given the batch, Again that the batch was finalizing before
	// and some of its chunks run again. Only the reconciler uses them.
	Planned, Again bool

	wantsStart bool         // the batch has a StartBy, for which its first line matters
	started    atomic.Int64 // when that was sent, in Unix nanoseconds; 0: not in this session

	// edits, by url and model, and check are written when the source is opened.
	edits    map[editsKey]Edits
	check    *answercheck.Check // nil: answers are not checked
	attempts atomic.Int64       // requests sent in this session
	// of them, those of lines that were put back without a result, which no record counts
	unrecorded atomic.Int64

	claiming sync.Mutex // held until a claimed chunk is among the held ones, for the next claim
	// held while a chunk is marked done or the results are counted, so that the two agree
	finishing sync.Mutex

	mu       sync.Mutex  // of all below
	batch    store.Batch // as last read
	source   *Source     // its open files; nil until its first claim
	held     heldChunks
	results  resultCounts
	failures store.Failures // of lines that this process has recorded
	canary   CanaryGate
	speed    speed
	stopping bool // it passed a limit of its own; the store is being notified
	stopped  bool // its lines may not start any more
	// why its chunks can't be loaded or its state not advanced; Flowing: they can
	blocked plan.Reason
	storage storageWait
	// since when the bucket that the results are delivered to has refused them; zero: it has not
	refusedSince time.Time
}

// Stopper stops batches that have passed a limit of their own.
type Stopper interface {
	// StopLater stops a batch in another goroutine. A run calls it while it is locked.
	StopLater(id, code, reason string)
}

// Close closes the run's files. None of its lines is in flight.
func (r *Run) Close() {
	r.Evict()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil {
		r.source.Close()
		r.source = nil
	}
}

// read takes over what was read of the batch, unless a newer version was read before.
func (r *Run) read(b store.Batch) {
	b.Metadata, b.OptionsJSON, b.Errors = nil, nil, nil // large, and of no use here
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.Version >= r.batch.Version {
		r.batch = b
	}
}

// Batch returns the batch as last read.
func (r *Run) Batch() store.Batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batch
}

// Models returns the models of the batch.
func (r *Run) Models() []store.ModelLines {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.batch.Models
}

// NoteStart notes that a line starts, and reports whether it is the first and the batch has a
// StartBy, for which that matters. The loop calls it.
func (r *Run) NoteStart() bool {
	return r.wantsStart && r.started.Load() == 0 &&
		r.started.CompareAndSwap(0, time.Now().UnixNano())
}

// FirstStarted returns when the first line of a batch with a StartBy was sent; zero: not in this
// session.
func (r *Run) FirstStarted() time.Time {
	if at := r.started.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// UnlessStopped calls do with the batch as last read, unless the run has stopped. What do sends to
// the loop comes before the message that the run has stopped.
func (r *Run) UnlessStopped(do func(b *store.Batch)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		do(&r.batch)
	}
}

// Stop lets no more of the run's lines start. It reports whether they might before, and the number
// of chunks that are held or being read.
func (r *Run) Stop() (first bool, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.stopped
	r.stopped = true
	return first, r.held.len()
}

// Stopped reports whether no more of the run's lines may start.
func (r *Run) Stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// replacedBy reports whether the run has stopped and holds nothing, but its batch is in progress
// again.
func (r *Run) replacedBy(b store.Batch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped && r.held.len() == 0 && b.State == store.InProgress &&
		b.Version > r.batch.Version
}

// Evict cancels the run's requests in flight.
func (r *Run) Evict() { r.cancel(r.evicted) }

// EvictAfter cancels the run's requests in flight after the grace time.
func (r *Run) EvictAfter(grace time.Duration) {
	if grace <= 0 {
		r.Evict()
		return
	}
	timer := time.AfterFunc(grace, r.Evict)
	context.AfterFunc(r.Context, func() { timer.Stop() }) // closed before
}

// SetBlocked notes why the run can't go on; plan.Flowing: it can.
func (r *Run) SetBlocked(reason plan.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked, r.storage = reason, storageWait{}
}

// WaitForStorage notes that a storage does not take the batch's results, as a sentence says. It
// returns the time until the next try, and whether the cause is a new one.
func (r *Run) WaitForStorage(cause string) (wait time.Duration, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = plan.StorageAway
	return r.storage.failed(cause)
}

// DeliveryRefused notes whether the bucket that the results are delivered to refuses them, and
// returns for how long it has in this session.
func (r *Run) DeliveryRefused(refused bool) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !refused:
		r.refusedSince = time.Time{}
		return 0
	case r.refusedSince.IsZero():
		r.refusedSince = time.Now()
	}
	return time.Since(r.refusedSince)
}

// SetLoading notes why the run's lines can't be loaded; plan.Flowing: they can. It returns false
// for a stopped run, which needs no lines: its requests to the store were cancelled, and what
// delays its end may be something else, which users are to see.
func (r *Run) SetLoading(reason plan.Reason) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.blocked = reason
	}
	return !r.stopped
}

// Opened returns the open files of the batch, nil before the first claim, and the batch.
func (r *Run) Opened() (*Source, store.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source, r.batch
}

// Open takes over the open files of the batch and its edits. It closes the files if the run has
// some already, which it returns, or has stopped.
func (r *Run) Open(src *Source, p store.Parameters) (*Source, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil { // another worker was first
		src.Close()
		return r.source, nil
	}
	if r.stopped {
		src.Close()
		return nil, fmt.Errorf("batch %s: %w", r.ID, ErrStopped)
	}
	check, err := compileCheck(p.Check)
	if err != nil {
		src.Close()
		return nil, fmt.Errorf("check of batch %s: %w", r.ID, err)
	}
	r.source, r.edits, r.check = src, allEdits(p, src.inputs), check
	r.blocked = plan.Flowing
	r.canary = newCanaryGate(&r.batch)
	return src, nil
}

// EditsOf returns the changes to a line's body that the batch asked for.
func (r *Run) EditsOf(line *Line) Edits {
	if len(r.edits) == 0 {
		return Edits{}
	}
	return r.edits[editsKey{line.URL(), line.Model()}]
}

// Check returns the check of answers; nil: there is none.
func (r *Run) Check() *answercheck.Check { return r.check }

// Canaries returns the gate that holds back all lines but the canaries, and the batch.
func (r *Run) Canaries() (CanaryGate, store.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.canary, r.batch
}

// PassCanaries opens the gate.
func (r *Run) PassCanaries() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.canary.Passed = true
}

// NextChunk returns the next chunk of a model: one that was claimed ahead, or else the first that
// claim claims. The others are claimed ahead. held lists the chunks that are held or being read.
// stopped: the run had stopped before it had those that were claimed now.
func (r *Run) NextChunk(
	model string, claim func(held []int, canary bool) ([]store.Chunk, error),
) (c store.Chunk, ok, stopped bool, err error) {
	r.claiming.Lock()
	defer r.claiming.Unlock()
	r.mu.Lock()
	if c, ok = r.held.next(model); ok {
		r.mu.Unlock()
		return c, true, false, nil
	}
	canary, held := !r.canary.Passed, r.held.indexes()
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

// LeaveAhead returns the chunks that were claimed ahead, of the models for which leave returns
// true. The run does not have them ahead any more.
func (r *Run) LeaveAhead(leave func(model string) bool) []store.Chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.leaveAhead(leave)
}

// NotRead notes that chunks, which were claimed, are not read. It reports whether the run has
// stopped.
func (r *Run) NotRead(chunks []store.Chunk) (stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range chunks {
		delete(r.held.reading, c.Index)
	}
	return r.stopped
}

// Hold adds a chunk to those that the run holds; false: the run is stopped, perhaps by the results
// that the chunk has.
func (r *Run) Hold(c *Chunk) bool {
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

// Holds reports whether a chunk is held.
func (r *Run) Holds(index int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.chunks[index] != nil
}

// Idle reports whether no chunk of the run is held or being read.
func (r *Run) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.len() == 0
}

// HeldIndexes lists the indexes of the chunks that are held or being read.
func (r *Run) HeldIndexes() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.indexes()
}

// heldModels adds the models of the chunks that are held or being read.
func (r *Run) heldModels(to map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.held.chunks {
		to[c.Model] = true
	}
	for _, model := range r.held.reading {
		to[model] = true
	}
}

// HeldChunks lists the chunks that are held.
func (r *Run) HeldChunks() (chunks []*Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.held.chunks {
		chunks = append(chunks, c)
	}
	return chunks
}

// Leave notes that a chunk is given back; false: it is being finished, or given back already.
func (r *Run) Leave(c *Chunk) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !c.leaving
	c.leaving = true
	return first
}

// Complete reports whether every line of a chunk has a durable result.
func (r *Run) Complete(c *Chunk) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.pending == 0
}

// GiveBack notes that the run does not hold a chunk any more. Its results stay in the progress
// until the chunk is claimed again.
func (r *Run) GiveBack(c *Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.held.chunks[c.Index]; !held {
		return // finished
	}
	delete(r.held.chunks, c.Index)
	r.results.giveBack(c)
}

// SetUnsaved notes whether the results of a chunk wait for space on the disk.
func (r *Run) SetUnsaved(c *Chunk, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waits {
		r.held.unsaved[c] = true
	} else {
		delete(r.held.unsaved, c)
	}
}

// Appended counts a result that was appended to a journal. A batch with limits is stopped by its
// results as they come, not only when they are durable, so that no requests but those in flight
// exceed the limit.
func (r *Run) Appended(result store.Record) {
	if !r.Limited {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results.unwritten = Plus(r.results.unwritten, TallyOf(result))
	r.stopIfOver()
}

// Committed adds durable results to the counts of their chunk and batch. It returns true once, when
// every line of the chunk has a durable result.
func (r *Run) Committed(c *Chunk, commit store.Commit) (complete bool) {
	now := store.Tally{Completed: commit.Completed, Failed: commit.Failed, Usage: commit.Usage,
		Bytes: commit.Written}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.tally, r.results.live = Plus(c.tally, now), Plus(r.results.live, now)
	if r.Limited {
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
func (r *Run) stopIfOver() {
	if r.stopped || r.stopping {
		return
	}
	code, why := exceeded(&r.batch.Options, r.batch.Counts.Total, r.results.all())
	if code == "" {
		return
	}
	r.stopping = true
	paused := PlanBatch(&r.batch, r.pools())
	paused.Paused = true // at once, before the store knows
	r.inbox.Event(plan.BatchPut{Batch: paused})
	r.limits.StopLater(r.ID, code, why)
}

// CountRequests adds to the number of requests that were sent.
func (r *Run) CountRequests(n int64) { r.attempts.Add(n) }

// CountUnrecorded adds to the number of requests that no record counts.
func (r *Run) CountUnrecorded(n int64) { r.unrecorded.Add(n) }

// UnrecordedRequests returns the number of requests that no record counts.
func (r *Run) UnrecordedRequests() int64 { return r.unrecorded.Load() }

// CountFailure counts why a line has failed.
func (r *Run) CountFailure(cause store.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures.Add(cause)
}

// Causes returns the most frequent of the causes, with the runners as far as this process knows
// them.
func (r *Run) Causes(all store.Failures) []store.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	top := ShownFailures(all)
	for i := range top {
		top[i].Runner = r.failures.RunnerOf(top[i])
	}
	return top
}

// Outdate has the results of the batch counted again, since other processes may have worked on it.
// It reports whether the run needs that now: it holds chunks. If it holds none and has not stopped,
// it sends the lines left, as remaining has them, to the planner.
func (r *Run) Outdate(remaining *Remaining) (holds bool) {
	r.mu.Lock()
	defer r.mu.Unlock() // after the message: that of a stop comes later
	r.results.counted = false
	switch {
	case r.stopped: // the planner would take it for a new batch
	case r.held.len() > 0:
		return true
	default:
		put := PlanBatch(&r.batch, r.pools())
		put.Models = PlanModels(&r.batch, remaining.Of(&r.batch))
		r.inbox.Event(plan.BatchPut{Batch: put})
	}
	return false
}

// Count counts the results that the store has of the batch, unless they have been counted since
// Outdate, and sends the chunks to the loop. read returns the chunks and, of batches with limits,
// the results in the journals of those that were claimed before and are not done. No chunk of the
// run is marked done meanwhile.
func (r *Run) Count(
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
		r.inbox.Put(ChunksCounted{r.batch, chunks})
	}
	return nil
}

func (r *Run) isCounted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results.counted
}

// MarkDone marks chunks done in the store, by mark, and then in their runs. The results of the runs
// are not counted between the two.
func MarkDone(chunks []*Chunk, mark func(done []store.Chunk) error) error {
	for _, r := range RunsOf(chunks) {
		r.finishing.Lock()
		defer r.finishing.Unlock() //nolint:gocritic // all are held until the end
	}
	done := make([]store.Chunk, len(chunks))
	for i, c := range chunks {
		done[i] = c.Run.withTally(c)
	}
	if err := mark(done); err != nil {
		return err
	}
	for _, c := range chunks {
		c.Run.finished(c)
	}
	return nil
}

// withTally returns a chunk as the store is to have it when it is done.
func (r *Run) withTally(c *Chunk) store.Chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := c.Chunk
	done.Tally = c.tally
	return done
}

// finished notes that a chunk is done.
func (r *Run) finished(c *Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held.chunks, c.Index)
	r.results.finished(c)
}

// RunsOf returns the runs of chunks, each once, in an order in which their locks can be taken.
func RunsOf(chunks []*Chunk) (runs []*Run) {
	for _, c := range chunks {
		if !slices.Contains(runs, c.Run) {
			runs = append(runs, c.Run)
		}
	}
	slices.SortFunc(runs, func(a, b *Run) int { return strings.Compare(a.ID, b.ID) })
	return runs
}

// AfterFinished returns what may follow the end of a chunk: idle, the run holds no chunk; canary,
// its canaries have not passed; and its models.
func (r *Run) AfterFinished() (idle, canary bool, models []store.ModelLines) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held.chunks) == 0, !r.canary.Passed, r.batch.Models
}

// WaitsForItsEnd reports whether the run goes on when its complete chunks are marked done: it holds
// no other ones, has stopped, or runs its canaries.
func (r *Run) WaitsForItsEnd() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped || !r.canary.Passed || r.held.allLeave()
}

// State is a run at one instant, for those who publish it.
type State struct {
	Batch store.Batch // as last read
	// Chunks counts the durable results of the held chunks, and of those that were given back
	// unfinished, by index
	Chunks   []store.ChunkProgress
	InFlight int // lines of the held chunks
	Attempts int64
	// LinesPerSecond is the present rate of results, rate that of the last window that has ended
	LinesPerSecond, Rate float64
	Results              store.Tally // durable ones
	Counted              bool        // results agree with the store
	Failures             [store.ShownFailures]store.Failure
	Blocked              plan.Reason
	// Storage explains Blocked if that is plan.StorageAway, as store.StorageError.Waiting
	Storage string
}

// State returns the run's state. The loop calls it, which knows the lines in flight.
func (r *Run) State(now time.Time) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{
		Batch: r.batch, Chunks: r.chunkProgress(), Attempts: r.attempts.Load(), Rate: r.speed.last,
		Results: r.results.durable(), Counted: r.results.counted, Failures: r.failures.Top(),
		Blocked: r.blocked, Storage: r.storage.cause,
	}
	s.LinesPerSecond = r.speed.perSecond(now)
	for _, c := range r.held.chunks {
		s.InFlight += c.InFlight
	}
	if s.Blocked == plan.Flowing && len(r.held.unsaved) > 0 {
		s.Blocked = plan.DiskFull
	}
	return s
}

// chunkProgress counts the durable results of the held chunks, and of those that were given back
// unfinished, by index. mu is held.
func (r *Run) chunkProgress() []store.ChunkProgress {
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
