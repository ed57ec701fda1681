package work

import (
	"github.com/tidefill/tidefill/internal/answercheck"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// rejected is what answers of a line leave that have failed the check of its batch.
type rejected struct {
	usage batchfile.Usage // of all of them
	// turns are the last answer and what is wrong with it, as messages for the next request. Nil:
	// the line is sent as it is.
	turns []byte
}

// maxRepeated limits the bytes of an answer that is repeated to the model.
const maxRepeated = 32 << 10

func compileCheck(rules *store.AnswerRules) (*answercheck.Check, error) {
	if rules == nil {
		return nil, nil
	}
	return answercheck.Compile(answercheck.Rules(*rules))
}

// Reject notes an answer that has failed the check, and its usage. The next request repeats the
// answer and says what is wrong with it, if the line and memory permit. growth is the number of
// tokens by which its prompt is longer. Only the line's sender calls it.
func (l *Line) Reject(fault *answercheck.Fault, usage batchfile.Usage, in *Share) (growth int) {
	if l.rejected == nil {
		l.rejected = &rejected{}
	}
	l.rejected.usage.Add(usage)
	before := len(l.rejected.turns)
	l.AskPlainly(in)
	if fault.Answer == "" || len(fault.Answer) > maxRepeated || l.object == nil {
		return growthOf(-before)
	}
	turns := batchfile.AppendTurn(nil, "assistant", fault.Answer)
	turns = batchfile.AppendTurn(turns, "user", fault.Message())
	if in.Take(int64(len(turns))) {
		l.rejected.turns = turns
	}
	return growthOf(len(l.rejected.turns) - before)
}

func growthOf(bytes int) int { return int(float64(bytes) / bytesPerToken) }

// AskPlainly has the line sent as it is from now on. It reports whether it was not before.
func (l *Line) AskPlainly(inputs *Share) bool {
	if l.rejected == nil || l.rejected.turns == nil {
		return false
	}
	inputs.Give(int64(len(l.rejected.turns)))
	l.rejected.turns = nil
	return true
}

// WithRejected returns a usage with that of the answers that have failed the check.
func (l *Line) WithRejected(usage batchfile.Usage) batchfile.Usage {
	if l.rejected != nil {
		usage.Add(l.rejected.usage)
	}
	return usage
}

// asked returns the body of a request with the messages about the last answer.
func (l *Line) asked(body []byte) []byte {
	if l.rejected != nil && l.rejected.turns != nil {
		if longer, ok := batchfile.AppendTurns(body, l.URL(), l.rejected.turns); ok {
			return longer
		}
	}
	return body
}
