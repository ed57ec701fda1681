package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidefill/tidefill/store"
)

// resultsWindow is how much of a journal is read at once. Results stand nearly in the order of the input, so that a
// reader in input order finds most of them in the window that it has.
const resultsWindow = 128 << 10

// results reads a journal through a window.
type results struct {
	id     store.ChunkID
	file   file
	window []byte // what was read at from
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
		f, err = js.store.opts.openFile(path, os.O_RDONLY)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal %d of batch %s for its results: %w", id.Index, id.Batch, err)
	}
	return &results{id: id, file: f}, nil
}

// Append implements [store.Results].
func (r *results) Append(dst []byte, at store.Location) ([]byte, error) {
	if at.Length > maxResult {
		return dst, fmt.Errorf("read result from journal %d of batch %s: %w", r.id.Index, r.id.Batch, errTooLarge)
	}
	window, err := r.around(at)
	if err != nil {
		return dst, fmt.Errorf("read result from journal %d of batch %s: %w", r.id.Index, r.id.Batch, err)
	}
	return append(dst, window...), nil
}

// around returns the bytes at a location, reading a window that begins a little before it if the present one has not all of them.
func (r *results) around(at store.Location) ([]byte, error) {
	end := at.Offset + int64(at.Length)
	if at.Offset < r.from || end > r.from+int64(len(r.window)) {
		if cap(r.window) == 0 {
			r.window = make([]byte, 0, resultsWindow)
		}
		if int(at.Length) > resultsWindow/2 {
			long := make([]byte, at.Length)
			_, err := r.file.ReadAt(long, at.Offset)
			return long, err
		}
		r.from = max(0, at.Offset-resultsWindow/4) // lines that were answered a little early
		n, err := r.file.ReadAt(r.window[:resultsWindow], r.from)
		r.window = r.window[:n]
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if end > r.from+int64(n) {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return r.window[at.Offset-r.from : end-r.from], nil
}

// Close implements [store.Results].
func (r *results) Close() error { return r.file.Close() }
