package workload

import (
	"encoding/csv"
	"errors"
	"hash/fnv"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	azureColumns = []string{"t_s", "input_tokens", "output_tokens"}
	csvColumns   = []string{"t_s", "input_tokens", "output_tokens", "class", "prefix_id",
		"prefix_tokens"}
)

// requiredColumns is the number of leading columns of both formats that are required.
const requiredColumns = 3

func scanCSV(src *source, known []string) iter.Seq2[Arrival, error] {
	return func(yield func(Arrival, error) bool) {
		rows, err := openTable(src)
		if err == nil {
			err = rows.check(known[:requiredColumns], known)
		}
		if err == nil && rows.has("prefix_id") != rows.has("prefix_tokens") {
			err = src.errorf(
				"the columns prefix_id and prefix_tokens go together; add the other or drop this " +
					"one")
		}
		if err != nil {
			yield(Arrival{}, err)
			return
		}
		names := interned{}
		for {
			err := rows.next()
			if err == io.EOF {
				return
			}
			var a Arrival
			if err == nil {
				a, err = rows.arrival(names)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// table is a CSV file with a header.
type table struct {
	src    *source
	csv    *csv.Reader
	header []string
	column map[string]int
	row    []string
}

func openTable(src *source) (*table, error) {
	t := &table{src: src, csv: csv.NewReader(src), column: map[string]int{}}
	t.csv.ReuseRecord = true
	t.csv.TrimLeadingSpace = true
	switch err := t.next(); {
	case err == io.EOF:
		return nil, src.errorf("the file is empty, want a header")
	case err != nil:
		return nil, err
	}
	for i, name := range t.row {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff") // spreadsheets begin with it
		}
		name = strings.TrimSpace(name)
		if t.has(name) {
			return nil, src.errorf("column %q occurs twice", name)
		}
		t.column[name] = i
		t.header = append(t.header, name)
	}
	return t, nil
}

// check reports missing and unknown columns.
func (t *table) check(needed, known []string) error {
	for _, name := range t.header {
		if !slices.Contains(known, name) {
			return t.src.errorf("unknown column %q, want %s", name, strings.Join(known, ", "))
		}
	}
	for _, name := range needed {
		if !t.has(name) {
			return t.src.errorf("column %q is missing", name)
		}
	}
	return nil
}

func (t *table) has(column string) bool {
	_, ok := t.column[column]
	return ok
}

// next reads a row, or returns io.EOF.
func (t *table) next() error {
	row, err := t.csv.Read()
	if err == io.EOF {
		return err
	}
	if fault := (*csv.ParseError)(nil); errors.As(err, &fault) {
		t.src.line = fault.Line
		return t.src.wrap(fault.Err)
	}
	if err != nil {
		return t.src.wrap(err)
	}
	t.src.line, _ = t.csv.FieldPos(0)
	t.row = row
	return nil
}

func (t *table) text(column string) string {
	if i, ok := t.column[column]; ok {
		return strings.TrimSpace(t.row[i])
	}
	return ""
}

func (t *table) number(column string) (float64, error) {
	x, err := strconv.ParseFloat(t.text(column), 64)
	if err != nil {
		return 0, t.fieldError(column, errors.New("want a number"))
	}
	return x, nil
}

func (t *table) fieldError(column string, err error) error {
	return t.src.errorf("%s is %q: %w", column, t.text(column), err)
}

func (t *table) tokens(column string, least int) (int, error) {
	x, err := t.number(column)
	if err != nil {
		return 0, err
	}
	n, err := tokens(x, least)
	if err != nil {
		return 0, t.fieldError(column, err)
	}
	return n, nil
}

func (t *table) seconds(column string) (time.Duration, error) {
	x, err := t.number(column)
	if err != nil {
		return 0, err
	}
	at, err := duration(x, time.Second)
	if err != nil {
		return 0, t.fieldError(column, err)
	}
	return at, nil
}

func (t *table) arrival(names interned) (a Arrival, err error) {
	if a.At, err = t.seconds("t_s"); err != nil {
		return a, err
	}
	if a.Input, err = t.tokens("input_tokens", 1); err != nil {
		return a, err
	}
	if a.Output, err = t.tokens("output_tokens", 1); err != nil {
		return a, err
	}
	a.Class = names.class(t.text("class"))
	id := t.text("prefix_id")
	if id == "" {
		return a, nil
	}
	if a.Segment, err = t.tokens("prefix_tokens", 0); err != nil {
		return a, err
	}
	if a.Segment > a.Input {
		return a, t.fieldError("prefix_tokens", errors.New("want no more than input_tokens"))
	}
	if a.Segment > 0 {
		a.Prefix = names.prefix(id)
	}
	return a, nil
}

// interned keeps one copy of each label, since rows repeat them.
type interned map[string]*label

type label struct {
	text   string
	prefix []uint64
}

func (in interned) label(text string) *label {
	l, ok := in[text]
	if !ok {
		l = &label{text: strings.Clone(text)}
		in[l.text] = l
	}
	return l
}

func (in interned) class(text string) string { return in.label(text).text }

func (in interned) prefix(id string) []uint64 {
	l := in.label(id)
	if l.prefix == nil {
		h := fnv.New64a()
		h.Write([]byte(l.text))
		l.prefix = []uint64{mix(h.Sum64())}
	}
	return l.prefix
}
