package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/textproto"
)

// A formReader takes a multipart body (RFC 2046) apart, front to back. It does what
// mime/multipart's Reader does in steps of 4 KiB in steps of its large buffer, which makes an
// upload's share of the processor a good deal smaller, and gives a part's header far less memory.
type formReader struct {
	src       io.Reader
	err       error // of src; sticks
	delimiter []byte

	buf    []byte
	lo, hi int // buf[lo:hi] has been read from src and not been given out

	content int  // so many bytes from lo on are known to belong to the part
	ended   bool // and what follows them is the delimiter
}

// partHeader is what we read of a part's header.
type partHeader struct {
	name, filename string
}

const (
	maxPartHeader = 16 << 10
	crlf          = "\r\n"
)

var (
	errPartHeader = errors.New("a part's header is longer than 16384 bytes")
	errBoundary   = errors.New("a boundary is followed by neither a line's end nor '--'")
)

// newFormReader reads src through buf, which must be larger than the header of a part.
func newFormReader(src io.Reader, boundary string, buf []byte) *formReader {
	f := &formReader{src: src, delimiter: []byte(crlf + "--" + boundary), buf: buf}
	f.hi = copy(buf, crlf) // the first delimiter stands at the start of a line, too
	return f
}

// next goes on to the next part. After the last one it returns io.EOF; a body that ends before its
// closing boundary is io.ErrUnexpectedEOF.
func (f *formReader) next() (partHeader, error) {
	if err := f.skip(); err != nil {
		return partHeader{}, err
	}
	f.lo += len(f.delimiter)
	f.ended = false
	line, err := f.readThrough([]byte("\n"))
	switch {
	case err != nil && bytes.HasPrefix(f.buf[f.lo:f.hi], []byte("--")),
		bytes.HasPrefix(line, []byte("--")):
		return partHeader{}, io.EOF
	case err != nil:
		return partHeader{}, err
	case len(bytes.TrimRight(line, " \t\r\n")) > 0:
		return partHeader{}, errBoundary
	}
	return f.header()
}

// header reads the header of a part, up to the empty line at its end.
func (f *formReader) header() (partHeader, error) {
	if err := f.ensure(len(crlf)); err != nil {
		return partHeader{}, err
	}
	text := []byte(crlf)
	if !bytes.HasPrefix(f.buf[f.lo:f.hi], text) {
		var err error
		if text, err = f.readThrough([]byte(crlf + crlf)); err != nil {
			return partHeader{}, err
		}
	} else {
		f.lo += len(crlf)
	}
	fields, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil {
		return partHeader{}, err
	}
	// Some write an empty part without the line's end that belongs to its delimiter; the header's
	// does for both.
	if err := f.ensure(len(f.delimiter)); err == nil {
		rest, ok := bytes.CutPrefix(f.buf[f.lo:f.hi], f.delimiter[len(crlf):])
		if ok && endsBoundary(rest) {
			f.lo -= len(crlf)
		}
	}
	disposition, params, err := mime.ParseMediaType(fields.Get("Content-Disposition"))
	if err != nil || disposition != "form-data" {
		return partHeader{}, nil // nobody asked for it, so it is skipped
	}
	return partHeader{params["name"], params["filename"]}, nil
}

// Read reads the content of the part.
func (f *formReader) Read(p []byte) (int, error) {
	if err := f.advance(); err != nil {
		return 0, err
	}
	if f.content == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.buf[f.lo:f.lo+f.content])
	f.lo += n
	f.content -= n
	return n, nil
}

// skip drops what is left of the part.
func (f *formReader) skip() error {
	for {
		if err := f.advance(); err != nil {
			return err
		}
		if f.content == 0 {
			return nil
		}
		f.lo += f.content
		f.content = 0
	}
}

// advance makes sure that some content is known, or that the part has ended.
func (f *formReader) advance() error {
	for f.content == 0 && !f.ended {
		if f.search(); f.content > 0 || f.ended {
			break
		}
		if err := f.fill(); err != nil {
			return err
		}
	}
	return nil
}

// search finds out how much of the buffer is content. What may turn out to be a delimiter isn't.
func (f *formReader) search() {
	window := f.buf[f.lo:f.hi]
	for from := 0; ; {
		i := bytes.Index(window[from:], f.delimiter)
		if i < 0 {
			f.content = len(window) - f.partialDelimiter(window[from:])
			return
		}
		at := from + i
		rest := window[at+len(f.delimiter):]
		if len(rest) < len("--") && string(rest) == "--"[:len(rest)] { // too early to tell
			f.content = at
			return
		}
		if endsBoundary(rest) {
			f.content, f.ended = at, true
			return
		}
		from = at + 1
	}
}

// endsBoundary reports whether a boundary ends before rest, and isn't the beginning of some longer
// text.
func endsBoundary(rest []byte) bool {
	return bytes.HasPrefix(rest, []byte("--")) || len(rest) > 0 &&
		bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0
}

// partialDelimiter is how many of the last bytes may be the beginning of a delimiter.
func (f *formReader) partialDelimiter(window []byte) int {
	window = window[max(0, len(window)-len(f.delimiter)+1):]
	for {
		i := bytes.IndexByte(window, '\r')
		if i < 0 {
			return 0
		}
		if window = window[i:]; bytes.HasPrefix(f.delimiter, window) {
			return len(window)
		}
		window = window[1:]
	}
}

// readThrough gives out the bytes up to and including end.
func (f *formReader) readThrough(end []byte) ([]byte, error) {
	for {
		if i := bytes.Index(f.buf[f.lo:f.hi], end); i >= 0 && i+len(end) <= maxPartHeader {
			text := f.buf[f.lo : f.lo+i+len(end)]
			f.lo += len(text)
			return text, nil
		}
		if f.hi-f.lo >= maxPartHeader {
			return nil, errPartHeader
		}
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
}

// ensure reads until n bytes are there.
func (f *formReader) ensure(n int) error {
	for f.hi-f.lo < n {
		if err := f.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads from the source. What is in the buffer moves to its front, but for two bytes, so that
// lo may go back by them.
func (f *formReader) fill() error {
	if f.err != nil {
		return f.err
	}
	if keep := max(0, f.lo-len(crlf)); keep > 0 {
		copy(f.buf, f.buf[keep:f.hi])
		f.lo, f.hi = f.lo-keep, f.hi-keep
	}
	n, err := f.src.Read(f.buf[f.hi:])
	f.hi += n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the closing boundary was still to come
	}
	f.err = err
	if n > 0 {
		return nil
	}
	return err
}
