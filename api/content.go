package api

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/store"
)

func (s *Server) getContent(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	f, err := s.meta.File(r.Context(), tenantOf(r.Context()), id)
	if err != nil {
		return named(err, "File", id)
	}
	return s.serveContent(w, r, f)
}

// serveContent sends the bytes of a file, or the ranges that the client asks for. It ignores the
// header Accept, in which the SDKs send application/binary.
func (s *Server) serveContent(w http.ResponseWriter, r *http.Request, f store.File) error {
	blobs, err := s.blobsOf(f)
	if err != nil {
		return err
	}
	blob, err := blobs.Open(r.Context(), f.BlobKey)
	if err != nil {
		return fmt.Errorf("open file %s: %w", f.ID, err)
	}
	defer blob.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": f.Filename}))
	h.Set("Etag", `"`+f.ID+`"`) // a file never changes, so its id is enough
	out := &rangeResponse{ResponseWriter: w}
	http.ServeContent(out, r, "", time.Time{}, io.NewSectionReader(blob, 0, blob.Size()))
	if out.refused {
		return &httpError{
			Status: http.StatusRequestedRangeNotSatisfiable, Type: invalidRequest,
			Code: "invalid_range",
			Message: fmt.Sprintf("The Range %s is outside the file's %d bytes.",
				quoted(r.Header.Get("Range")), blob.Size()),
		}
	}
	return nil
}

// rangeResponse suppresses http.ServeContent's own answer to a range that it cannot serve.
type rangeResponse struct {
	http.ResponseWriter
	refused bool
}

func (w *rangeResponse) WriteHeader(code int) {
	if w.refused = code == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(code)
	}
}

func (w *rangeResponse) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
