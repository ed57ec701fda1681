package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	maxFields     = 100      // parts of a form
	maxFieldBytes = 16 << 10 // of the value of a form's field
	maxPartHeader = 16 << 10 // of the header of a part; up to 8 KiB more may be accepted
	// formOverhead limits what a form has besides its file: boundaries, headers, fields.
	formOverhead = 1 << 20
	maxFilename  = 1024
)

// form reads the parts of a multipart form in their order.
type form struct {
	r     *http.Request
	body  *formBody
	parts *multipart.Reader
	part  *multipart.Part // the current one; nil: before the first
	count int
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
	body := newFormBody(http.MaxBytesReader(w, r.Body, limit+formOverhead))
	return &form{r: r, body: body, parts: multipart.NewReader(body, params["boundary"])}, nil
}

// allowLongBody removes the limit of package httpserver on the time of a body; its minimal rate
// still applies. Other servers have no such limit.
func allowLongBody(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

func (f *form) close() { f.body.close() }

// next returns the name of the next part, and io.EOF after the last. It skips what was not read of
// the part before. The name is empty if the part is not a field.
func (f *form) next() (name string, err error) {
	if f.part != nil {
		if _, err := io.Copy(io.Discard, f.part); err != nil {
			return "", f.failure(err)
		}
	}
	f.body.limitHeader(true)
	f.part, err = f.parts.NextRawPart()
	f.body.limitHeader(false)
	if err == io.EOF {
		return "", io.EOF
	}
	if err != nil {
		return "", f.failure(err)
	}
	if f.count++; f.count > maxFields {
		return "", invalid("", "", "The form has more than %d fields.", maxFields)
	}
	return f.part.FormName(), nil
}

// field reads the value of the current part, which is not a file.
func (f *form) field() (string, error) {
	value, err := io.ReadAll(io.LimitReader(f.part, maxFieldBytes+1))
	if err != nil {
		return "", f.failure(err)
	}
	if len(value) > maxFieldBytes {
		name := f.part.FormName()
		return "", invalid(name, "invalid_value", "The field '%s' is over the limit of %d bytes.",
			name, maxFieldBytes)
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
	case f.body.ended || errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("", "", "The form ends before its closing boundary; send it again.")
	}
	return invalid("", "", "The form could not be read: %s.", shortened(err.Error()))
}

// filename returns the base name of the current part's file, from a path of any operating system;
// empty: the part has no filename.
func (f *form) filename() (string, error) {
	// Browsers and the SDKs escape quotes in this way. Nothing else can be unescaped reliably.
	return cleanFilename(strings.ReplaceAll(f.part.FileName(), "%22", `"`))
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

// formBody is the body of a form for multipart.Reader, which would read 4 KiB at a time, accept
// headers of 10 MB, and take the end of the body in a header for the end of the form.
type formBody struct {
	src *bufio.Reader
	// left is the number of bytes that may be read before a part's header ends; negative: any.
	left  int
	ended bool   // src has ended
	end   string // what still follows it
}

var (
	formReaders   = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}
	errPartHeader = fmt.Errorf("the header of a part is longer than %d bytes", maxPartHeader)
)

func newFormBody(body io.Reader) *formBody {
	src := formReaders.Get().(*bufio.Reader)
	src.Reset(body)
	return &formBody{src: src, left: -1, end: "\r\n"}
}

func (b *formBody) close() {
	b.src.Reset(nil)
	formReaders.Put(b.src)
}

// limitHeader begins or ends the reading of a part's header. The boundary before the header and
// what multipart.Reader reads ahead also count.
func (b *formBody) limitHeader(on bool) {
	b.left = -1
	if on {
		b.left = maxPartHeader + 4<<10
	}
}

// Read implements io.Reader. A line end follows the body, because a closing boundary needs none.
func (b *formBody) Read(p []byte) (n int, err error) {
	switch {
	case b.left == 0:
		return 0, errPartHeader
	case b.left > 0:
		p = p[:min(len(p), b.left)]
	}
	if n, err = b.src.Read(p); err == io.EOF {
		b.ended = true
		if n, err = copy(p, b.end), nil; n == 0 {
			err = io.ErrUnexpectedEOF
		}
		b.end = b.end[n:]
	}
	if b.left > 0 {
		b.left -= n
	}
	return n, err
}
