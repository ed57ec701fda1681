package send

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// shortError is the number of bytes that are kept of an error's body when memory is short.
const shortError = 1 << 10

// describe returns the failure of a request that ended with this answer or error. It copies the
// body, since the sender reuses its buffer.
func describe(answers *work.Share, outcome plan.Outcome, a openai.Answer, err error) work.Failure {
	if err == nil && outcome != plan.Garbled || outcome == plan.CheckFailed {
		f := work.Failure{Status: a.Status, RequestID: a.RequestID}
		if err != nil {
			f.Code, f.Message = work.FailureCodes[outcome], err.Error()
		}
		switch {
		case len(a.Body) <= shortError:
			f.Body = bytes.Clone(a.Body)
		case answers.Take(int64(len(a.Body))):
			f.Body, f.Taken = bytes.Clone(a.Body), int64(len(a.Body))
		default:
			f.Body = fmt.Appendf(nil,
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
	code := work.FailureCodes[outcome]
	switch {
	case errors.Is(err, batchfile.ErrDamaged):
		code = work.CodeDamaged
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
	return work.Failure{Code: code, Message: message}
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
