package dispatch

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// failure is what the error file says of a request that did not succeed.
type failure struct {
	customID  []byte // of the line; it may be part of the line's object
	status    int
	requestID string
	body      []byte
	taken     int64  // bytes of the memory for answers that body takes
	code      string // of an error without an answer
	message   string
}

// shortError is how many bytes of an error's body are kept when memory is short.
const shortError = 1 << 10

// describe returns the failure of a request that ended with this answer or error. It copies the
// body, since the sender reuses its buffer.
func describe(answers *share, outcome plan.Outcome, a openai.Answer, err error) failure {
	if err == nil && outcome != plan.Garbled {
		f := failure{status: a.Status, requestID: a.RequestID}
		switch {
		case len(a.Body) <= shortError:
			f.body = bytes.Clone(a.Body)
		case answers.Take(int64(len(a.Body))):
			f.body, f.taken = bytes.Clone(a.Body), int64(len(a.Body))
		default:
			f.body = fmt.Appendf(nil,
				"%s… (cut by tidefill for lack of memory: the answer was longer than %d bytes)",
				a.Body[:shortError], shortError)
		}
		return f
	}
	message := "the upstream's answer is not a JSON object"
	if a.Object {
		message = "the upstream's answer is none of its endpoint"
	}
	if err != nil {
		message = err.Error()
	}
	code := failureCodes[outcome]
	switch {
	case errors.Is(err, batchfile.ErrDamaged):
		code = codeDamaged
		message += "; upload the file again"
	case code == "":
		code = "not_sent"
	}
	if by := compression(a.Body); err == nil && by != "" {
		message = fmt.Sprintf("the upstream's answer is compressed (%s), which nothing asked for; "+
			"have the server, or the proxy before it, answer without compression", by)
	} else if err == nil && len(a.Body) > 0 {
		message = fmt.Sprintf("%s; it was %d bytes with status %d, beginning %q", message,
			len(a.Body), a.Status, a.Body[:min(len(a.Body), 200)])
	}
	return failure{code: code, message: message}
}

// compression returns how a body is compressed, by its first bytes; empty: not, or not known.
func compression(body []byte) string {
	for by, first := range map[string]string{"gzip": "\x1f\x8b", "zstd": "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(body, []byte(first)) {
			return by
		}
	}
	return ""
}

// codeDamaged is for input that changed on the disk after its upload.
const codeDamaged = "input_damaged"

var failureCodes = map[plan.Outcome]string{
	plan.Garbled: "invalid_upstream_answer", plan.TooLong: "invalid_upstream_answer",
	plan.TimedOut: "upstream_timeout",
	plan.Died:     "upstream_connection_lost", plan.Unreachable: "upstream_unreachable",
}

// shedTooOften is the failure of a line that the planner gave up because its runners shed it again
// and again.
func (a failure) shedTooOften() failure {
	return failure{customID: a.customID, taken: a.taken, code: "shed_too_often",
		message: fmt.Sprintf(
			"this request was answered %d again and again while others of its model "+
				"were served, more often than dispatch.retry.tuning.sheds allows; the last "+
				"answer was %q",
			a.status, a.body[:min(len(a.body), 200)])}
}
