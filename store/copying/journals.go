package copying

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// parallelJournals are written at the same time, so that they are committed together.
const parallelJournals = 64

// damages counts the bytes of journals that readers have skipped.
type damages interface{ DamagedBytes() int64 }

// copyJournals copies the results of all batches that have journals.
func (c *copier) copyJournals(ctx context.Context) error {
	counter, counts := c.from.Backend.Journals.(damages)
	batches, err := c.from.Backend.Journals.Batches(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", c.from.Name, err)
	}
	for _, batch := range batches {
		_, err := c.from.Backend.Records.Batch(ctx, "", batch)
		if errors.Is(err, store.ErrNotFound) {
			continue // a leftover
		}
		if err == nil {
			err = c.copyBatchJournals(ctx, batch)
		}
		if err != nil {
			return fmt.Errorf("journals of batch %s: %w", batch, err)
		}
	}
	if counts {
		c.report.update(func(s *Summary) { s.DamagedBytes = counter.DamagedBytes() })
	}
	return nil
}

// errOther means that the target has other results of a chunk.
var errOther = errors.New("the journal has other results")

func (c *copier) copyBatchJournals(ctx context.Context, batch string) error {
	chunks, err := c.from.Backend.Records.Chunks(ctx, batch)
	if err != nil {
		return fmt.Errorf("%s: %w", c.from.Name, err)
	}
	chunks = slices.DeleteFunc(chunks, func(chunk store.Chunk) bool { return chunk.Epoch == 0 })
	copied, err := c.copyChunks(ctx, chunks)
	if errors.Is(err, errOther) {
		// Those of an earlier time, when the target was in use.
		if err := c.to.Backend.Journals.Remove(ctx, batch); err != nil {
			return fmt.Errorf("%s: %w", c.to.Name, err)
		}
		copied, err = c.copyChunks(ctx, chunks)
	}
	if err != nil {
		return err
	}
	c.report.update(func(s *Summary) {
		s.Journals.Total += copied.Total
		s.Journals.Written += copied.Written
		s.Journals.Bytes += copied.Bytes
	})
	return nil
}

func (c *copier) copyChunks(ctx context.Context, chunks []store.Chunk) (sum Count, err error) {
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(parallelJournals)
	counts := make([]Count, len(chunks))
	for i, chunk := range chunks {
		group.Go(func() (err error) {
			if counts[i], err = c.copyChunk(working, chunk); err != nil {
				err = fmt.Errorf("chunk %d: %w", chunk.Index, err)
			}
			return err
		})
	}
	err = group.Wait()
	for _, n := range counts {
		sum.Total += n.Total
		sum.Written += n.Written
		sum.Bytes += n.Bytes
	}
	return sum, err
}

// result identifies a record of a journal.
type result struct {
	line     uint32
	failed   bool
	attempts uint16
	usage    batchfile.Usage
	size     uint32
	sum      [sha256.Size]byte
}

// copyChunk appends to the journal of a chunk what it lacks, and reads it back.
func (c *copier) copyChunk(ctx context.Context, chunk store.Chunk) (n Count, err error) {
	want, err := readResults(ctx, c.from.Backend.Journals, chunk.ChunkID)
	if err != nil {
		return n, fmt.Errorf("%s: %w", c.from.Name, err)
	}
	has, err := readResults(ctx, c.to.Backend.Journals, chunk.ChunkID)
	if err != nil {
		return n, fmt.Errorf("%s: %w", c.to.Name, err)
	}
	if len(has) > len(want) || !slices.Equal(has, want[:len(has)]) {
		return n, errOther
	}
	n = Count{Total: len(want), Written: len(want) - len(has)}
	for _, r := range want {
		n.Bytes += int64(r.size)
	}
	if n.Written == 0 {
		return n, nil
	}
	if err := c.appendResults(ctx, chunk, len(has)); err != nil {
		return n, err
	}
	if has, err = readResults(ctx, c.to.Backend.Journals, chunk.ChunkID); err != nil {
		return n, fmt.Errorf("%s: %w", c.to.Name, err)
	}
	if !slices.Equal(has, want) {
		return n, fmt.Errorf("%s: other results were read than written; check the medium, and "+
			"copy again", c.to.Name)
	}
	return n, nil
}

// appendResults appends the records of a chunk after the first ones.
func (c *copier) appendResults(ctx context.Context, chunk store.Chunk, skip int) (err error) {
	journal, err := c.to.Backend.Journals.Open(ctx, chunk.ChunkID, chunk.Epoch,
		func(store.Record) {}, func(store.Commit) {})
	if err != nil {
		return fmt.Errorf("%s: %w", c.to.Name, err)
	}
	defer func() { err = errors.Join(err, journal.Close(ctx)) }()
	large, err := c.from.Backend.Journals.Results(ctx, chunk.ChunkID)
	if err != nil {
		return fmt.Errorf("%s: %w", c.from.Name, err)
	}
	defer large.Close()
	err = c.from.Backend.Journals.Read(ctx, chunk.ChunkID,
		func(r store.Record, at store.Location) error {
			if skip--; skip >= 0 {
				return nil
			}
			if at.Length <= store.MaxReadResult {
				return journal.Append(ctx, r)
			}
			// A large record is written at once, and would pass those that are pending.
			if err := journal.Flush(ctx); err != nil {
				return err
			}
			reader := &copied{ctx: ctx, from: large, at: at}
			defer reader.close()
			return journal.AppendFrom(ctx, r, int64(at.Length), reader.open)
		})
	if err == nil {
		err = journal.Flush(ctx)
	}
	return err
}

// readResults reads what identifies the records of a chunk.
func readResults(
	ctx context.Context, journals store.Journals, id store.ChunkID,
) (results []result, err error) {
	var large []store.Location
	var indexes []int
	err = journals.Read(ctx, id, func(r store.Record, at store.Location) error {
		next := result{line: r.Line, failed: r.Failed, attempts: r.Attempts, usage: r.Usage,
			size: at.Length}
		if at.Length <= store.MaxReadResult {
			next.sum = sha256.Sum256(r.Result)
		} else {
			large, indexes = append(large, at), append(indexes, len(results))
		}
		results = append(results, next)
		return nil
	})
	if err != nil || len(large) == 0 {
		return results, err
	}
	reader, err := journals.Results(ctx, id)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	for i, at := range large {
		h := sha256.New()
		if err := reader.Copy(ctx, h, at); err != nil {
			return nil, err
		}
		results[indexes[i]].sum = [sha256.Size]byte(h.Sum(nil))
	}
	return results, nil
}

// copied reads a large result once or several times.
type copied struct {
	ctx  context.Context // of the one call that copied is made for
	from store.Results
	at   store.Location
	pipe *io.PipeReader
	done chan struct{}
}

// open returns a reader of the result from its start, and ends the one before.
func (c *copied) open() io.Reader {
	c.close()
	reader, writer := io.Pipe()
	c.pipe, c.done = reader, make(chan struct{})
	go func() {
		defer close(c.done)
		writer.CloseWithError(c.from.Copy(c.ctx, writer, c.at))
	}()
	return reader
}

func (c *copied) close() {
	if c.pipe != nil {
		c.pipe.Close()
		<-c.done
		c.pipe = nil
	}
}
