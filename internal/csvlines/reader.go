package csvlines

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// maxRow limits a row, and maxLine its line, in bytes: each is in memory as a whole, a row
	// several times. A quote that is never closed makes the rest of a file one row.
	maxRow, maxLine = 1 << 20, 4 << 20
	// maxFaults limits the faults that are kept.
	maxFaults = 1000
	// maxShownColumns limits the columns that an error lists.
	maxShownColumns = 20
)

// Fault is what is wrong with a row. Its line is blank.
type Fault struct {
	Row     int // from 1, the header not counted; also the number of its line
	Message string
}

// Error is what is wrong with a file as a whole. Other errors are those of its source.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func fail(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Reader reads the lines of the rows of a CSV file, one for each row.
type Reader struct {
	limited  *limitedReader
	rows     *csv.Reader
	template *Template
	id       int   // index of the column of the custom_id; -1: there is none
	columns  []int // of the pieces with a column
	ending   string

	row    int
	line   []byte
	unread []byte // of line
	faults []Fault
	count  int
	err    error
}

// NewReader reads the first row of a file, which names its columns. Lines get the url.
func NewReader(from io.Reader, t *Template, url string) (*Reader, error) {
	limited := &limitedReader{from: from, left: maxRow}
	buffered := bufio.NewReader(limited)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\uFEFF" {
		buffered.Discard(3)
	}
	r := &Reader{limited: limited, rows: csv.NewReader(buffered), template: t, id: -1}
	r.rows.ReuseRecord = true
	r.ending = `,"method":"POST","url":"` + string(appendText(nil, url)) + `","body":`
	header, err := r.rows.Read()
	var malformed *csv.ParseError
	switch {
	case err == io.EOF:
		return nil, fail("the file is empty; its first row must name the columns")
	case errors.Is(err, errTooLong):
		return nil, fail("the first row, which names the columns, is longer than %d bytes; is a "+
			"quote missing?", maxRow)
	case errors.As(err, &malformed):
		return nil, fail("the first row, which names the columns, can't be read: %v", malformed)
	case err != nil:
		return nil, err
	}
	if err := r.find(header); err != nil {
		return nil, err
	}
	return r, nil
}

// find finds the columns that the template names.
func (r *Reader) find(header []string) (err error) {
	at := make(map[string]int, len(header))
	const several = -1
	for i, name := range header {
		name = strings.TrimSpace(name)
		if _, twice := at[name]; twice {
			i = several
		}
		at[name] = i
	}
	index := func(name string) (int, error) {
		i, has := at[name]
		switch {
		case !has:
			shown := header[:min(len(header), maxShownColumns)]
			return 0, fail("there is no column %q; the first row names %q, separated by commas",
				name, shown)
		case i == several:
			return 0, fail("the first row names the column %q more than once", name)
		}
		return i, nil
	}
	if r.template.id != "" {
		if r.id, err = index(r.template.id); err != nil {
			return err
		}
	}
	for _, p := range r.template.pieces {
		i := 0
		if p.column != "" {
			if i, err = index(p.column); err != nil {
				return err
			}
		}
		r.columns = append(r.columns, i)
	}
	return nil
}

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.unread) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.next()
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// Faults returns the first faults of the rows that were read, and the number of all.
func (r *Reader) Faults() (first []Fault, count int) { return r.faults, r.count }

// next reads a row and makes its line.
func (r *Reader) next() error {
	r.limited.left = maxRow
	cells, err := r.rows.Read()
	var malformed *csv.ParseError
	switch {
	case err == io.EOF && r.row == 0:
		return fail("the file has no row below the names of the columns")
	case errors.Is(err, errTooLong):
		return fail("row %d is longer than %d bytes; is a quote missing?", r.row+1, maxRow)
	case err != nil && !errors.As(err, &malformed):
		return err
	}
	r.row++
	at := 0
	switch {
	case malformed == nil:
		at, _ = r.rows.FieldPos(0)
		err = r.make(cells)
	case errors.Is(malformed, csv.ErrFieldCount):
		at = malformed.StartLine
		err = fmt.Errorf("it has %d cells, and the first row names %d columns", len(cells),
			r.rows.FieldsPerRecord)
	default:
		at, err = malformed.StartLine, malformed.Err
	}
	if err != nil {
		if r.count++; len(r.faults) < maxFaults {
			r.faults = append(r.faults, Fault{r.row, fmt.Sprintf("Row %d, line %d of the file: %v.",
				r.row, at, err)})
		}
		r.line = r.line[:0]
	}
	r.line = append(r.line, '\n')
	r.unread = r.line
	return nil
}

// make makes the line of a row, without its end. An error is a fault of the row.
func (r *Reader) make(cells []string) error {
	id := fmt.Sprintf("row-%d", r.row)
	if r.id >= 0 {
		id = cells[r.id]
		if !utf8.ValidString(id) {
			return fmt.Errorf("the cell of %q is not UTF-8; save the file as UTF-8", r.template.id)
		}
	}
	line := append(appendText(append(r.line[:0], `{"custom_id":"`...), id), '"')
	line = append(line, r.ending...)
	for i, p := range r.template.pieces {
		line = append(line, p.text...)
		if p.column == "" {
			continue
		}
		cell := cells[r.columns[i]]
		switch {
		case !utf8.ValidString(cell):
			return fmt.Errorf("the cell of %q is not UTF-8; save the file as UTF-8", p.column)
		case p.json:
			value := bytes.NewBuffer(line)
			if err := json.Compact(value, []byte(cell)); err != nil {
				return fmt.Errorf("the cell of %q is not JSON: %w", p.column, err)
			}
			line = value.Bytes()
		default:
			line = appendText(line, cell)
		}
		if len(line) > maxLine {
			return fmt.Errorf("its line is longer than %d bytes", maxLine)
		}
	}
	r.line = append(line, '}')
	return nil
}

var errTooLong = errors.New("a row is too long")

// limitedReader reads at most left bytes, and then fails.
type limitedReader struct {
	from io.Reader
	left int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.from.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
