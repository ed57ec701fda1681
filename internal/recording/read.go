package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Is tells whether a file that begins so is a recording.
func Is(content []byte) bool { return bytes.HasPrefix(content, []byte(`{"tidefill_recording":`)) }

// longestLine bounds a line of a recording, in bytes.
const longestLine = 1 << 20

// Read reads a recording and calls fn with each of its entries, in order. name stands for the file
// in errors. A last line without an end is what a killed daemon left, and is passed over.
func Read(name string, from io.Reader, fn func(Entry) error) (Header, error) {
	in := bufio.NewReaderSize(from, longestLine)
	var h Header
	last := 0.0
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		fault := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: "+format, append([]any{name, number}, args...)...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return h, fault("the line is longer than %d bytes", longestLine)
		case err == io.EOF && number == 1:
			return h, fault("this is no recording: it has no first line")
		case err == io.EOF:
			return h, nil
		case err != nil:
			return h, fmt.Errorf("read %s: %w", name, err)
		}
		if number == 1 {
			if err := strictly(line, &h); err != nil || h.Version == 0 {
				return h, fault("this is no recording: its first line has no tidefill_recording")
			}
			if h.Version != Version {
				return h, fault("the recording has format %d, want %d", h.Version, Version)
			}
			continue
		}
		var e Entry
		if err := strictly(line, &e); err != nil {
			return h, fault("%w", err)
		}
		if err := e.check(last); err != nil {
			return h, fault("%w", err)
		}
		last = e.At
		if err := fn(e); err != nil {
			return h, fault("%w", err)
		}
	}
}

// strictly refuses keys that a type doesn't have.
func strictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows the entry; give each a line of its own")
	}
	return nil
}

func (e *Entry) check(last float64) error {
	set := 0
	for _, is := range []bool{e.Runner != nil, e.Job != nil, e.Line != nil, e.Gaps != nil,
		e.Reading != nil, e.Latencies != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf(
			"an entry has one of runner, job, line, gaps, reading and latencies; this one has %d",
			set)
	case !(e.At >= 0 && e.At < 1e9):
		return fmt.Errorf("t is %v, want seconds since the beginning", e.At)
	case e.At < last:
		return fmt.Errorf("t is %v, before that of the entry before, %v", e.At, last)
	case e.Runner != nil && e.Runner.ID < 1, e.Gaps != nil && e.Gaps.Runner < 1, e.Line != nil &&
		(e.Line.Runner < 1 || e.Line.Job < 1), e.Job != nil && (e.Job.ID < 1 || e.Job.Model < 1):
		return errors.New("runners, jobs and models are numbered from 1")
	case e.Line != nil && !(e.Line.Took >= 0 && e.Line.First >= 0 && e.Line.Prompt >= 0 &&
		e.Line.Cached >= 0 && e.Line.Output >= 0):
		return errors.New("a line's figures can't be negative")
	case e.Job != nil && !(e.Job.Lines > 0 && e.Job.Prompt >= 0 && e.Job.Most >= 0 &&
		e.Job.Age >= 0):
		return errors.New("a job has lines, and its other figures aren't negative")
	case e.Gaps != nil && !(e.Gaps.Count > 0 && e.Gaps.Took >= 0 && e.Gaps.Lines >= 0):
		return errors.New("gaps have a count, and their other figures aren't negative")
	}
	return nil
}
