package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path"
	"strings"
	"time"
	"unicode"
)

const (
	maxFields     = 100      // parts of a form
	maxFieldBytes = 16 << 10 // of the value of a form's field
	// formOverhead limits what a form has besides its file: boundaries, headers, fields.
	formOverhead = 1 << 20
	maxFilename  = 1024
)

// form reads the parts of a multipart form in their order.
type form struct {
	r      *http.Request
	parts  *formReader
	buffer *[bufferSize]byte
	count  int
}

// readForm begins to read the body of r, of which a file takes up to limit bytes. The form must be
// closed.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request, limit int64) (*form, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || mediaType != "multipart/form-data":
		return nil, invalid("", "", "The request's body must be a form; "+
			"send it with 'Content-Type: multipart/form-data'.")
	case params["boundary"] == "" || len(params["boundary"]) > 70:
		return nil, invalid("", "", "The Content-Type multipart/form-data "+
			"must name its boundary, of 1 to 70 characters.")
	case r.ContentLength > limit+formOverhead:
		return nil, tooLarge("The request has %d bytes; its file may have %d.", r.ContentLength,
			limit)
	}
	allowLongBody(w)
	body := http.MaxBytesReader(w, r.Body, limit+formOverhead)
	buffer := buffers.Get().(*[bufferSize]byte)
	return &form{r: r, parts: newFormReader(body, params["boundary"], buffer[:]), buffer: buffer},
		nil
}

// allowLongBody removes the limit of package httpserver on the time of a body; its minimal rate
// still applies. Other servers have no such limit.
func allowLongBody(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

func (f *form) close() { buffers.Put(f.buffer) }

// next returns the next part, and io.EOF after the last. It skips what was not read of the part
// before.
func (f *form) next() (partHeader, error) {
	part, err := f.parts.next()
	if err == io.EOF {
		return part, io.EOF
	}
	if err != nil {
		return part, f.failure(err)
	}
	if f.count++; f.count > maxFields {
		return part, invalid("", "", "The form has more than %d fields.", maxFields)
	}
	return part, nil
}

// field reads the value of a part that is not a file.
func (f *form) field(part partHeader) (string, error) {
	value, err := io.ReadAll(io.LimitReader(f.parts, maxFieldBytes+1))
	if err != nil {
		return "", f.failure(err)
	}
	if len(value) > maxFieldBytes {
		return "", invalid(part.name, "invalid_value",
			"The field '%s' is over the limit of %d bytes.",
			part.name, maxFieldBytes)
	}
	return string(value), nil
}

// failure returns the answer to a form that could not be read to its end.
func (f *form) failure(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge("The request is over the limit of %d bytes.", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		// before the context, which the server ends with the connection
		return &httpError{
			Status: http.StatusRequestTimeout, Type: invalidRequest, Code: "upload_stalled",
			Message: "The upload made no progress, or was too slow, for too long; send it again.",
		}
	case f.r.Context().Err() != nil:
		return fmt.Errorf("read form: %w", f.r.Context().Err())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("", "", "The form ends before its closing boundary; send it again.")
	}
	return invalid("", "", "The form could not be read: %s.", shortened(err.Error()))
}

// filenameOf returns the base name of a part's file, from a path of any operating system; empty:
// the part has no filename.
func filenameOf(part partHeader) (string, error) {
	// Browsers and the SDKs escape quotes in this way. Nothing else can be unescaped reliably.
	return cleanFilename(strings.ReplaceAll(part.filename, "%22", `"`))
}

// cleanFilename removes directories and control characters.
func cleanFilename(name string) (string, error) {
	name = path.Base(strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), `\`, "/"))
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, name)
	if name == "." || name == "/" || name == ".." {
		return "", nil
	}
	if len(name) > maxFilename {
		return "", invalid("file", "invalid_value",
			"The file's name has %d bytes, the limit is %d.", len(name), maxFilename)
	}
	return name, nil
}
