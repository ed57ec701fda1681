package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// retryEvery is the time between two tries of what the store or another process prevents.
const retryEvery = time.Second

// claimer claims chunks for the loop and reads their lines, and gives chunks back.
type claimer struct {
	leaseTTL time.Duration
	metadata Metadata
	blobs    Blobs
	journals Journals
	owner    store.Owner
	leading  *leadership
	log      *slog.Logger
	inbox    *inbox
	runs     *runs
	tasks    *tasks
	memory   *memory
	finisher *finisher
	paces    claimPaces
	recorder *recorder
	counter  *counter
	stopper  *stopper
	batches  *queue[string]       // to reconcile
	loads    *queue[*plan.JobKey] // one item for each claim that the planner wants
}

// enqueue has a chunk of the job claimed and read. The loop calls it.
func (cl *claimer) enqueue(job plan.JobKey) { cl.loads.add(&job) }

// load claims the next chunk of a job, reads from its journal which lines are done, reads the other
// lines, and sends the result to the loop.
func (cl *claimer) load(ctx context.Context, job *plan.JobKey) {
	answer := chunkLoaded{Loaded: plan.Loaded{Key: *job}}
	if r := cl.runs.get(job.Batch); r != nil {
		var err error
		if answer, err = cl.claimNext(ctx, r, *job); err != nil {
			answer.More, answer.Wait = true, retryEvery
			answer.Failed = cl.loadFailed(ctx, r, job, err)
		} else {
			r.setLoading(plan.Flowing)
		}
	}
	cl.inbox.put(answer)
}

// loadFailed notes that lines could not be chunkLoaded. It returns why, unless they are not needed.
func (cl *claimer) loadFailed(
	ctx context.Context, r *run, job *plan.JobKey, err error,
) (why plan.Reason) {
	if ctx.Err() == nil && r.setLoading(reasonOf(err)) {
		why = reasonOf(err)
		cl.log.WarnContext(ctx, "could not load lines, trying again", "batch_id", job.Batch,
			"model", job.Model, "error", err)
	}
	if errors.Is(err, batchfile.ErrDamaged) {
		cl.stopper.stopLater(job.Batch, codeDamaged, damagedInput)
	}
	return why
}

func (cl *claimer) claimNext(ctx context.Context, r *run, job plan.JobKey) (chunkLoaded, error) {
	none := chunkLoaded{Loaded: plan.Loaded{Key: job}}
	src, err := cl.open(ctx, r)
	if err != nil {
		return none, err
	}
	below, err := cl.canaryAllows(ctx, r, job.Model)
	if err != nil {
		return none, err
	}
	for {
		if below == 0 {
			none.More, none.Wait = true, retryEvery
			return none, nil
		}
		claimed, ok, err := cl.claim(ctx, r, job.Model)
		if err != nil {
			return none, err
		}
		if !ok {
			return cl.nothingToClaim(ctx, r, none)
		}
		if claimed.First >= below { // another process claimed the canaries meanwhile
			below = 0
			cl.abandon(r, claimed)
			continue
		}
		c, lines, err := cl.take(ctx, r, src, claimed)
		if err != nil {
			cl.abandon(r, claimed)
			return none, err
		}
		none.Done += claimed.Count - len(lines)
		if len(lines) > 0 {
			return chunkLoaded{Loaded: plan.Loaded{Key: job, Chunk: c.Index, Lines: lines,
				Done: none.Done, More: true}, chunk: c}, nil
		}
		// A crash came between the last result and FinishChunks.
		cl.finisher.add(c)
	}
}

// nothingToClaim distinguishes a job that is done from one whose chunks are all claimed.
func (cl *claimer) nothingToClaim(
	ctx context.Context, r *run, none chunkLoaded,
) (chunkLoaded, error) {
	job := none.Key
	chunks, err := cl.metadata.Chunks(ctx, r.id)
	if err != nil {
		return none, err
	}
	open, own := 0, 0
	for _, c := range chunks {
		if c.Done {
			continue
		}
		open++
		if c.Model == job.Model && r.holds(c.Index) {
			own++
		}
	}
	switch {
	case open == 0:
		cl.batches.add(r.id)
	case own == 0 && anyOpen(chunks, job.Model):
		// another process's claim, whose end is not announced
		none.More, none.Wait = true, retryEvery
	default:
		// This process has the others. Another process may give back a chunk meanwhile.
		none.More, none.Wait = true, cl.leaseTTL
	}
	return none, nil
}

func anyOpen(chunks []store.Chunk, model string) bool {
	for _, c := range chunks {
		if !c.Done && c.Model == model {
			return true
		}
	}
	return false
}

// open opens the batch's files at the first claim, and counts the results that the store has.
func (cl *claimer) open(ctx context.Context, r *run) (*source, error) {
	if err := cl.counter.count(ctx, r); err != nil {
		return nil, err
	}
	src, b := r.opened()
	if src != nil {
		return src, nil
	}
	parameters, err := cl.metadata.Parameters(ctx, r.id)
	if err != nil {
		return nil, err
	}
	src, err = openSource(r.ctx, cl.blobs, &b)
	if err != nil {
		return nil, err
	}
	return r.open(src, parameters)
}

// take opens the journal of a chunk that was just claimed, and reads the lines that have no result
// in it.
func (cl *claimer) take(
	ctx context.Context, r *run, src *source, claimed store.Chunk,
) (*chunk, []plan.Line, error) {
	lines, err := src.at(claimed.First, claimed.Count)
	if err != nil {
		return nil, nil, err
	}
	c := &chunk{Chunk: claimed, run: r, lines: lines}
	done, err := cl.openJournal(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("open journal of chunk %d: %w", claimed.Index, err)
	}
	if err := fetch(lines, &cl.memory.inputs, func(slot int) bool {
		return !done[slot]
	}); err != nil {
		c.journal.Close(ctx)
		c.free(cl.memory)
		return nil, nil, err
	}
	todo := make([]plan.Line, 0, len(lines))
	for slot := range lines {
		if !done[slot] {
			todo = append(todo, plan.Line{
				Slot: slot, PromptTokens: int(float64(lines[slot].PromptBytes)/bytesPerToken) + 1,
				MaxTokens: int(lines[slot].MaxTokens),
			})
		}
	}
	c.pending = len(todo)
	if !r.hold(c) {
		c.journal.Close(ctx)
		c.free(cl.memory)
		return nil, nil, fmt.Errorf("batch %s: %w", r.id, errStopped)
	}
	return c, todo, nil
}

// openJournal opens a chunk's journal and counts the results in it. done marks the slots that have
// one.
func (cl *claimer) openJournal(ctx context.Context, c *chunk) (done []bool, err error) {
	slotOf := make(map[uint32]int, len(c.lines))
	for slot := range c.lines {
		slotOf[c.lines[slot].number] = slot
	}
	done = make([]bool, len(c.lines))
	replay := func(rec store.Record) {
		if slot, known := slotOf[rec.Line]; known && !done[slot] {
			done[slot] = true
			c.tally = plus(c.tally, tallyOf(rec))
		}
	}
	c.journal, err = cl.journals.Open(ctx, c.ChunkID, c.Epoch, replay,
		func(commit store.Commit) { cl.recorder.committed(c, commit) })
	return done, err
}

// reasonOf returns the reason that users see for a batch that waits because of an error of the
// store.
func reasonOf(err error) plan.Reason {
	if errors.Is(err, store.ErrNoSpace) {
		return plan.DiskFull
	}
	return plan.StoreDown
}
