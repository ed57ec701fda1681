package answercheck

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Fault is why an answer fails.
type Fault struct {
	Rule string // empty: the answer can't be checked at all
	Text string
	// Answer is the text of the choice that fails; empty: it has none.
	Answer string
}

// maxFault limits the bytes of the text of a fault.
const maxFault = 500

func faulty(rule, answer, format string, args ...any) *Fault {
	return &Fault{Rule: rule, Answer: answer, Text: cut(fmt.Sprintf(format, args...), maxFault)}
}

// TooLarge is the fault of an answer that is larger than MaxBody.
func TooLarge(bytes int64) *Fault {
	return faulty("", "", "an answer of %d bytes is too large to be checked; the limit is %d",
		bytes, MaxBody)
}

// String returns the rule and the fault.
func (f *Fault) String() string {
	if f.Rule == "" {
		return f.Text
	}
	return f.Rule + ": " + f.Text
}

// Message returns the text that has the model answer again.
func (f *Fault) Message() string {
	return "Your answer was not accepted. " + f.String() +
		"\nAnswer the original request again, so that this is right. Reply with the answer only."
}

// cut shortens a text to a number of bytes.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
