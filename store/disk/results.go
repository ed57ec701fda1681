package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// resultsWindow is the number of bytes of a journal that are read at once. Results are nearly in
// the order of the input, so a reader in input order finds most of them in the present window.
const resultsWindow = 128 << 10

// results reads a journal through a window.
type results struct {
	id     store.ChunkID
	file   file
	window []byte // the bytes of the file at from
	from   int64
}

// Results implements [store.Journals].
func (js *Journals) Results(ctx context.Context, id store.ChunkID) (store.Results, error) {
	path, err := js.path(id)
	if err == nil {
		err = ctx.Err()
	}
	var f file
	if err == nil {
		f, err = js.store.openFile(path, os.O_RDONLY)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal %d of batch %s for its results: %w", id.Index,
			id.Batch, err)
	}
	return &results{id: id, file: f}, nil
}

// Copy implements [store.Results].
func (r *results) Copy(ctx context.Context, w io.Writer, at store.Location) error {
	if err := r.copy(ctx, w, at); err != nil {
		return fmt.Errorf("copy result from journal %d of batch %s: %w", r.id.Index, r.id.Batch,
			err)
	}
	return nil
}

func (r *results) copy(ctx context.Context, w io.Writer, at store.Location) error {
	if at.Length > frame.MaxResult {
		return frame.ErrTooLarge
	}
	end := at.Offset + int64(at.Length)
	for from := at.Offset; from < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(end-from, resultsWindow/2)
		piece, err := r.around(from, n)
		if err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// around returns n bytes from an offset on, half a window at most. If the present window does not
// have all of them, it reads one that starts a little earlier.
func (r *results) around(offset, n int64) ([]byte, error) {
	end := offset + n
	if offset < r.from || end > r.from+int64(len(r.window)) {
		if cap(r.window) == 0 {
			r.window = make([]byte, 0, resultsWindow)
		}
		r.from = max(0, offset-resultsWindow/4) // for lines that were answered a little earlier
		n, err := r.file.ReadAt(r.window[:resultsWindow], r.from)
		r.window = r.window[:n]
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if end > r.from+int64(n) {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return r.window[offset-r.from : end-r.from], nil
}

// Close implements [store.Results].
func (r *results) Close() error { return r.file.Close() }
