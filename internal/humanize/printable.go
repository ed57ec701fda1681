package humanize

import (
	"strings"
	"unicode"
)

// Printable returns a text that a terminal shows within its place on a row: characters that
// terminals obey, that end a row or a column, or that change the direction of text are replaced. It
// is for what users and servers wrote, who could forge rows of a table otherwise.
func Printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.In(c, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}
