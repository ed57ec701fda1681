package segments

import (
	"context"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// results reads results by location, from the pieces of the journal.
type results struct{ reader *reader }

// Results implements [store.Journals].
func (js *Journals) Results(ctx context.Context, id store.ChunkID) (store.Results, error) {
	r, err := js.reader(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("open journal %d of batch %s for its results: %w", id.Index,
			id.Batch, err)
	}
	return r.results()
}

func (r *reader) results() (store.Results, error) {
	if len(r.ranges) == 0 {
		return nil, fmt.Errorf("open journal %d of batch %s for its results: %w", r.id.Index,
			r.id.Batch, store.ErrNotFound)
	}
	return &results{r}, nil
}

// Copy implements [store.Results].
func (r *results) Copy(ctx context.Context, w io.Writer, at store.Location) error {
	if err := r.copy(ctx, w, at); err != nil {
		return fmt.Errorf("copy result from journal %d of batch %s: %w", r.reader.id.Index,
			r.reader.id.Batch, err)
	}
	return nil
}

func (r *results) copy(ctx context.Context, w io.Writer, at store.Location) error {
	if at.Length > frame.MaxResult {
		return frame.ErrTooLarge
	}
	for from, end := at.Offset, at.Offset+int64(at.Length); from < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if from >= r.reader.size() { // it was appended after Results
			if err := r.reader.refresh(ctx); err != nil {
				return err
			}
		}
		data, _, err := r.reader.load(ctx, from)
		if err != nil {
			return err
		}
		data = data[:min(int64(len(data)), end-from)]
		if _, err := w.Write(data); err != nil {
			return err
		}
		from += int64(len(data))
	}
	return nil
}

// Close implements [store.Results].
func (r *results) Close() error { return nil }
