package plan

import "strings"

// texts is made once: dispatchers ask for each batch, several times a second.
var texts = func() map[Reason]string {
	made := map[Reason]string{}
	for _, e := range Explanations() {
		made[e.Reason] = because(e, e.Meaning)
	}
	return made
}()

// Text returns what users see of a reason: its name, its meaning and the remedy. One that nobody
// has worded stays as it is.
func (r Reason) Text() string {
	if text, worded := texts[r]; worded {
		return text
	}
	return string(r)
}

// Because returns the text of a reason with a sentence about this case instead of its meaning.
func (r Reason) Because(sentence string) string { return because(Explain(r), sentence) }

// because omits the marks of code, since the text is not a page.
func because(e Explanation, sentence string) string {
	text := strings.TrimSpace(string(e.Reason) + ": " + sentence + " " + e.Remedy)
	return strings.ReplaceAll(text, "`", "")
}

// ReasonOf returns the reason of a text.
func ReasonOf(text string) Reason {
	code, _, _ := strings.Cut(text, ":")
	return Reason(code)
}
