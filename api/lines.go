package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// lines are the requests of one input file.
type lines struct {
	file, records store.Blob
	index         *batchfile.Index
}

// openLines opens a file with that many valid lines.
func openLines(
	ctx context.Context, blobs Blobs, fileKey, indexKey string, count int,
) (*lines, error) {
	file, err := blobs.Open(ctx, fileKey)
	if err != nil {
		return nil, fmt.Errorf("open batch file: %w", err)
	}
	index, records, err := store.OpenIndex(ctx, blobs, fileKey, indexKey, count)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &lines{file: file, records: records, index: index}, nil
}

func (l *lines) Close() {
	l.file.Close() // only read: an error does not matter
	l.records.Close()
}

// each calls fn for every line in order. It reads the index in steps of 1024 lines.
func (l *lines) each(ctx context.Context, fn func(batchfile.Line) error) error {
	window := make([]batchfile.Line, 1024)
	for first := 0; first < l.index.Len(); first += len(window) {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := l.index.Read(first, window)
		if err != nil {
			return err
		}
		for _, line := range window[:n] {
			if err := fn(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// customID reads the custom_id of a line. It uses buf as a buffer.
func (l *lines) customID(line batchfile.Line, buf *[]byte) (string, error) {
	literal := slices.Grow((*buf)[:0], int(line.IDLength))[:line.IDLength]
	*buf = literal
	if n, err := l.file.ReadAt(literal, line.Offset+int64(line.IDOffset)); n < len(literal) {
		return "", fmt.Errorf("read custom_id of line %d: %w", line.Row,
			cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return batchfile.CustomID(literal), nil
}

// pieceBytes is the size of the pieces in which lines are read.
const pieceBytes = 64 << 10

// filter reads the lines whose custom_id is wanted, unchanged and each with a newline, in pieces of
// up to pieceBytes. A piece is valid until the next one is read.
func (l *lines) filter(
	ctx context.Context, wanted func(customID string) bool,
) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var literal []byte
		piece := make([]byte, pieceBytes)
		err := l.each(ctx, func(line batchfile.Line) error {
			id, err := l.customID(line, &literal)
			if err != nil || !wanted(id) {
				return err
			}
			if err := line.CheckFile(l.file); err != nil {
				return err
			}
			object := io.NewSectionReader(l.file, line.Offset, int64(line.Length))
			for left := int(line.Length); left >= 0; left -= len(piece) {
				n, err := io.ReadFull(object, piece[:min(left, len(piece))])
				if err != nil {
					return fmt.Errorf("read line %d: %w", line.Row, err)
				}
				end := piece[:n]
				if n < len(piece) {
					end = append(end, '\n')
				}
				if !yield(end, nil) {
					return errStopped
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}
