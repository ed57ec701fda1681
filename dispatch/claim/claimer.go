package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// Claimer claims chunks for the loop and reads their lines, and gives chunks back.
type Claimer struct {
	*work.Session
	Parts
	paces claimPaces
	loads *work.Queue[*plan.JobKey] // one item for each claim that the planner wants
}

// Parts are what a claimer needs of the store and of the other parts of a session.
type Parts struct {
	LeaseTTL time.Duration
	Metadata Store
	Blobs    work.Blobs
	Journals work.JournalOpener
	Leading  Leader
	Recorder Recorder
	Finisher Finisher
	Counter  Counter
	Stopper  Stopper
}

// Store hands out the chunks of batches.
type Store interface {
	ClaimChunks(ctx context.Context, o store.Owner, batch, model string, n int,
		held []int) ([]store.Chunk, error)
	ReleaseChunk(ctx context.Context, o store.Owner, c store.Chunk) error
	Chunks(ctx context.Context, batch string) ([]store.Chunk, error)
	Parameters(ctx context.Context, id string) (store.Parameters, error)
}

// Leader knows which models this process leads.
type Leader interface {
	// Hold keeps this process from resigning any model until release is called. ok is false if it
	// does not lead the model.
	Hold(model string) (release func(), ok bool)
}

// Recorder records the results of chunks.
type Recorder interface {
	// Committed receives from a chunk's journal that results are durable, or why they are not yet.
	Committed(c *work.Chunk, commit store.Commit)
	// Unblock notes that the chunk's journal is closed.
	Unblock(c *work.Chunk)
}

// Finisher marks complete chunks done.
type Finisher interface {
	// Add marks a chunk done soon.
	Add(c *work.Chunk)
	// Finish marks chunks done now. After an error it returns those that are not marked.
	Finish(ctx context.Context, chunks ...*work.Chunk) (left []*work.Chunk, err error)
}

// Counter counts the results that the store has of a run's batch.
type Counter interface {
	Count(ctx context.Context, r *work.Run) error
}

// Stopper ends batches before their time.
type Stopper interface {
	Stop(ctx context.Context, id, code, reason string) error
	// StopLater stops a batch in another goroutine, which tries again until the store accepts it.
	StopLater(id, code, reason string)
}

// New returns a claimer that holds no chunks.
func New(s *work.Session, parts Parts) *Claimer {
	return &Claimer{Session: s, Parts: parts, loads: work.NewQueue[*plan.JobKey]()}
}

// Run claims and reads chunks until ctx is done. Several goroutines may run it.
func (cl *Claimer) Run(ctx context.Context) { cl.loads.Run(ctx, cl.load) }

// Enqueue has a chunk of the job claimed and read. The loop calls it.
func (cl *Claimer) Enqueue(job plan.JobKey) { cl.loads.Add(&job) }

// load claims the next chunk of a job, reads from its journal which lines are done, reads the other
// lines, and sends the result to the loop.
func (cl *Claimer) load(ctx context.Context, job *plan.JobKey) {
	answer := work.ChunkLoaded{Loaded: plan.Loaded{Key: *job}}
	if r := cl.Runs.Get(job.Batch); r != nil {
		var err error
		if answer, err = cl.claimNext(ctx, r, *job); err != nil {
			answer.More, answer.Wait = true, work.RetryEvery
			answer.Failed = cl.loadFailed(ctx, r, job, err)
		} else {
			r.SetLoading(plan.Flowing)
		}
	}
	cl.Inbox.Put(answer)
}

// loadFailed notes that lines could not be loaded. It returns why, unless they are not needed.
func (cl *Claimer) loadFailed(
	ctx context.Context, r *work.Run, job *plan.JobKey, err error,
) (why plan.Reason) {
	if ctx.Err() == nil && r.SetLoading(work.ReasonOf(err)) {
		why = work.ReasonOf(err)
		cl.Log.WarnContext(ctx, "could not load lines, trying again", "batch_id", job.Batch,
			"model", job.Model, "error", err)
	}
	if errors.Is(err, batchfile.ErrDamaged) {
		cl.Stopper.StopLater(job.Batch, work.CodeDamaged, damagedInput)
	}
	return why
}

func (cl *Claimer) claimNext(
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
		cl.Finisher.Add(c)
	}
}

// nothingToClaim distinguishes a job that is done from one whose chunks are all claimed.
func (cl *Claimer) nothingToClaim(
	ctx context.Context, r *work.Run, none work.ChunkLoaded,
) (work.ChunkLoaded, error) {
	job := none.Key
	chunks, err := cl.Metadata.Chunks(ctx, r.ID)
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
		cl.Batches.Add(r.ID)
	case own == 0 && anyOpen(chunks, job.Model):
		// another process's claim, whose end is not announced
		none.More, none.Wait = true, work.RetryEvery
	default:
		// This process has the others. Another process may give back a chunk meanwhile.
		none.More, none.Wait = true, cl.LeaseTTL
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
func (cl *Claimer) open(ctx context.Context, r *work.Run) (*work.Source, error) {
	if err := cl.Counter.Count(ctx, r); err != nil {
		return nil, err
	}
	src, b := r.Opened()
	if src != nil {
		return src, nil
	}
	parameters, err := cl.Metadata.Parameters(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	src, err = work.OpenSource(r.Context, cl.Blobs, &b)
	if err != nil {
		return nil, err
	}
	return r.Open(src, parameters)
}

// take opens the journal of a chunk that was just claimed, and reads the lines that have no result
// in it.
func (cl *Claimer) take(
	ctx context.Context, r *work.Run, src *work.Source, claimed store.Chunk,
) (*work.Chunk, []plan.Line, error) {
	lines, err := src.At(claimed.First, claimed.Count)
	if err != nil {
		return nil, nil, err
	}
	c := work.NewChunk(r, claimed, lines)
	b := r.Batch()
	c.Span = cl.Tracer.Chunk(&b, claimed)
	err = c.Open(ctx, cl.Journals, func(commit store.Commit) { cl.Recorder.Committed(c, commit) })
	if err != nil {
		return nil, nil, err
	}
	todo, err := c.Fetch(&cl.Memory.Inputs)
	if err == nil && !r.Hold(c) {
		err = fmt.Errorf("batch %s: %w", r.ID, work.ErrStopped)
	}
	if err != nil {
		c.Journal.Close(ctx)
		c.Free(cl.Memory)
		return nil, nil, err
	}
	return c, todo, nil
}
