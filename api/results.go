package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidefill/tidefill/store"
)

const (
	defaultResultPage = 1_000
	maxResultPage     = 10_000
)

// The headers of an answer with results.
const (
	// nextHeader is the cursor for the parameter `after` of the next request.
	nextHeader = "Tidefill-Next"
	// moreHeader is true if that request would return lines now.
	moreHeader = "Tidefill-More"
	// statusHeader is the status of the batch before its results were read. If it is terminal and
	// moreHeader is false, all results were returned.
	statusHeader = "Tidefill-Batch-Status"
)

// batchResults answers GET /v1/batches/{id}/results with the results since the cursor `after`, as
// they will be in the output and error files. Successive calls return each line once, in no
// particular order.
func (s *Server) batchResults(w http.ResponseWriter, r *http.Request) error {
	b, err := s.batch(r)
	if err != nil {
		return err
	}
	values := r.URL.Query()
	limit, err := readLimit(values, defaultResultPage, maxResultPage)
	if err != nil {
		return err
	}
	if b.State.Terminal() && b.Counts.Total > 0 &&
		s.deps.Expiry().Sub(b.EndedAt()) > store.JournalRetention {
		return resultsGone(b)
	}
	chunks, err := s.meta.Chunks(r.Context(), b.ID)
	if err != nil {
		return fmt.Errorf("list chunks of batch %s: %w", b.ID, err)
	}
	position, err := decodeCursor(values.Get("after"), b.ID, len(chunks))
	if err != nil {
		return invalid("after", "invalid_value",
			"Invalid 'after': take it from the header '%s' of an earlier answer about this batch.",
			nextHeader)
	}
	page, more, err := s.finishedLines(r.Context(), chunks, position, limit)
	if err != nil {
		return fmt.Errorf("read results of batch %s: %w", b.ID, err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set(nextHeader, position.encode(b.ID))
	h.Set(moreHeader, strconv.FormatBool(more))
	h.Set(statusHeader, string(b.State))
	return s.writeResults(r.Context(), w, b, page)
}

// finishedLine is the location of the result of a line.
type finishedLine struct {
	chunk store.ChunkID
	at    store.Location
}

// finishedLines returns up to limit results after position, and advances position over them.
func (s *Server) finishedLines(
	ctx context.Context, chunks []store.Chunk, position cursor, limit int,
) (page []finishedLine, more bool, err error) {
	errFull := errors.New("the page is full")
	for i, chunk := range chunks {
		if position[i] == drained {
			continue
		}
		from := position[i]
		err := s.deps.Journals.Read(ctx, chunk.ChunkID,
			func(_ store.Record, at store.Location) error {
				if at.Offset < from {
					return nil
				}
				if len(page) == limit {
					return errFull
				}
				page = append(page, finishedLine{chunk.ChunkID, at})
				position[i] = at.Offset + 1
				return nil
			})
		if errors.Is(err, errFull) {
			return page, true, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("chunk %d: %w", chunk.Index, err)
		}
		if chunk.Done { // it was when its journal was read, so the journal was complete
			position[i] = drained
		}
	}
	return page, false, nil
}

func (s *Server) writeResults(
	ctx context.Context, w http.ResponseWriter, b store.Batch, page []finishedLine,
) error {
	out := bufio.NewWriterSize(w, 64<<10)
	// journal and of belong to the previous line: the lines of a chunk are adjacent in a page.
	var journal store.Results
	var of store.ChunkID
	defer func() {
		if journal != nil {
			journal.Close()
		}
	}()
	for _, line := range page {
		if journal == nil || of != line.chunk {
			next, err := s.deps.Journals.Results(ctx, line.chunk)
			if errors.Is(err, store.ErrNotFound) {
				return resultsGone(b)
			}
			if err != nil {
				return fmt.Errorf("read results of batch %s: %w", b.ID, err)
			}
			if journal != nil {
				journal.Close()
			}
			journal, of = next, line.chunk
		}
		if err := journal.Copy(ctx, out, line.at); err != nil {
			return fmt.Errorf("send a result of batch %s: %w", b.ID, err)
		}
	}
	return out.Flush()
}

// resultsGone returns the answer for a batch whose journals were removed. Its result files remain.
func resultsGone(b store.Batch) *httpError {
	var files []string
	for _, output := range b.Outputs {
		if output.HasOutput {
			files = append(files, output.OutputID)
		}
		if output.HasErrors {
			files = append(files, output.ErrorID)
		}
	}
	return &httpError{
		Status: http.StatusGone,
		Type:   invalidRequest,
		Code:   "results_gone",
		Message: fmt.Sprintf(
			"The batch has ended and its results are no longer available here; read its result "+
				"files (GET /v1/files/{id}/content): %s.",
			strings.Join(files, ", ")),
	}
}
