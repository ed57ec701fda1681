package openai

import (
	"fmt"
	"io"
	"net/http"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Large is an answer in a file: a JSON object in the form that it has in a result line.
type Large struct {
	File File
	Size int64
}

// File is a temporary file that is removed when it is closed. Writes append.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// fill moves the part of a body that the scratch holds to the file, and then the rest of the body.
// It parses each byte once, on the way. While a slow server sends the rest, only a small buffer is
// in use.
func (l *Large) fill(
	response *http.Response, scratch *Scratch, limit int64, lists []string,
) (batchfile.Usage, error) {
	c := largeCopy{response: response, limit: limit,
		checked:   batchfile.NewObjectScanner("usage", lists...),
		kept:      batchfile.NewBodyWriter(l.File),
		beginning: append([]byte(nil), scratch.answer[:min(len(scratch.answer), 200)]...)}
	for held := scratch.answer; len(held) > 0; {
		n := min(len(held), smallAnswer)
		if err := c.add(held[:n]); err != nil {
			return batchfile.Usage{}, err
		}
		held = held[n:]
	}
	scratch.Trim(smallAnswer)
	scratch.grow(smallAnswer)
	buf := scratch.answer[:cap(scratch.answer)]
	for {
		n, err := response.Body.Read(buf)
		if addErr := c.add(buf[:n]); addErr != nil {
			return batchfile.Usage{}, addErr
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return batchfile.Usage{}, fmt.Errorf("read answer: %w", err)
		}
	}
	if !c.checked.Complete() {
		return batchfile.Usage{}, c.wrong(errNoObject)
	}
	if !c.checked.Listed() {
		return batchfile.Usage{}, c.wrong(errNoList)
	}
	if err := c.kept.Close(); err != nil {
		return batchfile.Usage{}, notKept(response, c.total, err)
	}
	l.Size = c.kept.Bytes()
	usage, _ := batchfile.ParseUsage(c.checked.Value())
	return usage, nil
}

// largeCopy checks the pieces of a body and writes them to a file.
type largeCopy struct {
	response  *http.Response
	limit     int64
	total     int64
	beginning []byte
	checked   *batchfile.ObjectScanner
	kept      *batchfile.BodyWriter
}

func (c *largeCopy) add(piece []byte) error {
	if c.total += int64(len(piece)); c.total > c.limit {
		return tooLarge(c.limit)
	}
	if _, err := c.checked.Write(piece); err != nil {
		return c.wrong(errNoObject)
	}
	if _, err := c.kept.Write(piece); err != nil {
		return notKept(c.response, c.total, err)
	}
	return nil
}

func (c *largeCopy) wrong(why error) error {
	return fmt.Errorf("%w; it was at least %d bytes with status %d, beginning %q", why,
		c.total, c.response.StatusCode, c.beginning)
}
