package claim

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// releaseTimeout bounds one try to release a claim.
const releaseTimeout = 5 * time.Second

// ReleaseLater gives back a chunk of which no line is in flight, in another goroutine.
func (cl *Claimer) ReleaseLater(c *work.Chunk) {
	cl.Tasks.Start(func(ctx context.Context) { cl.release(ctx, c) })
}

// release gives back a chunk of which no line is in flight, with the results that it has.
func (cl *Claimer) release(ctx context.Context, c *work.Chunk) {
	r := c.Run
	if !r.Leave(c) {
		return // it is being finished
	}
	r.CountUnrecorded(c.RequestsWithoutResult())
	defer c.Free(cl.Memory)
	err := cl.flush(ctx, c)
	err = errors.Join(err, c.Journal.Close(context.WithoutCancel(ctx)))
	if err != nil {
		cl.Log.Warn("could not flush the journal of a chunk that is put back", "batch_id", c.Batch,
			"chunk", c.Index, "error", err)
	}
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	complete := r.Complete(c)
	if complete {
		_, err = cl.Finisher.Finish(releasing, c)
	}
	if !complete || err != nil { // whoever claims a complete one next finds it so
		cl.putBack(ctx, c.Chunk)
		c.Span.GivenBack()
	}
	cl.Recorder.Unblock(c)
	r.GiveBack(c)
	cl.Batches.Add(c.Batch)
}

// flush makes the results of a chunk durable that is put back. On a full disk it waits for space,
// since the answers are paid for and nobody asks for them again.
func (cl *Claimer) flush(ctx context.Context, c *work.Chunk) error {
	defer c.Run.SetUnsaved(c, false)
	for warned := false; ; warned = true {
		err := c.Journal.Flush(ctx)
		if !errors.Is(err, store.ErrNoSpace) {
			return err
		}
		if !warned {
			c.Run.SetUnsaved(c, true)
			cl.Log.Warn("could not save the results of a stopped batch, waiting for free space",
				"batch_id", c.Batch, "chunk", c.Index, "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(work.RetryEvery):
		}
	}
}

// putBack releases a claim, and tries again until the store accepts it: the claim would not end by
// itself as long as this process renews its lease.
func (cl *Claimer) putBack(ctx context.Context, c store.Chunk) {
	for warned := false; ; warned = true {
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		err := cl.Metadata.ReleaseChunk(releasing, cl.Owner, c)
		cancel()
		if err == nil || errors.Is(err, store.ErrFenced) {
			return
		}
		if !warned {
			cl.Log.Warn("could not put a chunk back, trying again", "batch_id", c.Batch,
				"chunk", c.Index, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(work.RetryEvery):
		}
	}
}
