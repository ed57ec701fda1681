package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

// sourceLine is a line with what it takes to send it.
type sourceLine struct {
	batchfile.Line
	number uint32 // in its batch
	input  *sourceInput
	object []byte // its JSON, while it is kept in memory; nil: read it from the blob
	damage error  // set when it was fetched: the file holds other bytes than were uploaded

	requests uint16 // that were sent for it, as far as an upstream may have received them
	recorded bool   // its result is in the journal
}

func (l *sourceLine) model() string { return l.input.models[l.Model] }
func (l *sourceLine) url() string   { return l.input.urls[l.URL] }

// inMemory bounds what a line may weigh to be kept in memory; larger ones, and those for which
// memory is short, are read from the blob when they are sent.
const inMemory = 256 << 10

// release gives back the memory that the line's object takes.
func (l *sourceLine) release(inputs *share) {
	inputs.Give(int64(len(l.object)))
	l.object = nil
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

// inputOf finds the input that a line of the batch stands in.
func (src *source) inputOf(number uint32) *sourceInput {
	i, found := slices.BinarySearchFunc(src.inputs, int(number), func(in sourceInput, n int) int {
		return cmp.Compare(in.First, n)
	})
	if !found {
		i--
	}
	return &src.inputs[i]
}

// at reads the index records of count positions from first on.
func (src *source) at(first, count int) ([]sourceLine, error) {
	numbers := make([]uint32, count)
	if err := src.order.lines(first, numbers); err != nil {
		return nil, err
	}
	return src.numbered(numbers)
}

// numbered reads the index records of these lines, one window for each run of neighbours.
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

// fetch reads the wanted lines' objects into memory, neighbours in the file by one read. Long lines
// stay in the blob, and so do those for which there is no room. All are compared with their
// checksums; those that don't agree are marked. On an error it keeps none.
func fetch(lines []sourceLine, inputs *share, want func(slot int) bool) (err error) {
	slots := make([]int, 0, len(lines))
	for i := range lines {
		switch l := &lines[i]; {
		case !want(i):
		case l.Length <= inMemory && inputs.Take(int64(l.Length)):
			slots = append(slots, i)
		default:
			if err := l.mark(l.CheckFile(l.input.blob)); err != nil {
				return fmt.Errorf("read input %s: %w", l.input.FileID, err)
			}
		}
	}
	left := slots // for which room was taken, and which are not read yet
	defer func() {
		for _, slot := range left {
			inputs.Give(int64(lines[slot].Length))
		}
	}()
	slices.SortFunc(slots, func(a, b int) int {
		return cmp.Or(cmp.Compare(lines[a].input.First, lines[b].input.First),
			cmp.Compare(lines[a].Offset, lines[b].Offset))
	})
	const gap = 4 << 10 // what is cheaper to read over than to skip
	// lines are copied out of it, so that the last of a chunk doesn't keep the memory of all
	var window []byte
	for i := 0; i < len(slots); {
		first := &lines[slots[i]]
		end := first.Offset + int64(first.Length)
		k := i + 1
		for ; k < len(slots); k++ {
			next := &lines[slots[k]]
			if next.input != first.input || next.Offset > end+gap ||
				next.Offset+int64(next.Length)-first.Offset > inMemory {
				break
			}
			end = next.Offset + int64(next.Length)
		}
		if int64(cap(window)) < end-first.Offset {
			window = make([]byte, end-first.Offset)
		}
		window = window[:end-first.Offset]
		n, err := first.input.blob.ReadAt(window, first.Offset)
		if n < len(window) && err != io.EOF {
			return fmt.Errorf("read input %s: %w", first.input.FileID, err)
		}
		from := first.Offset
		for ; i < k; i++ {
			l := &lines[slots[i]]
			if l.Offset-from+int64(l.Length) > int64(n) {
				l.damage = fmt.Errorf("line %d of the input file is cut: %w", l.Row,
					batchfile.ErrDamaged)
				inputs.Give(int64(l.Length))
				continue
			}
			l.object = bytes.Clone(window[l.Offset-from:][:l.Length])
			_ = l.mark(l.Check(l.object))
		}
		left = slots[i:]
	}
	return nil
}

// mark keeps damage with the line, and returns any other error.
func (l *sourceLine) mark(err error) error {
	if errors.Is(err, batchfile.ErrDamaged) {
		l.damage = err
		return nil
	}
	return err
}

// customID returns the line's custom_id as it stands in the file, quotes included; of a damaged
// one, a name for the line.
func (l *sourceLine) customID() ([]byte, error) {
	if l.object != nil {
		return l.VerifiedID(l.CustomID(l.object)), nil
	}
	literal, err := readSpan(l.input.blob, l.Offset+int64(l.IDOffset), int(l.IDLength))
	if errors.Is(err, io.EOF) { // the file is cut
		literal, err = nil, nil
	}
	return l.VerifiedID(literal), err
}

// body is how to send a line's body: how long it is, and a reader of it for each sending.
func (l *sourceLine) body(e edits) (size int64, open func() io.ReadCloser, err error) {
	if l.damage != nil {
		return 0, nil, l.damage
	}
	switch {
	case l.object == nil && e.none():
		return int64(l.BodyLength), func() io.ReadCloser { return io.NopCloser(l.inBlob()) }, nil
	case l.object == nil:
		pieces, err := batchfile.EditPieces(l.inBlob(), e.defaults, e.overrides, nil)
		return batchfile.Size(pieces), l.joining(pieces), err
	case e.none():
		return int64(l.BodyLength), reading(l.Body(l.object)), nil
	}
	edited, err := batchfile.EditBody(make([]byte, 0, int(l.BodyLength)+256), l.Body(l.object),
		e.defaults, e.overrides)
	return int64(len(edited)), reading(edited), err
}

// inBlob reads the body from the blob.
func (l *sourceLine) inBlob() *io.SectionReader {
	return io.NewSectionReader(l.input.blob, l.Offset+int64(l.BodyOffset), int64(l.BodyLength))
}

// joining reads an edited body, of whose pieces most are in the blob.
func (l *sourceLine) joining(pieces []batchfile.Piece) func() io.ReadCloser {
	return func() io.ReadCloser {
		readers := make([]io.Reader, len(pieces))
		for i, p := range pieces {
			if readers[i] = bytes.NewReader(p.Text); p.Text == nil {
				readers[i] = io.NewSectionReader(l.inBlob(), p.At, p.Length)
			}
		}
		return io.NopCloser(io.MultiReader(readers...))
	}
}

// has reports whether the body has a member.
func (l *sourceLine) has(member string) (found bool, err error) {
	if l.object == nil {
		_, err := batchfile.EditPieces(l.inBlob(), nil, nil, func(key string) {
			found = found || key == member
		})
		return found, err
	}
	for name := range batchfile.Members(l.Body(l.object)) {
		found = found || name == member
	}
	return found, nil
}

func reading(body []byte) func() io.ReadCloser {
	return func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }
}

func readSpan(from io.ReaderAt, at int64, n int) ([]byte, error) {
	span := make([]byte, n)
	if got, err := from.ReadAt(span, at); got < n {
		return nil, errors.Join(fmt.Errorf("read %d bytes of input at %d", n, at), err)
	}
	return span, nil
}
