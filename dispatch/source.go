package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// source is the open input of a batch: its files, their indexes and the order of its lines.
type source struct {
	inputs []sourceInput
	order  order
}

type sourceInput struct {
	store.Input
	blob, indexBlob store.Blob
	index           *batchfile.Index
	models          []string
	urls            []string
}

func openSource(ctx context.Context, blobs Blobs, b *store.Batch) (_ *source, err error) {
	src := &source{}
	defer func() {
		if err != nil {
			src.close()
		}
	}()
	for _, in := range b.Inputs {
		opened, err := openInput(ctx, blobs, in)
		if err != nil {
			return nil, err
		}
		src.inputs = append(src.inputs, opened)
	}
	src.order, err = openOrder(ctx, blobs, b.ID)
	return src, err
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

func (src *source) close() {
	for _, in := range src.inputs {
		in.blob.Close()
		in.indexBlob.Close()
	}
	src.order.close()
}

// inputOf returns the input that contains a line of the batch.
func (src *source) inputOf(number uint32) *sourceInput {
	i, found := slices.BinarySearchFunc(src.inputs, int(number), func(in sourceInput, n int) int {
		return cmp.Compare(in.First, n)
	})
	if !found {
		i--
	}
	return &src.inputs[i]
}

// at reads the index records of the lines at count positions from first on.
func (src *source) at(first, count int) ([]sourceLine, error) {
	numbers := make([]uint32, count)
	if err := src.order.lines(first, numbers); err != nil {
		return nil, err
	}
	return src.numbered(numbers)
}

// numbered reads the index records of these lines, successive ones by one read.
func (src *source) numbered(numbers []uint32) ([]sourceLine, error) {
	lines := make([]sourceLine, len(numbers))
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
			lines[i] = sourceLine{Line: records[i], number: numbers[i], input: in}
		}
	}
	return lines, nil
}
