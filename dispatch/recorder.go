package dispatch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// recorder writes results to the journals of their chunks and counts them once they are durable.
// While a journal can't be written it holds all starts. The memory that its results may take is
// bounded.
type recorder struct {
	results *share // memory of results that are not durable yet
	inputs  *share // memory of input lines, which it frees
	metrics *metrics
	log     *slog.Logger

	inbox    *inbox
	lose     context.CancelCauseFunc
	finisher *finisher

	mu            sync.Mutex      // also held to send holds, so that they come in their order
	blockedChunks map[*chunk]bool // whose journals can't be written now
}

// recordAnswer appends a good answer to the chunk's journal. If there is no memory for it before
// the line is canceled, the line is sent again later.
func (rec *recorder) recordAnswer(
	w *sender, f *flight, line *sourceLine, id string, got openai.Answer,
) {
	usage := got.Usage
	f.InputTokens, f.OutputTokens, f.CachedTokens = int(usage.InputTokens), int(usage.OutputTokens),
		int(usage.CachedTokens)
	customID, ok := rec.customID(f, line)
	if !ok {
		return
	}
	w.result = batchfile.AppendResultHead(w.result[:0], batchfile.Result{ID: id, CustomID: customID,
		Status: got.Status, RequestID: got.RequestID})
	record := store.Record{Line: line.number, Attempts: line.requests, Usage: usage,
		Result: w.result}
	var err error
	if got.Large != nil {
		err = rec.appendLarge(f.chunk, record, got.Large)
	} else {
		w.rest = [...][]byte{batchfile.ResultBody(got.Body), resultTail}
		record.More = w.rest[:]
		err = rec.appendSmall(f.chunk, record)
		w.rest = [2][]byte{}
	}
	if err != nil {
		f.Outcome = plan.Evicted
		return
	}
	rec.recorded(line)
}

// customID reads the custom_id for the line's result. If the input can't be read now, the line is
// sent again.
func (rec *recorder) customID(f *flight, line *sourceLine) (id []byte, ok bool) {
	id, err := line.customID()
	if err != nil {
		rec.log.Error("could not read a custom_id, the line will be sent again",
			"batch_id", f.chunk.Batch, "line", line.number, "error", err)
		f.Outcome = plan.Evicted
	}
	return id, err == nil
}

var resultTail = []byte(batchfile.ResultTail)

// appendSmall appends a result once memory is free for it.
func (rec *recorder) appendSmall(c *chunk, r store.Record) error {
	size := sizeOf(&r)
	if err := rec.results.wait(c.run.ctx, size); err != nil {
		return err
	}
	return rec.append(c, r, size)
}

// append appends a result for which memory was taken. If the journal refuses it, the claim is lost,
// and that ends the session, unless the run has ended while the journal waited.
func (rec *recorder) append(c *chunk, r store.Record, size int64) error {
	c.volatile.Add(size)
	if err := c.journal.Append(c.run.ctx, r); err != nil {
		c.settled(rec.results, size)
		err = fmt.Errorf("append to journal of batch %s, chunk %d: %w", c.Batch, c.Index, err)
		if isFenced(err) || c.run.ctx.Err() == nil {
			rec.lose(err)
		}
		return err
	}
	c.run.appended(r)
	return nil
}

func sizeOf(r *store.Record) int64 {
	n := int64(len(r.Result))
	for _, more := range r.More {
		n += int64(len(more))
	}
	return n
}

// appendLarge appends a result from its file, and tries again while the disk refuses it.
func (rec *recorder) appendLarge(c *chunk, r store.Record, large *openai.Large) error {
	head := r.Result
	r.Result = nil
	size := int64(len(head)) + large.Size + int64(len(resultTail))
	result := func() io.Reader {
		return io.MultiReader(bytes.NewReader(head), io.NewSectionReader(large.File, 0, large.Size),
			bytes.NewReader(resultTail))
	}
	for {
		err := c.journal.AppendFrom(c.run.ctx, r, size, result)
		switch {
		case err == nil:
			c.run.appended(r)
			return nil
		case isFenced(err):
			rec.lose(fmt.Errorf("journal of batch %s, chunk %d: %w", c.Batch, c.Index, err))
			return err
		case c.run.ctx.Err() != nil:
			return err
		}
		rec.block(c, err)
		select {
		case <-c.run.ctx.Done():
			return context.Cause(c.run.ctx)
		case <-time.After(retryEvery):
		}
	}
}

// recorded notes that the journal holds the line's result. Its input is not needed any more.
func (rec *recorder) recorded(line *sourceLine) {
	line.recorded = true
	line.release(rec.inputs)
}

// recordFailure records the failure of a line. The loop calls it, so it does not wait for memory:
// while results take all of theirs, no line starts.
func (rec *recorder) recordFailure(f *flight) {
	line := &f.chunk.lines[f.Start.Slot]
	a := &f.failure
	record := store.Record{Line: line.number, Failed: true, Attempts: line.requests,
		Result: batchfile.AppendResult(nil, batchfile.Result{
			ID: resultID(f.chunk.Batch, line.number), CustomID: a.customID,
			Status: a.status, RequestID: a.requestID, Body: a.body, ErrorCode: a.code,
			ErrorMessage: a.message,
		})}
	size := sizeOf(&record)
	rec.results.force(size)
	if rec.append(f.chunk, record, size) == nil {
		rec.recorded(line)
		f.chunk.run.countFailure(a.cause(f.Start.Runner))
	}
}

// committed receives from a chunk's journal that results are durable, or why they are not yet. The
// journal's committer calls it, so it does not wait for the journal.
func (rec *recorder) committed(c *chunk, commit store.Commit) {
	if commit.Err != nil {
		if isFenced(commit.Err) {
			rec.lose(fmt.Errorf("journal of batch %s, chunk %d: %w", c.Batch, c.Index, commit.Err))
			return
		}
		rec.block(c, commit.Err)
		return
	}
	rec.unblock(c)
	full := rec.results.full()
	c.settled(rec.results, commit.Bytes)
	if full && !rec.results.full() {
		rec.inbox.event(plan.Tick{}) // lines may start again
	}
	complete := c.run.committed(c, commit)
	rec.metrics.committed(commit)
	if complete {
		rec.finisher.add(c)
	}
}

// block holds all starts while a journal can't be written, since answers would gather in memory.
func (rec *recorder) block(c *chunk, err error) {
	rec.mu.Lock()
	first := len(rec.blockedChunks) == 0
	rec.blockedChunks[c] = true
	if first {
		rec.inbox.put(resultsBlocked{reasonOf(err)})
	}
	rec.mu.Unlock()
	if first {
		rec.log.Error("could not write results, starting no more lines until it works",
			"batch_id", c.Batch, "error", err)
	}
}

// unblock notes that the chunk's journal can be written again, or is closed.
func (rec *recorder) unblock(c *chunk) {
	rec.mu.Lock()
	blocked := len(rec.blockedChunks) > 0
	delete(rec.blockedChunks, c)
	free := blocked && len(rec.blockedChunks) == 0
	if free {
		rec.inbox.put(resultsBlocked{plan.Flowing})
	}
	rec.mu.Unlock()
	if free {
		rec.log.Info("results can be written again, starting lines")
	}
}
