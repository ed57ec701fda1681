package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// claimer claims chunks for the loop and reads their lines, and gives chunks back.
type claimer struct {
	leaseTTL time.Duration
	metadata Metadata
	blobs    Blobs
	journals Journals
	owner    store.Owner
	leading  *lead.Leadership
	log      *slog.Logger
	inbox    *work.Inbox
	runs     *work.Runs
	tasks    *work.Tasks
	memory   *work.Memory
	finisher *finisher
	paces    claimPaces
	recorder *recorder
	counter  *counter
	stopper  *stopper
	batches  *work.Queue[string]       // to reconcile
	loads    *work.Queue[*plan.JobKey] // one item for each claim that the planner wants
}

// enqueue has a chunk of the job claimed and read. The loop calls it.
func (cl *claimer) enqueue(job plan.JobKey) { cl.loads.Add(&job) }

// load claims the next chunk of a job, reads from its journal which lines are done, reads the other
// lines, and sends the result to the loop.
func (cl *claimer) load(ctx context.Context, job *plan.JobKey) {
	answer := work.ChunkLoaded{Loaded: plan.Loaded{Key: *job}}
	if r := cl.runs.Get(job.Batch); r != nil {
		var err error
		if answer, err = cl.claimNext(ctx, r, *job); err != nil {
			answer.More, answer.Wait = true, work.RetryEvery
			answer.Failed = cl.loadFailed(ctx, r, job, err)
		} else {
			r.SetLoading(plan.Flowing)
		}
	}
	cl.inbox.Put(answer)
}

// loadFailed notes that lines could not be chunkLoaded. It returns why, unless they are not needed.
func (cl *claimer) loadFailed(
	ctx context.Context, r *work.Run, job *plan.JobKey, err error,
) (why plan.Reason) {
	if ctx.Err() == nil && r.SetLoading(work.ReasonOf(err)) {
		why = work.ReasonOf(err)
		cl.log.WarnContext(ctx, "could not load lines, trying again", "batch_id", job.Batch,
			"model", job.Model, "error", err)
	}
	if errors.Is(err, batchfile.ErrDamaged) {
		cl.stopper.StopLater(job.Batch, work.CodeDamaged, damagedInput)
	}
	return why
}

func (cl *claimer) claimNext(
	ctx context.Context, r *work.Run, job plan.JobKey,
) (work.ChunkLoaded, error) {
	none := work.ChunkLoaded{Loaded: plan.Loaded{Key: job}}
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
			none.More, none.Wait = true, work.RetryEvery
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
			return work.ChunkLoaded{Loaded: plan.Loaded{Key: job, Chunk: c.Index, Lines: lines,
				Done: none.Done, More: true}, Chunk: c}, nil
		}
		// A crash came between the last result and FinishChunks.
		cl.finisher.add(c)
	}
}

// nothingToClaim distinguishes a job that is done from one whose chunks are all claimed.
func (cl *claimer) nothingToClaim(
	ctx context.Context, r *work.Run, none work.ChunkLoaded,
) (work.ChunkLoaded, error) {
	job := none.Key
	chunks, err := cl.metadata.Chunks(ctx, r.ID)
	if err != nil {
		return none, err
	}
	open, own := 0, 0
	for _, c := range chunks {
		if c.Done {
			continue
		}
		open++
		if c.Model == job.Model && r.Holds(c.Index) {
			own++
		}
	}
	switch {
	case open == 0:
		cl.batches.Add(r.ID)
	case own == 0 && anyOpen(chunks, job.Model):
		// another process's claim, whose end is not announced
		none.More, none.Wait = true, work.RetryEvery
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
func (cl *claimer) open(ctx context.Context, r *work.Run) (*work.Source, error) {
	if err := cl.counter.count(ctx, r); err != nil {
		return nil, err
	}
	src, b := r.Opened()
	if src != nil {
		return src, nil
	}
	parameters, err := cl.metadata.Parameters(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	src, err = work.OpenSource(r.Context, cl.blobs, &b)
	if err != nil {
		return nil, err
	}
	return r.Open(src, parameters)
}

// take opens the journal of a chunk that was just claimed, and reads the lines that have no result
// in it.
func (cl *claimer) take(
	ctx context.Context, r *work.Run, src *work.Source, claimed store.Chunk,
) (*work.Chunk, []plan.Line, error) {
	lines, err := src.At(claimed.First, claimed.Count)
	if err != nil {
		return nil, nil, err
	}
	c := work.NewChunk(r, claimed, lines)
	err = c.Open(ctx, cl.journals, func(commit store.Commit) { cl.recorder.committed(c, commit) })
	if err != nil {
		return nil, nil, err
	}
	todo, err := c.Fetch(&cl.memory.Inputs)
	if err == nil && !r.Hold(c) {
		err = fmt.Errorf("batch %s: %w", r.ID, work.ErrStopped)
	}
	if err != nil {
		c.Journal.Close(ctx)
		c.Free(cl.memory)
		return nil, nil, err
	}
	return c, todo, nil
}
