package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// run is a batch that this process works on.
type run struct {
	id      string
	tenant  string
	limited bool            // its own results may stop it
	ctx     context.Context // of its requests in flight
	cancel  context.CancelCauseFunc

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

	mu     sync.Mutex
	batch  store.Batch // as last read
	source *source     // its open files; nil until its first claim
	// done and behind agree with the store; false once another process may have worked on the batch
	counted bool
	done    store.Tally // of done chunks
	// results in journals of chunks that other processes left, until the chunks are claimed; kept
	// only for limits
	behind    map[int]store.Tally
	modelOf   map[int]string           // by chunk; nil: not read yet
	reading   map[int]string           // models of claimed chunks that are not read yet
	ahead     map[string][]store.Chunk // by model; those of them that nobody reads yet
	chunks    map[int]*chunk
	live      store.Tally    // durable results of held chunks
	unwritten store.Tally    // results that aren't durable yet; kept only for limits
	failures  store.Failures // of lines that this process has recorded
	canary    canaryGate
	speed     speed
	givenBack map[int]store.Chunk // unfinished ones with their tallies, for progress
	lastPost  store.ProgressPost
	stopping  bool // it passed a limit of its own; the store is being notified
	stopped   bool // its lines may not start any more
	// why its chunks can't be loaded or its state not advanced; Flowing: they can
	blocked plan.Reason
	unsaved map[*chunk]bool // chunks that are put back and wait for space on the disk
}

// newRun returns a run of the batch whose requests end with ctx.
func newRun(ctx context.Context, b store.Batch) *run {
	r := &run{id: b.ID, tenant: b.Tenant, limited: hasLimits(&b.Options), batch: b,
		chunks: map[int]*chunk{}, reading: map[int]string{},
		ahead: map[string][]store.Chunk{}, givenBack: map[int]store.Chunk{},
		unsaved: map[*chunk]bool{}}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.first.wanted = !b.StartBy.IsZero() && b.FirstSentAt.IsZero()
	return r
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

// giveBack notes that the run does not hold a chunk any more. Its results stay in the progress
// until the chunk is claimed again.
func (r *run) giveBack(c *chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.chunks[c.Index]; !held {
		return // finished
	}
	delete(r.chunks, c.Index)
	back := c.Chunk
	back.Tally = c.tally
	r.givenBack[c.Index] = back
}

// evict cancels the run's requests in flight.
func (r *run) evict() { r.cancel(openai.ErrEvicted) }

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
	r.blocked = reason
	r.mu.Unlock()
}

// setUnsaved notes whether the results of a chunk wait for space on the disk.
func (r *run) setUnsaved(c *chunk, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waits {
		r.unsaved[c] = true
	} else {
		delete(r.unsaved, c)
	}
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

// stop lets no more of the run's lines start. It reports whether they might before, and how many
// chunks are held or being read.
func (r *run) stop() (first bool, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.stopped
	r.stopped = true
	return first, len(r.chunks) + len(r.reading)
}

func (r *run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// idle reports whether no chunk of the run is held or being read.
func (r *run) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.chunks)+len(r.reading) == 0
}

// replacedBy reports whether the run has stopped and holds nothing, but its batch is in progress
// again.
func (r *run) replacedBy(b store.Batch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped && len(r.chunks)+len(r.reading) == 0 && b.State == store.InProgress &&
		b.Version > r.batch.Version
}

// heldIndexes lists the indexes of the chunks that are held or being read.
func (r *run) heldIndexes() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(r.chunks)), maps.Keys(r.reading))
}

// heldChunks lists the chunks that are held.
func (r *run) heldChunks() []*chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.chunks))
}

// editsOf returns the changes to a line's body that the batch asked for.
func (r *run) editsOf(line *sourceLine) edits {
	if len(r.edits) == 0 {
		return edits{}
	}
	return r.edits[editsKey{line.url(), line.model()}]
}

// countFailure counts why a line has failed.
func (r *run) countFailure(cause store.Failure) {
	r.mu.Lock()
	r.failures.Add(cause)
	r.mu.Unlock()
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
