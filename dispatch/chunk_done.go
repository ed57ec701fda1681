package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// committed learns from the journal that results of a chunk are durable, or why they aren't yet. It
// runs on the journal's committer and must not wait for it.
func (s *session) committed(c *chunk, commit store.Commit) {
	if commit.Err != nil {
		if isFenced(commit.Err) {
			s.lose(fmt.Errorf("journal of batch %s, chunk %d: %w", c.Batch, c.Index, commit.Err))
			return
		}
		s.blocked(c, commit.Err)
		return
	}
	s.unblocked(c)
	crowded := s.memory.results.full()
	c.settled(s.memory, commit.Bytes)
	if crowded && !s.memory.results.full() {
		s.inbox.put(plan.Tick{}) // lines may start again
	}
	now := store.Tally{Completed: commit.Completed, Failed: commit.Failed, Usage: commit.Usage}
	r := c.run
	r.mu.Lock()
	c.tally, r.live = plus(c.tally, now), plus(r.live, now)
	r.written(now)
	c.pending -= commit.Records
	r.speed.add(commit.Records)
	whole := c.pending == 0 && !c.leaving
	if whole {
		c.leaving = true
	}
	s.stopIfOver(r)
	r.mu.Unlock()
	s.metrics.committed(commit)
	if whole {
		s.background.Go(func() { s.finishUntilDone(c) })
	}
}

// stopIfOver stops the run's batch if its results have passed a limit of its own. r.mu is held.
func (s *session) stopIfOver(r *run) {
	if code, why := r.overLimit(); code != "" {
		held := planned(&r.batch)
		held.Paused = true // at once; the store learns of it in its own time
		s.inbox.put(plan.BatchPut{Batch: held})
		s.background.Go(func() { s.stopLogged(r.id, code, why) })
	}
}

// finishUntilDone marks a chunk done, and goes on trying while the store does not answer.
func (s *session) finishUntilDone(c *chunk) {
	for {
		err := s.finishChunk(s.work, c)
		switch {
		case err == nil:
			return
		case isFenced(err):
			s.lose(err)
			return
		case s.work.Err() != nil:
			return
		}
		c.run.waitFor(reasonOf(err))
		s.log.Warn("could not finish a chunk, trying again", "batch_id", c.Batch, "chunk", c.Index,
			"error", err)
		select {
		case <-s.work.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// finishChunk marks a chunk done whose results are all durable, and looks after the batch if it may
// have been the last.
func (s *session) finishChunk(ctx context.Context, c *chunk) error {
	r := c.run
	if err := c.journal.Close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("close journal of chunk %d: %w", c.Index, err)
	}
	// so that no post counts the chunk as unfinished after the store knows that it is done
	r.posting.Lock()
	r.mu.Lock()
	done := c.Chunk
	done.Tally, done.Posted = c.tally, c.posted
	r.mu.Unlock()
	err := s.deps.Metadata.FinishChunk(ctx, s.lease.owner, done)
	if err == nil {
		r.mu.Lock()
		delete(r.chunks, c.Index)
		r.live = minus(r.live, c.tally)
		r.done = plus(r.done, c.tally)
		r.posted.Completed -= c.posted.Completed
		r.posted.Failed -= c.posted.Failed
		r.mu.Unlock()
	}
	r.posting.Unlock()
	if err != nil {
		return fmt.Errorf("finish chunk %d of %s: %w", c.Index, c.Batch, err)
	}
	s.inbox.put(chunkDone{c})
	r.mu.Lock()
	idle, canary := len(r.chunks) == 0, !r.canary.passed
	models := r.batch.Models
	r.mu.Unlock()
	if canary {
		for _, m := range models {
			s.inbox.put(plan.MoreChunks{Key: plan.JobKey{Batch: c.Batch, Model: m.Model}})
		}
	}
	if idle {
		s.keep.add(c.Batch)
	}
	return nil
}

// releaseChunk puts back a chunk of which nothing is under way, with what it has got so far.
func (s *session) releaseChunk(c *chunk) {
	r := c.run
	r.mu.Lock()
	leaving := c.leaving
	c.leaving = true
	r.mu.Unlock()
	if leaving {
		return // finishing on its own
	}
	r.fruitless.Add(c.fruitless())
	defer c.letGo(s.memory)
	err := c.journal.Flush(s.work)
	err = errors.Join(err, c.journal.Close(context.WithoutCancel(s.work)))
	if err != nil {
		s.log.Warn("could not flush the journal of a chunk that is put back", "batch_id", c.Batch,
			"chunk", c.Index, "error", err)
	}
	releasing, cancel := context.WithTimeout(context.WithoutCancel(s.work), releaseTimeout)
	defer cancel()
	r.mu.Lock()
	whole := c.pending == 0
	r.mu.Unlock()
	if whole {
		err = s.finishChunk(releasing, c)
	}
	if !whole || err != nil { // one that isn't told done is found so by whoever claims it next
		s.putBack(c.Chunk)
	}
	s.unblocked(c)
	r.mu.Lock()
	delete(r.chunks, c.Index)
	r.mu.Unlock()
	s.keep.add(c.Batch)
}

// putBack releases a claim. While the store does not listen it goes on trying: the claim won't end
// with the lease, which is renewed for the sake of all others.
func (s *session) putBack(c store.Chunk) {
	for waited := false; ; waited = true {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), releaseTimeout)
		err := s.deps.Metadata.ReleaseChunk(ctx, s.lease.owner, c)
		cancel()
		if err == nil || isFenced(err) {
			return
		}
		if !waited {
			s.log.Warn("could not put a chunk back, trying again", "batch_id", c.Batch,
				"chunk", c.Index, "error", err)
		}
		select {
		case <-s.work.Done():
			return
		case <-time.After(retryEvery):
		}
	}
}

// releaseTimeout bounds one try to tell the store that a chunk is left.
const releaseTimeout = 5 * time.Second

func minus(a, b store.Tally) store.Tally {
	a.Completed -= b.Completed
	a.Failed -= b.Failed
	a.Usage.InputTokens -= b.Usage.InputTokens
	a.Usage.OutputTokens -= b.Usage.OutputTokens
	a.Usage.TotalTokens -= b.Usage.TotalTokens
	a.Usage.CachedTokens -= b.Usage.CachedTokens
	a.Usage.ReasoningTokens -= b.Usage.ReasoningTokens
	return a
}

// blocked stops all starts while a journal can't be written: answers would pile up in memory.
func (s *session) blocked(c *chunk, err error) {
	s.mu.Lock()
	first := len(s.stuck) == 0
	s.stuck[c] = true
	s.mu.Unlock()
	if first {
		s.log.Error("results can't be written down, starting no more lines until they can",
			"batch_id", c.Batch, "error", err)
		s.inbox.put(plan.Hold{Reason: reasonOf(err)})
	}
}

func (s *session) unblocked(c *chunk) {
	s.mu.Lock()
	was := len(s.stuck) > 0
	delete(s.stuck, c)
	free := was && len(s.stuck) == 0
	s.mu.Unlock()
	if free {
		s.log.Info("results can be written down again, going on")
		s.inbox.put(plan.Hold{})
	}
}
