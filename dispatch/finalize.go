package dispatch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/batchfile"
)

// finalize writes the result files of a batch that nobody works on any more, and ends it. Whoever comes here after a
// crash writes the same files again, under the same names.
func (s *session) finalize(ctx context.Context, r *run, b store.Batch) error {
	lock := "finalize/" + b.ID
	_, ok, err := s.deps.Metadata.Lock(ctx, s.owner, lock)
	if err != nil {
		return err
	}
	if !ok {
		s.keep.addAfter(b.ID, askAgain)
		return nil
	}
	defer s.deps.Metadata.Unlock(context.WithoutCancel(ctx), s.owner, lock)
	found, err := s.gather(ctx, &b)
	if err != nil {
		return fmt.Errorf("gather results of batch %s: %w", b.ID, err)
	}
	if b.Ending == store.Completed && len(found.lost) > 0 {
		return s.runAgain(ctx, b.ID, found.lost)
	}
	src, err := openSource(ctx, s.deps.Blobs, &b)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if src != nil {
		defer src.close()
	}
	outputs := make([]store.Output, len(b.Outputs))
	counts := store.Counts{Total: b.Counts.Total}
	for i, out := range b.Outputs {
		first, lines := 0, b.Counts.Total
		if out.Input >= 0 {
			first, lines = b.Inputs[out.Input].First, b.Inputs[out.Input].Lines
		}
		w := resultFiles{session: s, batch: &b, source: src, found: found}
		outputs[i], err = w.write(ctx, out, first, lines)
		w.close()
		if err != nil {
			return fmt.Errorf("write results of batch %s: %w", b.ID, err)
		}
		counts.Completed += w.completed
		counts.Failed += w.failed
	}
	if err := s.conclude(ctx, &b, outputs, counts, found); err != nil {
		return err
	}
	s.dropInputs(ctx, &b)
	return s.deps.Blobs.Delete(ctx, orderKey(b.ID))
}

// conclude makes the end of a batch known.
func (s *session) conclude(ctx context.Context, b *store.Batch, outputs []store.Output, counts store.Counts, found *results) error {
	_, err := store.Modify(ctx, s.deps.Metadata, "", b.ID, func(b *store.Batch) error {
		if b.State != store.Finalizing && b.State != store.Cancelling {
			return errSettled
		}
		now := time.Now()
		b.Outputs, b.Counts, b.Attempts = outputs, counts, found.attempts
		b.Usage = &found.usage
		b.Paused = false
		switch b.State = b.Ending; b.State {
		case store.Completed:
			b.CompletedAt = now
		case store.Expired:
			b.ExpiredAt = now
		case store.Failed:
			b.FailedAt = now
		default:
			b.State, b.CancelledAt = store.Cancelled, now
		}
		return nil
	})
	switch {
	case errors.Is(err, errSettled) || errors.Is(err, store.ErrConflict):
		s.keep.add(b.ID)
		return nil
	case err != nil:
		return fmt.Errorf("end batch %s: %w", b.ID, err)
	}
	s.metrics.ended(b.Ending)
	s.log.InfoContext(ctx, "batch ended", "batch_id", b.ID, "state", b.Ending, "completed", counts.Completed, "failed", counts.Failed)
	s.keep.add(b.ID)
	return nil
}

// results says where the result of every line stands.
type results struct {
	at       []place       // by line number
	lost     []store.Chunk // those that have no result of some line
	usage    batchfile.Usage
	attempts int64
}

// place is a result's place in its chunk's journal; Length 0: there is none.
type place struct {
	store.Location
	chunk  int32
	failed bool
}

// gather reads the journals of all chunks. Those that aren't done are fenced first, so that nothing is added behind our back.
func (s *session) gather(ctx context.Context, b *store.Batch) (*results, error) {
	chunks, err := s.deps.Metadata.Chunks(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	if err := s.fence(ctx, b); err != nil {
		return nil, err
	}
	found := &results{at: make([]place, b.Counts.Total)}
	for _, c := range chunks {
		missing := c.Count
		err := s.deps.Journals.Read(ctx, c.ChunkID, func(rec store.Record, at store.Location) error {
			if int(rec.Line) >= len(found.at) {
				return fmt.Errorf("journal of chunk %d speaks of line %d of %d", c.Index, rec.Line, len(found.at))
			}
			if found.at[rec.Line].Length == 0 {
				found.at[rec.Line] = place{Location: at, chunk: int32(c.Index), failed: rec.Failed}
				found.usage.Add(rec.Usage)
				found.attempts += int64(rec.Attempts)
				missing--
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if missing > 0 {
			found.lost = append(found.lost, c)
		}
	}
	return found, nil
}

// fence claims what is left of a batch that ends early and opens its journals, which shuts out writers that still believe in
// an older claim.
func (s *session) fence(ctx context.Context, b *store.Batch) error {
	if b.Ending == store.Completed {
		return nil // all chunks are done: no claim is left to believe in
	}
	for _, m := range b.Models {
		claimed, err := s.deps.Metadata.ClaimChunks(ctx, s.owner, b.ID, m.Model, 1<<30)
		if err != nil {
			return err
		}
		for _, c := range claimed {
			if err := s.fenceChunk(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) fenceChunk(ctx context.Context, c store.Chunk) error {
	j, err := s.deps.Journals.Open(ctx, c.ChunkID, c.Epoch, func(store.Record) {}, func(store.Commit) {})
	if err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	return s.deps.Metadata.ReleaseChunk(ctx, s.owner, c)
}

// resultFiles writes one pair of output and error file.
type resultFiles struct {
	*session
	batch             *store.Batch
	source            *source
	found             *results
	completed, failed int
	open              map[int]store.Results // by chunk
	buf               []byte
}

func (w *resultFiles) write(ctx context.Context, out store.Output, first, lines int) (store.Output, error) {
	good, err := w.create(ctx, out.OutputID, "output")
	if err != nil {
		return out, err
	}
	defer good.abort()
	bad, err := w.create(ctx, out.ErrorID, "error")
	if err != nil {
		return out, err
	}
	defer bad.abort()
	code, message := leftover(w.batch)
	missing := make([]uint32, 0, 512)
	list := func() error {
		err := w.listMissing(bad, missing, code, message)
		w.failed += len(missing)
		missing = missing[:0]
		return err
	}
	for line := first; line < first+lines; line++ {
		at := w.found.at[line]
		if at.Length == 0 {
			if missing = append(missing, uint32(line)); len(missing) == cap(missing) {
				if err := list(); err != nil {
					return out, err
				}
			}
			continue
		}
		if at.failed { // error lines stand in input order, missing ones among them
			if err := list(); err != nil {
				return out, err
			}
		}
		if err := w.copyResult(ctx, at, good, bad); err != nil {
			return out, err
		}
	}
	if err := list(); err != nil {
		return out, err
	}
	if out.HasOutput, err = good.commit(ctx, w.session); err != nil {
		return out, err
	}
	out.HasErrors, err = bad.commit(ctx, w.session)
	return out, err
}

// mostOpen is how many journals are read from at once. Lines as they come need one at a time; grouped ones, several.
const mostOpen = 32

// journal returns the results of a chunk, open.
func (w *resultFiles) journal(ctx context.Context, chunk int) (store.Results, error) {
	if open := w.open[chunk]; open != nil {
		return open, nil
	}
	if len(w.open) == mostOpen {
		w.close()
	}
	opened, err := w.deps.Journals.Results(ctx, store.ChunkID{Batch: w.batch.ID, Index: chunk})
	if err != nil {
		return nil, err
	}
	if w.open == nil {
		w.open = map[int]store.Results{}
	}
	w.open[chunk] = opened
	return opened, nil
}

func (w *resultFiles) close() {
	for _, open := range w.open {
		open.Close()
	}
	clear(w.open)
}

func (w *resultFiles) copyResult(ctx context.Context, at place, good, bad *resultFile) error {
	journal, err := w.journal(ctx, int(at.chunk))
	if err != nil {
		return err
	}
	if w.buf, err = journal.Append(w.buf[:0], at.Location); err != nil {
		return err
	}
	if at.failed {
		w.failed++
		_, err = bad.out.Write(w.buf)
	} else {
		w.completed++
		_, err = good.out.Write(w.buf)
	}
	return err
}

// leftover is what the error file says of lines that never got an answer.
func leftover(b *store.Batch) (code, message string) {
	switch b.Ending {
	case store.Expired:
		return "batch_expired", "This request could not be executed before the completion window expired."
	case store.Failed:
		return "batch_stopped", "This request was not executed because the batch was stopped: " + b.Reason + "."
	default:
		return "batch_cancelled", "This request was not executed because the batch was cancelled."
	}
}

func (w *resultFiles) listMissing(bad *resultFile, numbers []uint32, code, message string) error {
	if len(numbers) == 0 || w.source == nil {
		return nil
	}
	lines, err := w.source.numbered(numbers)
	if err != nil {
		return err
	}
	for i := range lines {
		customID, err := lines[i].customID()
		if err != nil {
			return err
		}
		w.buf = batchfile.AppendResult(w.buf[:0], batchfile.Result{
			ID: resultID(w.batch.ID, lines[i].number), CustomID: customID, ErrorCode: code, ErrorMessage: message,
		})
		if _, err := bad.out.Write(w.buf); err != nil {
			return err
		}
	}
	return nil
}

// resultFile is an output or error file on its way.
type resultFile struct {
	file store.File
	blob store.BlobWriter
	out  *bufio.Writer
	size *counter
}

// counter counts what passes.
type counter struct {
	to    store.BlobWriter
	bytes int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes += int64(n)
	return n, err
}

func (w *resultFiles) create(ctx context.Context, id, kind string) (*resultFile, error) {
	key := "files/" + id
	blob, err := w.deps.Blobs.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	f := &resultFile{blob: blob, size: &counter{to: blob}, file: store.File{
		ID: id, Tenant: w.batch.Tenant, Purpose: "batch_output", Filename: w.batch.ID + "_" + kind + ".jsonl", CreatedAt: now, BlobKey: key,
	}}
	if life := w.batch.Options.OutputLife; life > 0 {
		f.file.ExpiresAt = now.Add(life)
	}
	f.out = bufio.NewWriterSize(f.size, 256<<10)
	return f, nil
}

// commit makes the file known, unless it is empty: an empty file is no file.
func (f *resultFile) commit(ctx context.Context, s *session) (written bool, err error) {
	if err := f.out.Flush(); err != nil {
		return false, err
	}
	if f.size.bytes == 0 {
		return false, f.blob.Abort()
	}
	if err := f.blob.Commit(); err != nil {
		return false, err
	}
	f.file.Bytes = f.size.bytes
	err = s.deps.Metadata.CreateFile(ctx, f.file)
	if errors.Is(err, store.ErrExists) { // by an earlier try that did not get to the end
		err = nil
	}
	return err == nil, err
}

func (f *resultFile) abort() { f.blob.Abort() }

// dropInputs removes the bytes of inputs that were deleted while the batch still needed them.
func (s *session) dropInputs(ctx context.Context, b *store.Batch) {
	for _, in := range b.Inputs {
		if _, err := s.deps.Metadata.File(ctx, b.Tenant, in.FileID); !errors.Is(err, store.ErrNotFound) || s.inUse(b.ID, in.BlobKey) {
			continue
		}
		if err := errors.Join(s.deps.Blobs.Delete(ctx, in.BlobKey), s.deps.Blobs.Delete(ctx, in.IndexKey)); err != nil {
			s.log.WarnContext(ctx, "could not remove the bytes of a deleted input", "file_id", in.FileID, "error", err)
		}
	}
}

// inUse reports whether a living batch other than the given one reads the blob.
func (s *session) inUse(batch, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.runs {
		if id != batch && r.reads(key) {
			return true
		}
	}
	return false
}

func (r *run) reads(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batch.State.Terminal() {
		return false
	}
	for _, in := range r.batch.Inputs {
		if in.BlobKey == key {
			return true
		}
	}
	return false
}
