package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// The size of a recording is limited to one file of fileBytes and maxOldFiles older ones, FILE.1
// the youngest.
const (
	fileBytes   = 64 << 20
	maxOldFiles = 15
	flushEvery  = time.Second
	// bufferBytes is the size at which the buffer is written.
	bufferBytes = 64 << 10
	// queueLength is the maximum number of entries that wait to be written. Further entries are
	// dropped and counted.
	queueLength = 8192
)

// File writes entries to a file, and rotates it when it is full.
type File struct {
	path     string
	header   Header
	limit    int64
	log      *slog.Logger
	queue    chan Entry
	lost     atomic.Int64
	preamble func() []Entry

	file    *os.File
	size    int64   // of the file, in complete entries
	buffer  []byte  // complete entries
	entries int     // in the buffer
	last    float64 // Entry.At of the last entry
	failing bool
}

// OpenFile creates a file. An existing one is rotated first.
func OpenFile(path string, header Header, log *slog.Logger) (*File, error) {
	header.Version = Version
	f := &File{
		path: path, header: header, limit: fileBytes, log: log.With("component", "recording"),
		queue:    make(chan Entry, queueLength),
		preamble: func() []Entry { return nil },
	}
	if err := f.begin(); err != nil {
		return nil, fmt.Errorf("open recording %s: %w", path, err)
	}
	return f, nil
}

// SetPreamble sets the function that returns the first entries of further files. They get the time
// of the last entry that was written, because older ones than the preamble wait in the queue. Call
// it before Run.
func (f *File) SetPreamble(preamble func() []Entry) { f.preamble = preamble }

// Put implements [Sink].
func (f *File) Put(e Entry) {
	select {
	case f.queue <- e:
	default:
		f.lost.Add(1)
	}
}

// Run writes entries until ctx is done, and those that wait then.
func (f *File) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-f.queue:
			f.write(e)
		case <-tick.C:
			f.flush()
		case <-ctx.Done():
			for len(f.queue) > 0 {
				f.write(<-f.queue)
			}
			f.flush()
			return f.file.Close()
		}
	}
}

func (f *File) write(e Entry) {
	e.Lost = int(f.lost.Swap(0))
	f.last = e.At
	f.encode(e)
	f.entries += e.Lost
	if len(f.buffer) >= bufferBytes {
		f.flush()
	}
	if f.size+int64(len(f.buffer)) >= f.limit {
		f.flush()
		if err := f.begin(); err != nil {
			f.fail(err)
		}
	}
}

func (f *File) encode(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("recording: %v", err)) // values that JSON cannot represent were left out
	}
	f.buffer = append(append(f.buffer, text...), '\n')
	f.entries++
}

// flush writes the buffer, completely or not at all.
func (f *File) flush() {
	n, err := f.file.WriteAt(f.buffer, f.size)
	if err != nil {
		_ = f.file.Truncate(f.size) // if this fails too, the next write overwrites it
		f.lost.Add(int64(f.entries))
		f.fail(err)
	} else if f.size += int64(n); n > 0 && f.failing {
		f.failing = false
		f.log.Info("recording file can be written again", "file", f.path)
	}
	f.buffer, f.entries = f.buffer[:0], 0
}

// fail logs that writing has begun to fail.
func (f *File) fail(err error) {
	if !f.failing {
		f.log.Error("write recording failed, dropping entries until it works", "file", f.path,
			"error", err)
	}
	f.failing = true
}

// begin rotates the file, if it exists, and creates a new one.
func (f *File) begin() error {
	if info, err := os.Stat(f.path); err == nil && info.Size() > 0 {
		for n := maxOldFiles; n > 0; n-- {
			err := os.Rename(rotated(f.path, n-1), rotated(f.path, n))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if f.file != nil {
		f.file.Close() // its entries are written or counted as lost
	}
	f.file, f.size = file, 0
	f.encode(f.header)
	for _, e := range f.preamble() {
		e.At = f.last
		f.encode(e)
	}
	return nil
}

// rotated returns the path of the n-th youngest old file; 0: the current one.
func rotated(path string, n int) string {
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}
