package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Detect reports whether content is the beginning of a recording.
func Detect(content []byte) bool { return bytes.HasPrefix(content, []byte(`{"tidefill_recording":`)) }

// longestLine limits a row of a recording, in bytes.
const longestLine = 1 << 20

// Read reads a recording and calls fn with each of its entries, in order. name is the name of the
// file in errors. An incomplete last row, as a killed daemon leaves it, is ignored.
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
			return h, fault("the row is longer than %d bytes", longestLine)
		case err == io.EOF && number == 1:
			return h, fault("this is no recording: the file is empty")
		case err == io.EOF:
			return h, nil
		case err != nil:
			return h, fmt.Errorf("read %s: %w", name, err)
		}
		if number == 1 {
			if err := decodeStrict(line, &h); err != nil || h.Version == 0 {
				return h, fault("this is no recording: the first row has no tidefill_recording")
			}
			if h.Version != Version {
				return h, fault("the recording has format %d, want %d", h.Version, Version)
			}
			continue
		}
		var e Entry
		if err := decodeStrict(line, &e); err != nil {
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

// decodeStrict decodes JSON and refuses unknown keys.
func decodeStrict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text follows the entry; write one entry per row")
	}
	return nil
}

func (e *Entry) check(last float64) error {
	set := 0
	for _, is := range []bool{e.Runner != nil, e.Job != nil, e.Line != nil, e.Gaps != nil,
		e.Reading != nil, e.Latencies != nil, e.Shadow != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf(
			"an entry has one of runner, job, line, gaps, reading, latencies and shadow; "+
				"this one has %d", set)
	case !(e.At >= 0 && e.At < 1e9):
		return fmt.Errorf("t is %v, want seconds since began", e.At)
	case e.At < last:
		return fmt.Errorf("t is %v, which is before the previous entry at %v", e.At, last)
	case e.Runner != nil && e.Runner.ID < 1, e.Gaps != nil && e.Gaps.Runner < 1, e.Line != nil &&
		(e.Line.Runner < 1 || e.Line.Job < 1), e.Job != nil && (e.Job.ID < 1 || e.Job.Model < 1):
		return errors.New("numbers of runners, jobs and models must be at least 1")
	case e.Line != nil && !(e.Line.Took >= 0 && e.Line.First >= 0 && e.Line.Prompt >= 0 &&
		e.Line.Cached >= 0 && e.Line.Output >= 0):
		return errors.New("the values of a line must not be negative")
	case e.Job != nil && !(e.Job.Lines > 0 && e.Job.Prompt >= 0 && e.Job.Most >= 0 &&
		e.Job.Age >= 0):
		return errors.New("lines of a job must be positive, and its other values not negative")
	case e.Gaps != nil && !(e.Gaps.Count > 0 && e.Gaps.Took >= 0 && e.Gaps.Lines >= 0):
		return errors.New("count of gaps must be positive, and their other values not negative")
	case e.Shadow != nil && !(e.Shadow.Lines >= 0 && e.Shadow.Granted >= 0 &&
		e.Shadow.InFlight >= 0):
		return errors.New("the values of a shadow must not be negative")
	}
	return nil
}
