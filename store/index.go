package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// OpenIndex opens the line index of a batch file of the given number of lines. It rebuilds a
// damaged index from the file. The error wraps batchfile.ErrDamaged if the file has other lines
// now.
func OpenIndex(
	ctx context.Context, blobs blobFiles, fileKey, indexKey string, lines int,
) (*batchfile.Index, Blob, error) {
	index, blob, err := openIndex(ctx, blobs, indexKey)
	if !errors.Is(err, batchfile.ErrDamaged) {
		return index, blob, err
	}
	if err := rebuildIndex(ctx, blobs, fileKey, indexKey, lines); err != nil {
		return nil, nil, fmt.Errorf("rebuild line index %s: %w", indexKey, err)
	}
	return openIndex(ctx, blobs, indexKey)
}

func openIndex(ctx context.Context, blobs blobFiles, key string) (*batchfile.Index, Blob, error) {
	blob, err := blobs.Open(ctx, key)
	if err != nil {
		return nil, nil, fmt.Errorf("open line index: %w", err)
	}
	index, err := batchfile.OpenIndex(blob, blob.Size())
	if err == nil {
		err = index.Check()
	}
	if err != nil {
		return nil, nil, errors.Join(err, blob.Close())
	}
	return index, blob, nil
}

// rebuildIndex scans a file as its upload did, without limits: the lines were within those that
// were configured then.
func rebuildIndex(ctx context.Context, blobs blobFiles, fileKey, indexKey string, lines int) error {
	file, err := blobs.Open(ctx, fileKey)
	if err != nil {
		return err
	}
	defer file.Close()
	index, err := blobs.Create(ctx, indexKey)
	if err != nil {
		return err
	}
	defer index.Abort()
	scanner := batchfile.NewScanner(index, batchfile.Limits{
		MaxLines: math.MaxInt32, MaxBytes: math.MaxInt64, MaxLineBytes: math.MaxInt,
		MaxModels: math.MaxUint16,
	})
	if _, err := io.CopyBuffer(struct{ io.Writer }{scanner},
		io.NewSectionReader(file, 0, file.Size()), make([]byte, 256<<10)); err != nil {
		return err
	}
	summary, err := scanner.Finish()
	if err != nil {
		return err
	}
	valid := 0
	for _, m := range summary.Models {
		valid += m.Lines
	}
	if valid != lines {
		return fmt.Errorf("the file had %d valid lines and has %d now: %w", lines, valid,
			batchfile.ErrDamaged)
	}
	return index.Commit(ctx)
}

// blobFiles is the part of Blobs that OpenIndex needs.
type blobFiles interface {
	Create(ctx context.Context, key string) (BlobWriter, error)
	Open(ctx context.Context, key string) (Blob, error)
}
