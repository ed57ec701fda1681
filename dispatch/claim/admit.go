package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store"
)

// Admitter cuts new batches into chunks.
type Admitter struct {
	*work.Session
	Metadata   AdmitStore
	Blobs      work.Blobs
	ChunkLines int   // limit of a chunk's lines
	ChunkBytes int64 // limit of their bytes
}

// AdmitStore holds batches and takes their chunks.
type AdmitStore interface {
	work.Batches
	AddChunks(ctx context.Context, batch string, chunks []store.Chunk) error
}

// Admit cuts a new batch into chunks and moves it to in_progress. Every step can be repeated with
// the same result.
func (a *Admitter) Admit(ctx context.Context, b store.Batch) error {
	if err := a.Cut(ctx, &b); err != nil {
		switch {
		case errors.Is(err, store.ErrNotFound):
			return a.failInput(ctx, b, "invalid_input_file",
				"the input file was deleted before the batch started", err)
		case errors.Is(err, batchfile.ErrDamaged):
			return a.failInput(ctx, b, work.CodeDamaged, damagedInput, err)
		}
		return err
	}
	started, is, err := work.ModifyIf(ctx, a.Metadata, b.ID, func(b *store.Batch) bool {
		if b.State != store.Validating {
			return false
		}
		b.State, b.InProgressAt = store.InProgress, time.Now()
		return true
	})
	if err != nil {
		return fmt.Errorf("start batch %s: %w", b.ID, err)
	}
	if is {
		a.Log.InfoContext(ctx, "batch started", started.LogArgs()...)
	}
	return nil
}

// damagedInput is the user's message for an input whose lines can't be found any more.
const damagedInput = "an input file was damaged on the server's disk; upload it again"

// failInput fails a batch whose input can't be read, before any line has run.
func (a *Admitter) failInput(
	ctx context.Context, b store.Batch, code, message string, cause error,
) error {
	failed, is, err := work.ModifyIf(ctx, a.Metadata, b.ID, func(b *store.Batch) bool {
		if b.State != store.Validating {
			return false
		}
		b.State, b.FailedAt = store.Failed, time.Now()
		b.Errors = []batchfile.Fault{{Code: code, Message: message, Param: "input_file_id"}}
		return true
	})
	if is {
		a.Log.WarnContext(ctx, "could not read the input of a batch", "batch_id", b.ID,
			"error", cause)
		a.Ended(ctx, &failed)
	}
	return err
}

// Cut decides the order of a batch's lines and cuts it into chunks.
func (a *Admitter) Cut(ctx context.Context, b *store.Batch) error {
	src, err := work.OpenInputs(ctx, a.Blobs, b) // one that was interrupted may have left an order
	if err != nil {
		return err
	}
	defer src.Close()
	numbers, err := a.orderLines(src, b)
	if err != nil {
		return err
	}
	if err := src.Reorder(ctx, a.Blobs, b.ID, numbers); err != nil {
		return err
	}
	lines := chunkLines(a.ChunkLines, a.Runs.Len())
	chunks, err := cut(src, b, lines, a.ChunkBytes)
	if err != nil {
		return err
	}
	if err := a.Metadata.AddChunks(ctx, b.ID, chunks); err != nil {
		return fmt.Errorf("add chunks of batch %s: %w", b.ID, err)
	}
	return nil
}

const (
	// manyBatches limits the batches that have a chunk of full length in memory. Of more batches,
	// new ones get shorter chunks.
	manyBatches = 64
	// minLines is the length of the shortest chunks, since each chunk takes the store some
	// writes.
	minLines = 64
)

// chunkLines returns the limit of lines of a new batch's chunks. Batches that take turns hold a
// chunk each, so the limit keeps their sum about constant.
func chunkLines(most, batches int) int {
	if batches <= manyBatches {
		return most
	}
	return min(most, max(minLines, most*manyBatches/batches))
}

// orderLines returns the line number of every position; nil if the lines stay in input order.
func (a *Admitter) orderLines(src *work.Source, b *store.Batch) ([]uint32, error) {
	if len(b.Models) <= 1 && b.Options.GroupBy != string(scheduler.GroupPrefix) {
		return nil, nil
	}
	models := map[string]uint16{}
	for i, m := range b.Models {
		models[m.Model] = uint16(i)
	}
	keys := make([]scheduler.LineKey, 0, b.Counts.Total)
	err := src.Each(func(l *work.Line) error {
		keys = append(keys, scheduler.LineKey{Model: models[l.Model()], Prefix: l.PrefixHash()})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return scheduler.OrderLines(keys, b.Options.Canary, scheduler.GroupBy(b.Options.GroupBy)), nil
}

// cut makes chunks of successive lines of one model, within the limits. Canaries get chunks of
// their own.
func cut(src *work.Source, b *store.Batch, maxLines int, maxBytes int64) ([]store.Chunk, error) {
	var chunks []store.Chunk
	var current store.Chunk
	var bytes int64
	position := 0
	end := func() {
		if current.Count > 0 {
			current.ChunkID = store.ChunkID{Batch: b.ID, Index: len(chunks)}
			chunks = append(chunks, current)
		}
	}
	err := src.Each(func(l *work.Line) error {
		size := l.Size()
		if current.Count == 0 || current.Count == maxLines || bytes+size > maxBytes ||
			l.Model() != current.Model || position == b.Options.Canary {
			end()
			current, bytes = store.Chunk{Model: l.Model(), First: position}, 0
		}
		current.Count++
		bytes += size
		position++
		return nil
	})
	end()
	return chunks, err
}
