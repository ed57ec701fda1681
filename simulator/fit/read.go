package fit

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// column is a documented column of a steps file.
type column struct {
	name     string
	required bool
	text     bool
	empty    bool // may be empty: not recorded in this row
	set      func(s *Step, v int64)
}

var columns = []column{
	{name: "experiment", required: true, text: true},
	{name: "step", required: true, set: func(s *Step, v int64) { s.Number = v }},
	{name: "start_us", required: true, set: func(s *Step, v int64) { s.Start = v }},
	{name: "prefill_tokens", required: true, set: func(s *Step, v int64) { s.PrefillTokens = v }},
	{name: "decode_tokens", required: true, set: func(s *Step, v int64) { s.DecodeTokens = v }},
	{name: "prefill_reqs", set: func(s *Step, v int64) { s.PrefillReqs = v }},
	{name: "decode_reqs", set: func(*Step, int64) {}},
	{name: "running", set: func(s *Step, v int64) { s.Running = v }},
	{name: "waiting", set: func(*Step, int64) {}},
	{name: "finished", set: func(*Step, int64) {}},
	{name: "preempted", set: func(*Step, int64) {}},
	{name: "kv_blocks_used", empty: true, set: func(s *Step, v int64) { s.KVBlocksUsed = v }},
	{name: "kv_blocks_total", empty: true, set: func(s *Step, v int64) { s.KVBlocksTotal = v }},
	{name: "context_tokens", empty: true, set: func(s *Step, v int64) { s.Context = v }},
	{name: "prefill_context", empty: true, set: func(s *Step, v int64) { s.PrefillContext = v }},
	{name: "gap_steps", required: true, empty: true, set: func(s *Step, v int64) {
		s.GapSteps = v
	}},
	{name: "gap_us", required: true, empty: true, set: func(s *Step, v int64) { s.Gap = v }},
}

const (
	// maxFaults is the greatest number of errors of a file that are reported.
	maxFaults = 20
	// maxCount bounds a count of tokens, requests or blocks, and maxNumber anything else, so that
	// sums of them are exact.
	maxCount  = 1e9
	maxNumber = 1e15
	// clockRounding is the largest difference, in microseconds, between a gap and that of two
	// starts that are rounded independently.
	clockRounding = 2
)

// ReadSteps reads a CSV of scheduler steps, plain or gzipped. docs/profiles.md lists the columns.
// The rows may be in any order. All errors are reported together, each with file and row.
func ReadSteps(name string, in io.Reader) ([]Step, error) {
	content, err := plain(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := &stepReader{name: name, csv: csv.NewReader(content)}
	r.csv.ReuseRecord = true
	if err := r.header(); err != nil {
		return nil, err
	}
	steps := r.rows()
	slices.SortStableFunc(steps, compareSteps)
	if len(r.faults) == 0 {
		r.checkOrder(steps)
	}
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("%s: no steps below the header", name)
	}
	return steps, nil
}

// plain detects and unpacks gzip, and drops a byte order mark.
func plain(in io.Reader) (*bufio.Reader, error) {
	buffered := bufio.NewReader(in)
	if magic, _ := buffered.Peek(2); string(magic) == "\x1f\x8b" {
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		buffered = bufio.NewReader(unpacked)
	}
	if mark, _ := buffered.Peek(3); string(mark) == "\xEF\xBB\xBF" {
		buffered.Discard(3) // it was peeked at, so it is there
	}
	return buffered, nil
}

type stepReader struct {
	name   string
	csv    *csv.Reader
	order  []column // of the file
	faults []error
}

func (r *stepReader) errorf(line int, format string, args ...any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fmt.Errorf("%s:%d: %w", r.name, line,
			fmt.Errorf(format, args...)))
	}
}

func (r *stepReader) header() error {
	names, err := r.csv.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: empty; the first line names the columns", r.name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == name })
		switch {
		case i < 0:
			r.errorf(1, "unknown column %q; known are %s", name, columnNames(func(column) bool {
				return true
			}))
		case seen[name]:
			r.errorf(1, "column %s occurs twice", name)
		default:
			r.order = append(r.order, columns[i])
		}
		seen[name] = true
	}
	if missing := columnNames(func(c column) bool {
		return c.required && !seen[c.name]
	}); missing != "" {
		r.errorf(1, "missing column %s", missing)
	}
	return errors.Join(r.faults...)
}

func columnNames(wanted func(column) bool) string {
	var names []string
	for _, c := range columns {
		if wanted(c) {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ", ")
}

func (r *stepReader) rows() []Step {
	var steps []Step
	for len(r.faults) < maxFaults {
		record, err := r.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if malformed := new(csv.ParseError); errors.As(err, &malformed) {
			r.errorf(malformed.StartLine, "%w", malformed.Err)
			continue
		}
		if err != nil {
			r.faults = append(r.faults, fmt.Errorf("read %s: %w", r.name, err))
			break
		}
		steps = append(steps, r.row(record))
	}
	return steps
}

func (r *stepReader) row(record []string) Step {
	line, _ := r.csv.FieldPos(0)
	s := Step{File: r.name, Line: line, Context: -1, PrefillContext: -1, KVBlocksUsed: -1,
		KVBlocksTotal: -1}
	for i, c := range r.order {
		text := record[i]
		if c.text {
			s.Run = strings.Clone(text)
			continue
		}
		if text == "" && c.empty {
			continue
		}
		v, err := parseCount(text)
		if err == nil && v > maxCount && !slices.Contains([]string{"step", "start_us", "gap_us",
			"gap_steps"}, c.name) {
			err = errors.New("is too large")
		}
		if err != nil {
			r.errorf(line, "%s %q %w", c.name, text, err)
			continue
		}
		c.set(&s, v)
	}
	switch {
	case s.GapSteps == 0 && s.Gap != 0:
		r.errorf(line, "gap_us is %d and there are no gap_steps", s.Gap)
	case s.GapSteps != 0 && s.Gap == 0:
		r.errorf(line, "gap_us is 0 or missing for gap_steps %d: no step takes no time", s.GapSteps)
	case s.PrefillReqs > s.PrefillTokens:
		r.errorf(line, "prefill_reqs is %d for %d prefill_tokens", s.PrefillReqs, s.PrefillTokens)
	}
	return s
}

// parseCount parses a count. Tools with missing values write counts as floats, so 5.0 is 5.
func parseCount(text string) (int64, error) {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(f):
		return 0, errors.New("is not a number")
	case f < 0:
		return 0, errors.New("is negative")
	case f > maxNumber:
		return 0, errors.New("is too large")
	case f != math.Trunc(f):
		return 0, errors.New("is not a whole number")
	}
	return int64(f), nil
}

// checkOrder compares each step with the next of its run.
func (r *stepReader) checkOrder(steps []Step) {
	for i := range max(0, len(steps)-1) {
		a, b := steps[i], steps[i+1]
		if a.Run != b.Run {
			continue
		}
		elapsed := b.Start - a.Start
		switch {
		case a.Number == b.Number:
			r.errorf(b.Line, "step %d of %s is already on line %d", b.Number, b.Run, a.Line)
		case elapsed < 0:
			r.errorf(b.Line, "the time decreases: step %d starts at %d, step %d (line %d) at %d",
				b.Number, b.Start, a.Number, a.Line, a.Start)
		case a.GapSteps > b.Number-a.Number:
			r.errorf(a.Line, "gap_steps is %d, yet step %d follows step %d (line %d)", a.GapSteps,
				b.Number, a.Number, b.Line)
		case a.GapSteps == b.Number-a.Number && max(a.Gap-elapsed, elapsed-a.Gap) > clockRounding:
			r.errorf(a.Line, "gap_us is %d, yet the next step (line %d) starts %d later", a.Gap,
				b.Line, elapsed)
		}
	}
}
