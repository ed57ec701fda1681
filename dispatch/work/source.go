package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// Source is the open input of a batch: its files, their indexes and the order of its lines.
type Source struct {
	inputs []sourceInput
	order  order
}

// Blobs holds the bytes of input files, and of the orders of lines.
type Blobs interface {
	Create(ctx context.Context, key string) (store.BlobWriter, error)
	Open(ctx context.Context, key string) (store.Blob, error)
}

type sourceInput struct {
	store.Input
	blob, indexBlob store.Blob
	index           *batchfile.Index
	models          []string
	urls            []string
}

// OpenSource opens the input of a batch, with the order of its lines if it has one.
func OpenSource(ctx context.Context, blobs Blobs, b *store.Batch) (*Source, error) {
	src, err := OpenInputs(ctx, blobs, b)
	if err != nil {
		return nil, err
	}
	if src.order, err = openOrder(ctx, blobs, b.ID); err != nil {
		src.Close()
		return nil, err
	}
	return src, nil
}

// OpenInputs opens the input of a batch, whose lines are in the order of the input.
func OpenInputs(ctx context.Context, blobs Blobs, b *store.Batch) (_ *Source, err error) {
	src := &Source{}
	defer func() {
		if err != nil {
			src.Close()
		}
	}()
	for _, in := range b.Inputs {
		opened, err := openInput(ctx, blobs, in)
		if err != nil {
			return nil, err
		}
		src.inputs = append(src.inputs, opened)
	}
	return src, nil
}

func openInput(ctx context.Context, blobs Blobs, in store.Input) (sourceInput, error) {
	opened := sourceInput{Input: in}
	var err error
	if opened.blob, err = blobs.Open(ctx, in.BlobKey); err != nil {
		return opened, fmt.Errorf("open input %s: %w", in.FileID, err)
	}
	if opened.index, opened.indexBlob, err = store.OpenIndex(ctx, blobs, in.BlobKey, in.IndexKey,
		in.Lines); err != nil {
		opened.blob.Close()
		return opened, fmt.Errorf("line index of %s: %w", in.FileID, err)
	}
	opened.models, opened.urls = opened.index.Models(), opened.index.URLs()
	return opened, nil
}

// Close closes the files.
func (src *Source) Close() {
	for _, in := range src.inputs {
		in.blob.Close()
		in.indexBlob.Close()
	}
	src.order.close()
}

// Reorder writes an order of the lines, by the line number of every position, and takes it over.
func (src *Source) Reorder(
	ctx context.Context, blobs Blobs, batch string, numbers []uint32,
) (err error) {
	if inputOrder(numbers) {
		return nil
	}
	if err := writeOrder(ctx, blobs, batch, numbers); err != nil {
		return fmt.Errorf("write order of batch %s: %w", batch, err)
	}
	src.order, err = openOrder(ctx, blobs, batch)
	return err
}

// inputOf returns the input that contains a line of the batch.
func (src *Source) inputOf(number uint32) *sourceInput {
	i, found := slices.BinarySearchFunc(src.inputs, int(number), func(in sourceInput, n int) int {
		return cmp.Compare(in.First, n)
	})
	if !found {
		i--
	}
	return &src.inputs[i]
}

// At reads the index records of the lines at count positions from first on.
func (src *Source) At(first, count int) ([]Line, error) {
	numbers := make([]uint32, count)
	if err := src.order.lines(first, numbers); err != nil {
		return nil, err
	}
	return src.Numbered(numbers)
}

// Numbered reads the index records of these lines, successive ones by one read.
func (src *Source) Numbered(numbers []uint32) ([]Line, error) {
	lines := make([]Line, len(numbers))
	records := make([]batchfile.Line, len(numbers))
	for i := 0; i < len(numbers); {
		in := src.inputOf(numbers[i])
		k := i + 1
		for k < len(numbers) && numbers[k] == numbers[k-1]+1 &&
			int(numbers[k]) < in.First+in.Lines {
			k++
		}
		if _, err := in.index.Read(int(numbers[i])-in.First, records[i:k]); err != nil {
			return nil, fmt.Errorf("line index of %s: %w", in.FileID, err)
		}
		for ; i < k; i++ {
			lines[i] = Line{index: records[i], number: numbers[i], input: in}
		}
	}
	return lines, nil
}

// Each calls fn for every line in order of position.
func (src *Source) Each(fn func(l *Line) error) error {
	const window = 512
	total := 0
	for _, in := range src.inputs {
		total += in.Lines
	}
	for first := 0; first < total; first += window {
		lines, err := src.At(first, min(window, total-first))
		if err != nil {
			return err
		}
		for i := range lines {
			if err := fn(&lines[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
