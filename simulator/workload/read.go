package workload

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"
)

// Format is a file format of traces.
type Format string

const (
	// Azure is the conversation trace of the Azure public data set, with times in
	// seconds: the columns t_s, input_tokens and output_tokens.
	Azure Format = "azure"
	// Mooncake is the Mooncake release: JSON lines of timestamp (ms),
	// input_length, output_length and hash_ids (prefix blocks of 512 tokens). It
	// stamps requests with the beginning of a tick of 3 s; those that share a tick
	// are spread over it, uniformly, by a fixed seed.
	Mooncake Format = "mooncake"
	// CSV is our own: a header, then t_s (seconds, from any beginning, never going
	// back), input_tokens and output_tokens (integers, at least 1), and optionally
	// class (of traffic), prefix_id (any text: requests that share it share a
	// prefix; empty for none) with prefix_tokens (how much of the prompt that is).
	CSV Format = "csv"
)

// Formats lists those that Read knows.
var Formats = []Format{Azure, Mooncake, CSV}

const (
	maxSeconds = 1e9     // of time in a trace: 31 years
	maxTokens  = 1 << 30 // of one request
	maxRate    = 1e12    // requests a second
)

// Read reads a complete trace, plain or gzipped. An error has the name and the line.
func Read(name string, format Format, r io.Reader) (*Trace, error) {
	return Collect(name, scan(name, format, r))
}

// scan reads a trace request by request, and ends with the first error.
func scan(name string, format Format, r io.Reader) iter.Seq2[Arrival, error] {
	src, err := open(name, r)
	if err != nil {
		return failed(err)
	}
	switch format {
	case Azure:
		return checkOrder(src, scanCSV(src, azureColumns))
	case CSV:
		return checkOrder(src, scanCSV(src, csvColumns))
	case Mooncake:
		return spreadTies(checkOrder(src, scanMooncake(src)), mooncakeTick, mooncakeSeed)
	default:
		return failed(fmt.Errorf("%s: unknown trace format %q, want one of %q", name, format,
			Formats))
	}
}

func failed(err error) iter.Seq2[Arrival, error] {
	return func(yield func(Arrival, error) bool) { yield(Arrival{}, err) }
}

// checkOrder reports times that decrease.
func checkOrder(src *source, arrivals iter.Seq2[Arrival, error]) iter.Seq2[Arrival, error] {
	return func(yield func(Arrival, error) bool) {
		var last time.Duration
		for a, err := range arrivals {
			if err == nil && a.At < last {
				err = src.errorf("the time decreases from %v to %v s; sort the file by time",
					last.Seconds(), a.At.Seconds())
			}
			last = a.At
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// source is a file being read and the present line.
type source struct {
	io.Reader
	name string
	line int
}

// open detects gzip by the content, whatever the name.
func open(name string, r io.Reader) (*source, error) {
	src := &source{name: name, line: 1}
	buffered := bufio.NewReader(r)
	src.Reader = buffered
	if magic, _ := buffered.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, src.wrap(gzipError{err})
		}
		src.Reader = gunzip{unzipped}
	}
	return src, nil
}

// errorf returns an error with the present line.
func (s *source) errorf(format string,
	args ...any) error {
	return s.wrap(fmt.Errorf(format, args...))
}

func (s *source) wrap(err error) error { return fmt.Errorf("%s:%d: %w", s.name, s.line, err) }

// gunzip names its own errors: a bare "unexpected EOF" would not be clear.
type gunzip struct{ r *gzip.Reader }

func (g gunzip) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if err != nil && err != io.EOF {
		err = gzipError{err}
	}
	return n, err
}

type gzipError struct{ error }

func (e gzipError) Error() string { return "broken gzip: " + e.error.Error() }
func (e gzipError) Unwrap() error { return e.error }

var errNotFinite = errors.New("want a finite number")

// duration converts a number of a unit to time.
func duration(x float64, unit time.Duration) (time.Duration, error) {
	switch limit := maxSeconds * float64(time.Second/unit); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, errNotFinite
	case x < 0:
		return 0, errors.New("want no negative time")
	case x > limit:
		return 0, fmt.Errorf("want at most %g", limit)
	}
	return time.Duration(math.Round(x * float64(unit))), nil
}

// tokens converts a number to a count of tokens.
func tokens(x float64, least int) (int, error) {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, errNotFinite
	case x < float64(least) || x > maxTokens || x != math.Trunc(x):
		return 0, fmt.Errorf("want a whole number from %d to %d", least, maxTokens)
	}
	return int(x), nil
}
