package work

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
)

const (
	// largestInMemory is the size of the largest line that is held in memory, in bytes. Larger
	// ones, and those for which memory is short, are read from the blob when they are sent.
	largestInMemory = 256 << 10
	// readOver is the number of unused bytes that are cheaper to read than to skip.
	readOver = 4 << 10
)

// fetch reads the objects of the wanted lines into memory. Long lines stay in the blob, and so do
// those for which there is no memory. It compares all wanted lines with their checksums and notes
// damage in them. On an error the caller releases the lines.
func fetch(lines []Line, inputs *Share, want func(slot int) bool) error {
	f := fetcher{lines: lines, inputs: inputs}
	defer f.close()
	for i := range lines {
		switch l := &lines[i]; {
		case !want(i):
		case l.index.Length <= largestInMemory && inputs.Take(int64(l.index.Length)):
			f.slots = append(f.slots, i)
		default:
			if err := l.setDamage(l.index.CheckFile(l.input.blob)); err != nil {
				return fmt.Errorf("read input %s: %w", l.input.FileID, err)
			}
		}
	}
	slices.SortFunc(f.slots, func(a, b int) int {
		return cmp.Or(cmp.Compare(lines[a].input.First, lines[b].input.First),
			cmp.Compare(lines[a].index.Offset, lines[b].index.Offset))
	})
	for len(f.slots) > 0 {
		if err := f.readWindow(); err != nil {
			return err
		}
	}
	return nil
}

// fetcher reads lines from their files, those close together by one read.
type fetcher struct {
	lines  []Line
	inputs *Share
	slots  []int  // of lines that are not read yet, for which memory is taken
	window []byte // lines are copied out of it, so that one of them does not keep all in memory
}

// close gives back the memory of lines that were not read.
func (f *fetcher) close() {
	for _, slot := range f.slots {
		f.inputs.Give(int64(f.lines[slot].index.Length))
	}
}

// readWindow reads the next line, and those close behind it.
func (f *fetcher) readWindow() error {
	first := &f.lines[f.slots[0]]
	n, end := 1, first.index.Offset+int64(first.index.Length)
	for ; n < len(f.slots); n++ {
		next := &f.lines[f.slots[n]]
		if next.input != first.input || next.index.Offset > end+readOver ||
			next.index.Offset+int64(next.index.Length)-first.index.Offset > largestInMemory {
			break
		}
		end = next.index.Offset + int64(next.index.Length)
	}
	if int64(cap(f.window)) < end-first.index.Offset {
		f.window = make([]byte, end-first.index.Offset)
	}
	window := f.window[:end-first.index.Offset]
	got, err := first.input.blob.ReadAt(window, first.index.Offset)
	if got < len(window) && err != io.EOF {
		return fmt.Errorf("read input %s: %w", first.input.FileID, err)
	}
	for _, slot := range f.slots[:n] {
		f.keep(&f.lines[slot], window[:got], first.index.Offset)
	}
	f.slots = f.slots[n:]
	return nil
}

// keep copies a line out of a window that begins at an offset of its file.
func (f *fetcher) keep(l *Line, window []byte, from int64) {
	if l.index.Offset-from+int64(l.index.Length) > int64(len(window)) {
		l.damage = fmt.Errorf("line %d of the input file is cut: %w", l.index.Row,
			batchfile.ErrDamaged)
		f.inputs.Give(int64(l.index.Length))
		return
	}
	l.object = bytes.Clone(window[l.index.Offset-from:][:l.index.Length])
	_ = l.setDamage(l.index.Check(l.object)) // it returns no other error
}
