package openai

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Watch hears of an answer's tokens as they come. The functions are called by Send's goroutine.
type Watch struct {
	// First is called when the first token comes.
	First func()
	// More is called for each further sign of life: so many tokens came, so long after the tokens
	// before.
	More func(tokens int, after time.Duration)
}

// StreamParameters are the members of a body that make its answer a stream, with the usage told at
// its end. ok is false where answers can't be streamed.
func StreamParameters(path string) (parameters map[string]string, ok bool) {
	endpoint, known := batchfile.LookupEndpoint(path)
	if !known || !endpoint.Streams {
		return nil, false
	}
	if path == responsesPath {
		return map[string]string{"stream": "true"}, true // usage is told anyway
	}
	return map[string]string{"stream": "true", "stream_options": `{"include_usage":true}`}, true
}

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
)

// assembly puts events together.
type assembly interface {
	// add takes the next event and tells how many tokens it brought.
	add(event []byte) (tokens int, err error)
	// whole appends the answer; errCut means that it isn't whole yet.
	whole(dst []byte) ([]byte, error)
}

func newAssembly(path string, in *room) assembly {
	switch path {
	case responsesPath:
		return &response{room: in}
	case chatPath:
		return newChunks(chatFields, in)
	default:
		return newChunks(completionFields, in)
	}
}

var errCut = fmt.Errorf("the stream broke off: %w", io.ErrUnexpectedEOF)

// failed is an error that a server told within a stream, with the status that it would have
// answered with otherwise.
type failed struct {
	status int
	body   []byte
}

func (f *failed) Error() string {
	return fmt.Sprintf("the stream ended with an error of status %d", f.status)
}

// failure reads an error event, whose member error is value. Without a status nobody can say what
// the answer would have been.
func failure(event, value []byte) error {
	for name, code := range batchfile.Members(value) {
		if status, err := strconv.Atoi(string(code)); (name == "code" || name == "status") &&
			err == nil && status >= 400 && status < 600 {
			return &failed{status: status, body: append([]byte(nil), event...)}
		}
	}
	return fmt.Errorf("%w: %w", ErrUnjoined, ErrBrokenOff)
}

// ErrBrokenOff comes with ErrUnjoined when the server told an error within the stream instead of a
// status before it. That says nothing against streaming.
var ErrBrokenOff = errors.New("the server told an error without a status within the stream")

func isStream(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && strings.EqualFold(media, "text/event-stream")
}

// readStream reads a stream to its end and puts it together in the scratch.
func (c *Client) readStream(
	r Request, response *http.Response, scratch *Scratch,
) (status int, body []byte, err error) {
	room := &room{most: c.maxAnswer(r.Path), memory: scratch.Memory}
	defer room.close()
	in := newEvents(response.Body, room)
	to := newAssembly(r.Path, room)
	var before time.Time // when the last tokens came
	for {
		event, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return response.StatusCode, nil, fmt.Errorf("read stream: %w", err)
		}
		tokens, err := to.add(event)
		if told := (*failed)(nil); errors.As(err, &told) {
			return told.status, told.body, nil
		}
		if err != nil {
			return response.StatusCode, nil, fmt.Errorf("read stream: %w", err)
		}
		if tokens == 0 {
			continue
		}
		now := time.Now()
		if before.IsZero() {
			r.Watch.First()
		} else {
			r.Watch.More(tokens, now.Sub(before))
		}
		before = now
	}
	body, err = to.whole(scratch.answer[:0])
	if err == nil && !scratch.adopt(body) {
		err = errTooLong
	}
	if err != nil {
		return response.StatusCode, nil, fmt.Errorf("read stream: %w", err)
	}
	return response.StatusCode, body, nil
}
