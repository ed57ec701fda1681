package finish

import (
	"bufio"
	"context"
	"strings"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// resultFiles writes one pair of output and error file.
type resultFiles struct {
	end               *ending
	source            *work.Source // nil: the input is lost
	completed, failed int
	notRun            int                   // lines that are listed without a result
	open              map[int]store.Results // by chunk
	missing           []uint32              // lines without a result that are not listed yet
	buf               []byte
}

// write writes the results of lines from first on.
func (w *resultFiles) write(
	ctx context.Context, out store.Output, first, lines int,
) (store.Output, error) {
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
	w.missing = make([]uint32, 0, 512)
	for line := first; line < first+lines; line++ {
		if err := w.writeLine(ctx, line, good, bad); err != nil {
			return out, err
		}
	}
	if err := w.listMissing(bad); err != nil {
		return out, err
	}
	if out.HasOutput, err = w.commit(ctx, good); err != nil {
		return out, err
	}
	out.HasErrors, err = w.commit(ctx, bad)
	return out, err
}

func (w *resultFiles) writeLine(ctx context.Context, line int, good, bad *resultFile) error {
	at := w.end.found.at[line]
	if at.none() {
		if w.missing = append(w.missing, uint32(line)); len(w.missing) < cap(w.missing) {
			return nil
		}
		return w.listMissing(bad)
	}
	if at.failed() { // failed and missing lines are in input order
		if err := w.listMissing(bad); err != nil {
			return err
		}
	}
	return w.copyResult(ctx, at, good, bad)
}

// maxOpen limits the journals that are open at once. Lines in input order need one at a time,
// grouped ones several.
const maxOpen = 32

// journal returns the open journal of a chunk.
func (w *resultFiles) journal(ctx context.Context, chunk int) (store.Results, error) {
	if open := w.open[chunk]; open != nil {
		return open, nil
	}
	if len(w.open) == maxOpen {
		w.close()
	}
	opened, err := w.end.found.journals.Results(ctx, store.ChunkID{Batch: w.end.batch.ID,
		Index: chunk})
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
	journal, err := w.journal(ctx, at.chunkIndex())
	if err != nil {
		return err
	}
	if at.failed() {
		w.failed++
		return journal.Copy(ctx, bad.out, at.location())
	}
	w.completed++
	return journal.Copy(ctx, good.out, at.location())
}

// leftover returns the error of lines that got no answer.
func leftover(b *store.Batch) (code, message string) {
	switch b.Ending {
	case store.Expired:
		return "batch_expired",
			"This request could not be executed before the completion window expired."
	case store.Failed:
		return "batch_stopped", "This request was not executed because the batch was stopped: " +
			strings.TrimRight(b.Reason, ".?") + "."
	default:
		return "batch_cancelled", "This request was not executed because the batch was cancelled."
	}
}

// listMissing lists the missing lines in the error file.
func (w *resultFiles) listMissing(bad *resultFile) error {
	numbers := w.missing
	w.missing = w.missing[:0]
	w.notRun += len(numbers)
	if len(numbers) == 0 || w.source == nil {
		return nil
	}
	lines, err := w.source.Numbered(numbers)
	if err != nil {
		return err
	}
	code, message := leftover(&w.end.batch)
	for i := range lines {
		customID, err := lines[i].CustomID()
		if err != nil {
			return err
		}
		w.buf = batchfile.AppendResult(w.buf[:0], batchfile.Result{
			ID: work.ResultID(w.end.batch.ID, lines[i].Number()), CustomID: customID,
			ErrorCode: code, ErrorMessage: message,
		})
		if _, err := bad.out.Write(w.buf); err != nil {
			return err
		}
	}
	return nil
}

// resultFile is an output or error file while it is written.
type resultFile struct {
	file store.File
	blob store.BlobWriter
	out  *bufio.Writer
	size *byteCounter
}

// byteCounter counts the bytes that it writes.
type byteCounter struct {
	to    store.BlobWriter
	bytes int64
}

func (c *byteCounter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes += int64(n)
	return n, err
}

func (w *resultFiles) create(ctx context.Context, id, kind string) (*resultFile, error) {
	key := w.end.keyOf(id)
	blob, err := w.end.target.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	f := &resultFile{blob: blob, size: &byteCounter{to: blob}, file: store.File{
		ID: id, Tenant: w.end.batch.Tenant, Purpose: "batch_output", Filename: w.end.batch.ID +
			"_" + kind +
			".jsonl", CreatedAt: now, BlobKey: key, Storage: w.end.batch.Options.Storage,
	}}
	if life := w.end.batch.Options.OutputLife; life > 0 {
		f.file.ExpiresAt = now.Add(life)
	}
	f.out = bufio.NewWriterSize(f.size, 256<<10)
	return f, nil
}

// commit makes the bytes durable and adds the file to those that conclude creates. It drops an
// empty file.
func (w *resultFiles) commit(ctx context.Context, f *resultFile) (written bool, err error) {
	if err := f.out.Flush(); err != nil {
		return false, err
	}
	if f.size.bytes == 0 {
		return false, f.blob.Abort()
	}
	if err := f.blob.Commit(ctx); err != nil {
		return false, err
	}
	f.file.Bytes = f.size.bytes
	w.end.files = append(w.end.files, f.file)
	return true, nil
}

func (f *resultFile) abort() { f.blob.Abort() }
