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

// ErrNotAssembled reports that a stream was not understood well enough to be sure what the answer
// would have been without streaming.
var ErrNotAssembled = errors.New("the stream can't be assembled")

// ErrBrokenOff comes with ErrNotAssembled when the server reported an error within the stream, and
// not as a status before it. The next stream may succeed.
var ErrBrokenOff = errors.New("the server reported an error without a status within the stream")

var (
	errIncomplete = fmt.Errorf("the stream broke off: %w", io.ErrUnexpectedEOF)
	errNoEvent    = fmt.Errorf("%w: an event is no JSON object", ErrNotAssembled)
)

// Watch receives an answer's tokens as they come. Send calls the functions in its goroutine.
type Watch struct {
	// First is called when the first token comes.
	First func()
	// More is called for each further event with tokens: their number, and the time since the event
	// before.
	More func(tokens int, after time.Duration)
}

// StreamParameters returns the members of a body that make its answer a stream with the usage at
// its end. ok is false for endpoints whose answers can't be streamed.
func StreamParameters(path string) (parameters map[string]string, ok bool) {
	endpoint, known := batchfile.LookupEndpoint(path)
	if !known || !endpoint.Streams {
		return nil, false
	}
	if path == responsesPath {
		return map[string]string{"stream": "true"}, true // these always have the usage
	}
	return map[string]string{"stream": "true", "stream_options": `{"include_usage":true}`}, true
}

// HindersStream returns a function that reports whether a line of that endpoint must not be
// streamed if its body has a member: the user has stream options already, or asks for what servers
// answer only without streaming, or only then without faults.
func HindersStream(path string) func(member string) bool {
	return func(member string) bool {
		switch member {
		case "stream_options", // the user's own
			"audio": // comes in pieces that can't be joined
		case "prompt_logprobs", "kv_transfer_params": // vLLM refuses the first, lacks the second
		case "return_prompt_token_ids", "return_meta_info": // SGLang leaves them out
		case "logprobs":
			// Versions of vLLM (issue 37737) and SGLang (28456) lose those of reasoning and tool
			// calls. Of an event's tokens, SGLang has the top_logprobs of the first for all.
			return path == chatPath
		default:
			return false
		}
		return true
	}
}

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
)

// assembly makes the answer that the server would have given without streaming of a stream's
// events.
type assembly interface {
	// add takes the next event and returns the number of tokens that it brought. It parses the
	// event once.
	add(event []byte) (tokens int, err error)
	// finish appends the answer's body to dst. It returns errIncomplete if events are missing.
	finish(dst []byte) (assembled, error)
}

// assembled is an answer that was assembled from a stream: a JSON object by construction.
type assembled struct {
	body  []byte
	usage batchfile.Usage
	texts int // that usage counts; 0: there is no usage
}

func newAssembly(path string, memory *streamMemory) assembly {
	switch path {
	case responsesPath:
		return &responses{memory: memory}
	case chatPath:
		return newChunks(chatFields, memory)
	default:
		return newChunks(completionFields, memory)
	}
}

// reportedError is an error that a server reported within a stream, with the status that it would
// have answered with otherwise.
type reportedError struct {
	status int
	body   []byte
}

func (e *reportedError) Error() string {
	return fmt.Sprintf("the stream ended with an error of status %d", e.status)
}

// errorOf reads an event that reports an error, described by the object value. Without a status
// nobody can say what the answer would have been.
func errorOf(event, value []byte) error {
	c := batchfile.NewCursor(value)
	for o := c.Object(); o.Next(); {
		if key := string(o.Key()); key == "code" || key == "status" {
			if status, err := strconv.Atoi(string(c.Skip())); err == nil && status >= 400 &&
				status < 600 {
				return &reportedError{status: status, body: append([]byte(nil), event...)}
			}
		}
	}
	return fmt.Errorf("%w: %w", ErrNotAssembled, ErrBrokenOff)
}

func isStream(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && strings.EqualFold(media, "text/event-stream")
}

// readStream reads a stream to its end and assembles the answer in the scratch.
func (c *Client) readStream(
	r Request, response *http.Response, scratch *Scratch, a *Answer,
) error {
	memory := &streamMemory{limit: c.maxAnswer(r.Path), memory: scratch.Memory}
	defer memory.close()
	to := newAssembly(r.Path, memory)
	err := assemble(limitStream(response.Body, memory.limit), memory, to, r.Watch)
	if reported := (*reportedError)(nil); errors.As(err, &reported) {
		a.Status, a.Body = reported.status, reported.body
		return nil
	}
	var answer assembled
	if err == nil {
		answer, err = to.finish(scratch.answer[:0])
	}
	if err == nil && !scratch.adopt(answer.body) {
		err = errTooLong
	}
	if err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	a.Body, a.Usage, a.Texts = answer.body, answer.usage, answer.texts
	a.Object, a.Listed = true, true
	return nil
}

// assemble gives all events of a stream to the assembly, and reports their tokens.
func assemble(from io.Reader, memory *streamMemory, to assembly, watch *Watch) error {
	in := newEvents(from, memory)
	var before time.Time // when the last tokens came
	for {
		event, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		tokens, err := to.add(event)
		if in.cut && errors.Is(err, errNoEvent) {
			return errIncomplete // the end of the event is missing; its form is not strange
		}
		if err != nil {
			return err
		}
		if tokens == 0 {
			continue
		}
		now := time.Now()
		if before.IsZero() {
			watch.First()
		} else {
			watch.More(tokens, now.Sub(before))
		}
		before = now
	}
}
