package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/internal/strictyaml"
)

// The values of --output. Without one, a command prints text for people.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatWide = "wide" // a table with all columns
	formatName = "name" // names or ids only
)

var (
	objectFormats = []string{formatJSON, formatYAML}
	tableFormats  = []string{formatJSON, formatYAML, formatWide, formatName}
)

// output is the form in which a command prints objects.
type output struct {
	format string // empty: text for people
	json   bool   // --json, which is --output json
	quiet  bool   // --quiet, which is --output name

	formats []string // that the command has
	printed int      // objects as YAML, which rows of dashes separate
}

// register registers the flags of a command that has these formats.
func (o *output) register(cmd *cobra.Command, formats []string) {
	o.formats = formats
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", "",
		"the `format`: "+strings.Join(formats, ", ")+" (default: text)")
	flags.BoolVar(&o.json, "json", false, "the same as -o json: one object per row")
	if slices.Contains(formats, formatName) {
		flags.BoolVarP(&o.quiet, "quiet", "q", false, "the same as -o name: names or ids only")
	}
	completeFlags(cmd, map[string][]string{"output": formats})
}

// check settles the format, or returns a usage error.
func (o *output) check() error {
	for _, f := range []struct {
		flag, format string
		given        bool
	}{{"--json", formatJSON, o.json}, {"--quiet", formatName, o.quiet}} {
		if !f.given {
			continue
		}
		if o.format != "" && o.format != f.format {
			return usageErrorf("%s and --output %s exclude each other", f.flag, o.format)
		}
		o.format = f.format
	}
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return usageErrorf("--output is %q; give one of %s", o.format,
			strings.Join(o.formats, ", "))
	}
	return nil
}

// data reports whether objects are printed for programs, as JSON or YAML.
func (o *output) data() bool { return o.format == formatJSON || o.format == formatYAML }

// print prints a value as JSON on one row, as a YAML document or, for people, by text.
func (o *output) print(w io.Writer, v any, text func(io.Writer) error) error {
	switch o.format {
	case formatJSON:
		return printJSON(w, v)
	case formatYAML:
		encoded, err := json.Marshal(v)
		if err != nil {
			return err
		}
		n, err := strictyaml.FromJSON(encoded)
		if err != nil {
			return err
		}
		if o.printed++; o.printed > 1 {
			fmt.Fprintln(w, "---")
		}
		return writeYAML(w, n)
	}
	return text(w)
}

// printJSON writes a value on one row.
func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// newTable returns the writer of a table, whose cells end with tabs. Flush aligns them.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// column is a column of a listing.
type column[T any] struct {
	title string
	wide  bool // with -o wide only
	cell  func(T) string
	color func(T) color // nil: none
}

// listing prints objects of one kind as --output says. It aligns the columns of some rows at a
// time, so that memory does not grow with the length of the list.
type listing[T any] struct {
	*output
	screen  screen
	columns []column[T]
	name    func(T) string
	raw     func(T) any

	table *tabwriter.Writer // nil: no row yet
	rows  int
}

// alignedRows is the number of rows of a listing that are aligned together.
const alignedRows = 100

// add prints an object, or a row of the table.
func (l *listing[T]) add(w io.Writer, of T) error {
	if l.format == formatName {
		printf(w, "%s\n", l.name(of))
		return nil
	}
	return l.print(w, l.raw(of), func(w io.Writer) error {
		if l.table == nil {
			l.table = newTable(w)
			l.row(func(c column[T]) (string, color) { return c.title, plain })
		}
		l.row(func(c column[T]) (string, color) {
			if c.color == nil {
				return c.cell(of), plain
			}
			return c.cell(of), c.color(of)
		})
		if l.rows++; l.rows%alignedRows == 0 {
			return l.table.Flush()
		}
		return nil
	})
}

func (l *listing[T]) row(cell func(column[T]) (string, color)) {
	end := ""
	for _, c := range l.columns {
		if c.wide && l.format != formatWide {
			continue
		}
		text, color := cell(c)
		if text == "" {
			text = "-"
		}
		if c.color == nil {
			printf(l.table, end+"%s", text)
		} else {
			printf(l.table, end+"%s", l.screen.paint(color, text))
		}
		end = "\t"
	}
	fmt.Fprintln(l.table)
}

// end prints what is not printed yet.
func (l *listing[T]) end() error {
	if l.table == nil {
		return nil
	}
	return l.table.Flush()
}

// note says below a table how many objects there are, if it does not have all or has none.
func (o *output) note(errs io.Writer, what string, n, limit int, filtered bool) (err error) {
	switch {
	case o.data() || o.format == formatName:
	case n == 0 && filtered:
		_, err = fmt.Fprintf(errs, "No such %s.\n", what)
	case n == 0:
		_, err = fmt.Fprintf(errs, "No %s.\n", what)
	case limit > 0 && n >= limit+maxCounted:
		_, err = fmt.Fprintf(errs, "%d of %d or more; --limit 0 shows all\n", limit, n)
	case limit > 0 && n > limit:
		_, err = fmt.Fprintf(errs, "%d of %d; --limit 0 shows all\n", limit, n)
	}
	return err
}
