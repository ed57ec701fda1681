package finish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// Recorder writes results to the journals of their chunks and counts them once they are durable.
// While a journal can't be written it holds all starts. The memory that its results may take is
// bounded.
type Recorder struct {
	*work.Session
	finisher *Finisher
	metrics  Metrics

	mu            sync.Mutex           // also held to send holds, so that they come in their order
	blockedChunks map[*work.Chunk]bool // whose journals can't be written now
}

// Metrics count results, and ends and deliveries of batches.
type Metrics interface {
	Committed(tenant, model string, c store.Commit)
	Ended(state store.State)
	Delivered(result string)
}

// What becomes of a delivery.
const (
	Delivered       = "delivered"
	DeliveryFailed  = "failed" // it is tried again
	DeliveryGivenUp = "given_up"
)

// NewRecorder returns a recorder of which no journal is blocked. The finisher gets the chunks of
// which every line has a durable result.
func NewRecorder(s *work.Session, finisher *Finisher, metrics Metrics) *Recorder {
	return &Recorder{Session: s, finisher: finisher, metrics: metrics,
		blockedChunks: map[*work.Chunk]bool{}}
}

// RecordAnswer appends a good answer to the chunk's journal. If there is no memory for it before
// the line is canceled, the line is sent again later.
func (rec *Recorder) RecordAnswer(
	w *work.ResultBuffer, f *work.Flight, line *work.Line, id string, got openai.Answer,
) {
	customID, ok := rec.CustomID(f, line)
	if !ok {
		return
	}
	w.Head = batchfile.AppendResultHead(w.Head[:0], batchfile.Result{ID: id, CustomID: customID,
		Status: got.Status, RequestID: got.RequestID})
	record := store.Record{Line: line.Number(), Attempts: line.Requests(),
		Usage: line.WithRejected(got.Usage), Result: w.Head}
	var err error
	if got.Large != nil {
		err = rec.appendLarge(f.Chunk, record, got.Large)
	} else {
		w.Rest = [...][]byte{batchfile.ResultBody(got.Body), resultTail}
		record.More = w.Rest[:]
		err = rec.appendSmall(f.Chunk, record)
		w.Rest = [2][]byte{}
	}
	if err != nil {
		f.Outcome = plan.Evicted
		return
	}
	line.Record(&rec.Memory.Inputs)
}

// CustomID reads the custom_id for the line's result. If the input can't be read now, the line is
// sent again.
func (rec *Recorder) CustomID(f *work.Flight, line *work.Line) (id []byte, ok bool) {
	id, err := line.CustomID()
	if err != nil {
		rec.Log.Error("could not read a custom_id, the line will be sent again",
			"batch_id", f.Chunk.Batch, "line", line.Number(), "error", err)
		f.Outcome = plan.Evicted
	}
	return id, err == nil
}

var resultTail = []byte(batchfile.ResultTail)

// appendSmall appends a result once memory is free for it.
func (rec *Recorder) appendSmall(c *work.Chunk, r store.Record) error {
	size := sizeOf(&r)
	if err := rec.Memory.Results.Wait(c.Run.Context, size); err != nil {
		return err
	}
	return rec.append(c, r, size)
}

// append appends a result for which memory was taken. If the journal refuses it, the claim is lost,
// and that ends the session, unless the run has ended while the journal waited.
func (rec *Recorder) append(c *work.Chunk, r store.Record, size int64) error {
	c.Wrote(size)
	if err := c.Journal.Append(c.Run.Context, r); err != nil {
		c.Settled(&rec.Memory.Results, size)
		err = fmt.Errorf("append to journal of batch %s, chunk %d: %w", c.Batch, c.Index, err)
		if errors.Is(err, store.ErrFenced) || c.Run.Context.Err() == nil {
			rec.Lose(err)
		}
		return err
	}
	r.Size = size
	c.Run.Appended(r)
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
func (rec *Recorder) appendLarge(c *work.Chunk, r store.Record, large *openai.Large) error {
	head := r.Result
	r.Result = nil
	size := int64(len(head)) + large.Size + int64(len(resultTail))
	result := func() io.Reader {
		return io.MultiReader(bytes.NewReader(head), io.NewSectionReader(large.File, 0, large.Size),
			bytes.NewReader(resultTail))
	}
	for {
		err := c.Journal.AppendFrom(c.Run.Context, r, size, result)
		switch {
		case err == nil:
			r.Size = size
			c.Run.Appended(r)
			return nil
		case errors.Is(err, store.ErrFenced):
			rec.Lose(fmt.Errorf("journal of batch %s, chunk %d: %w", c.Batch, c.Index, err))
			return err
		case c.Run.Context.Err() != nil:
			return err
		}
		rec.block(c, err)
		select {
		case <-c.Run.Context.Done():
			return context.Cause(c.Run.Context)
		case <-time.After(work.RetryEvery):
		}
	}
}

// RecordFailure records the failure of a line. The loop calls it, so it does not wait for memory:
// while results take all of theirs, no line starts.
func (rec *Recorder) RecordFailure(f *work.Flight) {
	line := f.Line()
	a := &f.Failure
	record := store.Record{Line: line.Number(), Failed: true, Attempts: line.Requests(),
		Usage: line.WithRejected(batchfile.Usage{}),
		Result: batchfile.AppendResult(nil, batchfile.Result{
			ID: work.ResultID(f.Chunk.Batch, line.Number()), CustomID: a.CustomID,
			Status: a.Status, RequestID: a.RequestID, Body: a.Body, ErrorCode: a.Code,
			ErrorMessage: a.Message,
		})}
	size := sizeOf(&record)
	rec.Memory.Results.Force(size)
	if rec.append(f.Chunk, record, size) == nil {
		line.Record(&rec.Memory.Inputs)
		f.Chunk.Run.CountFailure(a.Cause(f.Start.Runner))
	}
}

// Committed receives from a chunk's journal that results are durable, or why they are not yet. The
// journal's committer calls it, so it does not wait for the journal.
func (rec *Recorder) Committed(c *work.Chunk, commit store.Commit) {
	if commit.Err != nil {
		if errors.Is(commit.Err, store.ErrFenced) {
			rec.Lose(fmt.Errorf("journal of batch %s, chunk %d: %w", c.Batch, c.Index, commit.Err))
			return
		}
		rec.block(c, commit.Err)
		return
	}
	rec.Unblock(c)
	full := rec.Memory.Results.Full()
	c.Settled(&rec.Memory.Results, commit.Bytes)
	if full && !rec.Memory.Results.Full() {
		rec.Inbox.Event(plan.Tick{}) // lines may start again
	}
	complete := c.Run.Committed(c, commit)
	rec.metrics.Committed(c.Run.Tenant, c.Model, commit)
	if complete {
		rec.finisher.Add(c)
	}
}

// block holds all starts while a journal can't be written, since answers would gather in memory.
func (rec *Recorder) block(c *work.Chunk, err error) {
	rec.mu.Lock()
	first := len(rec.blockedChunks) == 0
	rec.blockedChunks[c] = true
	if first {
		rec.Inbox.Put(work.ResultsBlocked{Reason: work.ReasonOf(err)})
	}
	rec.mu.Unlock()
	if first {
		rec.Log.Error("could not write results, starting no more lines until it works",
			"batch_id", c.Batch, "error", err)
	}
}

// Unblock notes that the chunk's journal can be written again, or is closed.
func (rec *Recorder) Unblock(c *work.Chunk) {
	rec.mu.Lock()
	blocked := len(rec.blockedChunks) > 0
	delete(rec.blockedChunks, c)
	free := blocked && len(rec.blockedChunks) == 0
	if free {
		rec.Inbox.Put(work.ResultsBlocked{})
	}
	rec.mu.Unlock()
	if free {
		rec.Log.Info("results can be written again, starting lines")
	}
}
