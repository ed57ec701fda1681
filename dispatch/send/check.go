package send

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/answercheck"
)

// maxChecking limits the answers that are checked at the same time: each takes up to 50 MiB.
const maxChecking = 2

// newChecking returns the places in which answers are checked.
func newChecking() answercheck.Places {
	return answercheck.NewPlaces(max(1, min(maxChecking, runtime.GOMAXPROCS(0)/2)))
}

// check checks a good answer by the rules of the batch. One that fails changes the outcome of the
// line, which is asked again with the fault. The error is the fault.
func (t *transport) check(f *work.Flight, line *work.Line, got *openai.Answer) error {
	check := f.Chunk.Run.Check()
	if check == nil {
		return nil
	}
	defer t.checking.Take(check)()
	fault, err := faultOf(check, line.URL(), got)
	if err != nil { // the file can't be read
		f.Outcome = plan.Evicted
		t.Log.Error("could not read an answer from its file, asking again", "batch_id",
			f.Chunk.Batch, "line", line.Number(), "error", err)
		return err
	}
	if fault == nil {
		return nil
	}
	f.Outcome = plan.CheckFailed
	f.PromptGrowth = line.Reject(fault, got.Usage, &t.Memory.Inputs)
	if len(got.Body) > maxKept {
		got.Body = fmt.Appendf(bytes.Clone(got.Body[:maxKept]),
			"… (cut by tidefill: the answer was longer than %d bytes)", maxKept)
	}
	return errors.New(fault.String())
}

// maxKept limits the bytes that the error file has of an answer.
const maxKept = 64 << 10

// faultOf returns why an answer fails. If the answer is in a file, it reads the body from it, or
// only the beginning of one that is too large.
func faultOf(
	check *answercheck.Check, url string, got *openai.Answer,
) (*answercheck.Fault, error) {
	if got.Large == nil {
		return check.Answer(url, got.Body), nil
	}
	size, tooLarge := got.Large.Size, got.Large.Size > answercheck.MaxBody
	if tooLarge {
		size = maxKept + 1
	}
	got.Body = make([]byte, size)
	if n, err := got.Large.File.ReadAt(got.Body, 0); n < len(got.Body) {
		return nil, fmt.Errorf("read %d bytes: %w", len(got.Body), err)
	}
	if tooLarge {
		return answercheck.TooLarge(got.Large.Size), nil
	}
	return check.Answer(url, got.Body), nil
}
