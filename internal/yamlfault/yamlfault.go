// Package yamlfault finds the lines of a file that errors of the YAML decoder are about.
package yamlfault

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ofParser lists the faults that the decoder's parser finds. It counts lines from 0 in them, and
// from 1 in those of its scanner and of its own.
var ofParser = []string{
	"did not find expected ',' or ']'", "did not find expected ',' or '}'",
	"did not find expected '-' indicator", "did not find expected <document start>",
	"did not find expected <stream-start>", "did not find expected key",
	"did not find expected node content", "found duplicate %TAG directive",
	"found duplicate %YAML directive", "found incompatible YAML document",
	"found undefined tag handle",
}

var (
	withLine      = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?((?s:.*))$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// Of returns the line of a text that an error of decoding it is about, and what is wrong there. An
// error without a line is about the first one, except where the text shows another.
func Of(err error, text []byte) (line int, what string) {
	parts := withLine.FindStringSubmatch(err.Error())
	line, what = 1, parts[2]
	if n, err := strconv.Atoi(parts[1]); err == nil {
		line = n
		if slices.Contains(ofParser, what) {
			line++
		}
		return min(line, lines(text)), what // the end of the text is after its last line
	}
	if anchor := unknownAnchor.FindStringSubmatch(what); anchor != nil {
		if at := bytes.Index(text, []byte("*"+anchor[1])); at >= 0 {
			line = lineAt(text, at)
		}
	} else if at := unreadable(text); at >= 0 {
		line = lineAt(text, at) // found before any other fault, or else another has a line
	}
	return line, what
}

// lines returns the number of lines of a text, 1 at least.
func lines(text []byte) int { return lineAt(text, max(len(text)-1, 0)) }

func lineAt(text []byte, offset int) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }

// unreadable returns the offset of the first character that YAML forbids; -1: there is none.
func unreadable(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' ||
			0x7F <= r && r < 0xA0 && r != 0x85 || r == 0xFFFE || r == 0xFFFF {
			return at
		}
		at += size
	}
	return -1
}
