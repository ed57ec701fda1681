package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidefill/tidefill/internal/humanize"
)

// printf writes text for a terminal. What users and servers wrote must be an argument, not part of
// the format: no argument controls the terminal, or leaves its place on its row. It returns no
// error, since a closed pipe ends the process by SIGPIPE.
func printf(w io.Writer, format string, args ...any) {
	for i := range args {
		if _, own := args[i].(colored); !own {
			args[i] = printable{args[i]}
		}
	}
	fmt.Fprintf(w, format, args...)
}

// printable formats a value, and shows the result as printable text.
type printable struct{ value any }

func (p printable) Format(state fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(state, verb), p.value)
	io.WriteString(state, humanize.Printable(text))
}

// printError writes an error, which may have several rows and tabs, after a prefix. Rows after its
// first are indented, so that none looks like a message of its own.
func printError(w io.Writer, prefix string, err error) {
	const indent = "    "
	for i, row := range strings.Split(strings.ReplaceAll(err.Error(), "\t", indent), "\n") {
		if i > 0 && row != "" {
			row = indent + row
		}
		printf(w, "%s%s\n", prefix, row)
		prefix = ""
	}
}
