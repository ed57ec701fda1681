package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/tidefill/tidefill/store"
)

// releaseTimeout bounds one try to release a claim.
const releaseTimeout = 5 * time.Second

// releaseLater gives back a chunk of which no line is in flight, in another goroutine.
func (cl *claimer) releaseLater(c *chunk) {
	cl.tasks.start(func(ctx context.Context) { cl.release(ctx, c) })
}

// release gives back a chunk of which no line is in flight, with the results that it has.
func (cl *claimer) release(ctx context.Context, c *chunk) {
	r := c.run
	if !r.leave(c) {
		return // it is being finished
	}
	r.unrecorded.Add(c.requestsWithoutResult())
	defer c.free(cl.memory)
	err := cl.flush(ctx, c)
	err = errors.Join(err, c.journal.Close(context.WithoutCancel(ctx)))
	if err != nil {
		cl.log.Warn("could not flush the journal of a chunk that is put back", "batch_id", c.Batch,
			"chunk", c.Index, "error", err)
	}
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	complete := r.complete(c)
	if complete {
		_, err = cl.finisher.finish(releasing, c)
	}
	if !complete || err != nil { // whoever claims a complete one next finds it so
		cl.putBack(ctx, c.Chunk)
	}
	cl.recorder.unblock(c)
	r.giveBack(c)
	cl.batches.add(c.Batch)
}

// flush makes the results of a chunk durable that is put back. On a full disk it waits for space,
// since the answers are paid for and nobody asks for them again.
func (cl *claimer) flush(ctx context.Context, c *chunk) error {
	defer c.run.setUnsaved(c, false)
	for warned := false; ; warned = true {
		err := c.journal.Flush(ctx)
		if !errors.Is(err, store.ErrNoSpace) {
			return err
		}
		if !warned {
			c.run.setUnsaved(c, true)
			cl.log.Warn("could not save the results of a stopped batch, waiting for free space",
				"batch_id", c.Batch, "chunk", c.Index, "error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryEvery):
		}
	}
}

// putBack releases a claim, and tries again until the store accepts it: the claim would not end by
// itself as long as this process renews its lease.
func (cl *claimer) putBack(ctx context.Context, c store.Chunk) {
	for warned := false; ; warned = true {
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		err := cl.metadata.ReleaseChunk(releasing, cl.owner, c)
		cancel()
		if err == nil || isFenced(err) {
			return
		}
		if !warned {
			cl.log.Warn("could not put a chunk back, trying again", "batch_id", c.Batch,
				"chunk", c.Index, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryEvery):
		}
	}
}
