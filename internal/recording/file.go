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

// What a recording may take of the medium: one file up to fileBytes, and keptFiles of older ones
// beside it, FILE.1 the youngest.
const (
	fileBytes  = 64 << 20
	keptFiles  = 15
	flushEvery = time.Second
	// bufferBytes are written at once.
	bufferBytes = 64 << 10
	// queued entries wait for the medium; more are lost, and counted.
	queued = 8192
)

// File writes entries to a file that is put aside when it is full.
type File struct {
	path   string
	header Header
	limit  int64
	log    *slog.Logger
	queue  chan Entry
	lost   atomic.Int64
	open   func() []Entry

	file    *os.File
	size    int64  // of the file, in whole entries
	buffer  []byte // whole entries
	entries int    // in the buffer
	failing bool
}

// OpenFile begins a file. One that is there already is put aside, as a full one is.
func OpenFile(path string, header Header, log *slog.Logger) (*File, error) {
	header.Version = Version
	f := &File{
		path: path, header: header, limit: fileBytes, log: log.With("component", "recording"),
		queue: make(chan Entry, queued),
		open:  func() []Entry { return nil },
	}
	if err := f.begin(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return f, nil
}

// Opening says what further files begin with. Call it before Run.
func (f *File) Opening(open func() []Entry) { f.open = open }

// Put implements [Sink].
func (f *File) Put(e Entry) {
	select {
	case f.queue <- e:
	default:
		f.lost.Add(1)
	}
}

// Run writes until ctx is done, and what has come by then.
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
		panic(fmt.Sprintf("recording: %v", err)) // numbers that JSON lacks are left out before
	}
	f.buffer = append(append(f.buffer, text...), '\n')
	f.entries++
}

// flush writes what has gathered, whole or not at all.
func (f *File) flush() {
	n, err := f.file.WriteAt(f.buffer, f.size)
	if err != nil {
		f.file.Truncate(f.size) // if that fails too, the next write goes over it
		f.lost.Add(int64(f.entries))
		f.fail(err)
	} else if f.size += int64(n); n > 0 && f.failing {
		f.failing = false
		f.log.Info("writing the recording again", "file", f.path)
	}
	f.buffer, f.entries = f.buffer[:0], 0
}

// fail tells the log when writing begins to fail.
func (f *File) fail(err error) {
	if !f.failing {
		f.log.Error("could not write the recording, leaving out what comes", "file", f.path,
			"error", err)
	}
	f.failing = true
}

// begin puts the file aside, if it is there, and begins a new one.
func (f *File) begin() error {
	if info, err := os.Stat(f.path); err == nil && info.Size() > 0 {
		for n := keptFiles; n > 0; n-- {
			if err := os.Rename(aside(f.path, n-1), aside(f.path, n)); err != nil && !errors.Is(err,
				fs.ErrNotExist) {
				return err
			}
		}
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if f.file != nil {
		f.file.Close() // what it should hold is written, or counted as lost
	}
	f.file, f.size = file, 0
	f.encode(f.header)
	for _, e := range f.open() {
		f.encode(e)
	}
	return nil
}

// aside is where the n-th youngest file goes; 0: where it is written.
func aside(path string, n int) string {
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}
