package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/tidefill/tidefill/internal/humanize"
)

// screen is what a command prints to, as far as the form of its output depends on it.
type screen struct {
	terminal bool // a person reads along: rows may be written over
	colors   bool // text may have colors
	columns  int  // of the terminal; 0: unknown
}

// screenOf returns what a writer prints to. NO_COLOR (no-color.org) and TERM=dumb turn colors off.
func screenOf(w io.Writer) screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // descriptors are small
		return screen{}
	}
	columns, _, err := term.GetSize(int(f.Fd())) //nolint:gosec // the same
	if err != nil {
		columns = 0
	}
	dumb := os.Getenv("TERM") == "dumb"
	return screen{!dumb, !dumb && os.Getenv("NO_COLOR") == "", columns}
}

// color is a color of text on a terminal.
type color int

const (
	plain  color = 39 // the terminal's own
	red    color = 31
	green  color = 32
	yellow color = 33
)

// paint is a text with a color. Its format is the text alone where there are no colors.
func (s screen) paint(c color, text string) colored {
	if !s.colors {
		c = 0
	}
	return colored{color: c, text: text}
}

// over returns the text such that it replaces the row where the cursor is.
func (c colored) over() colored {
	c.replaces = true
	return c
}

// colored is a text in a color; 0: without codes. All codes have the same length, so the cells of a
// column of a table stay aligned if all of them are colored.
type colored struct {
	color    color
	text     string
	replaces bool // the row where the cursor is
}

// Format implements fmt.Formatter.
func (c colored) Format(state fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(state, verb), humanize.Printable(c.text))
	if c.color != 0 {
		text = fmt.Sprintf("\x1b[%dm%s\x1b[0m", c.color, text)
	}
	if c.replaces {
		text = "\r\x1b[2K" + text
	}
	io.WriteString(state, text)
}
