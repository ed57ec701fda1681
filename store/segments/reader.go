package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/store"
)

const (
	// wholeRange is the length up to which a range is read with one request.
	wholeRange = 1 << 20
	// pieceSize is the size of the part of a longer range that is read with one request.
	pieceSize = 512 << 10
	// Up to readAhead pieces, of aheadBytes together, are requested at the same time.
	readAhead  = 8
	aheadBytes = 2 << 20
)

// errLost means that the object of a registered range does not exist.
var errLost = errors.New("an object of the journal is missing in the object storage; restore it " +
	"from a backup, or let its lines be sent again")

// reader reads the journal of one chunk by position. It must not be used by several goroutines at
// once.
type reader struct {
	js     *Journals
	id     store.ChunkID
	ranges []Range // by At, without gaps
}

// piece is a part of a range that is read with one request.
type piece struct {
	id     pieceID
	at     int64 // of its first byte in the journal
	length int64
}

func (js *Journals) reader(ctx context.Context, id store.ChunkID) (*reader, error) {
	if err := checkBatch(id.Batch); err != nil {
		return nil, err
	}
	ranges, err := js.registry.Ranges(ctx, id)
	return &reader{js: js, id: id, ranges: ranges}, err
}

// settled reads journals whose ranges were read together.
type settled struct {
	js     *Journals
	ranges map[store.ChunkID][]Range
}

// Settled implements [store.SettledJournals].
func (js *Journals) Settled(
	ctx context.Context, chunks []store.ChunkID,
) (store.JournalReader, error) {
	ranges, err := js.registry.Ranges(ctx, chunks...)
	if err != nil {
		return nil, fmt.Errorf("read the journals of %d chunks: %w", len(chunks), err)
	}
	s := settled{js: js, ranges: make(map[store.ChunkID][]Range, len(chunks))}
	for _, r := range ranges {
		s.ranges[r.Chunk] = append(s.ranges[r.Chunk], r)
	}
	return s, nil
}

func (s settled) reader(id store.ChunkID) *reader {
	return &reader{js: s.js, id: id, ranges: s.ranges[id]}
}

// Read implements [store.JournalReader].
func (s settled) Read(
	ctx context.Context, id store.ChunkID, each func(store.Record, store.Location) error,
) error {
	return s.reader(id).read(ctx, each)
}

// Results implements [store.JournalReader].
func (s settled) Results(_ context.Context, id store.ChunkID) (store.Results, error) {
	return s.reader(id).results()
}

// size returns the length of the journal.
func (r *reader) size() int64 {
	if len(r.ranges) == 0 {
		return 0
	}
	return r.ranges[len(r.ranges)-1].End()
}

// find returns the index of the range that has a position.
func (r *reader) find(at int64) (int, bool) {
	i, exact := slices.BinarySearchFunc(r.ranges, at, func(g Range, at int64) int {
		switch {
		case g.End() <= at:
			return -1
		case g.At > at:
			return 1
		}
		return 0
	})
	return i, exact
}

// pieceAt returns the piece of a range that has a position.
func pieceAt(g Range, at int64) piece {
	from, length := int64(0), g.Length
	if g.Length > wholeRange {
		from = (at - g.At) / pieceSize * pieceSize
		length = min(pieceSize, g.Length-from)
	}
	return piece{id: pieceID{g.Key, g.Offset + from}, at: g.At + from, length: length}
}

// load returns the bytes of the journal from a position to the end of their piece, at least one.
// errLost: the object is missing; lost is the number of bytes without which the journal goes on.
func (r *reader) load(ctx context.Context, at int64) (data []byte, lost int64, err error) {
	for refreshed := false; ; refreshed = true {
		i, ok := r.find(at)
		if !ok {
			return nil, 0, io.ErrUnexpectedEOF
		}
		p := pieceAt(r.ranges[i], at)
		data = r.js.cache.get(p.id)
		if data == nil {
			data, err = r.fetch(ctx, i, p)
		}
		if err == nil {
			return data[at-p.at:], 0, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, 0, err
		}
		if refreshed {
			return nil, p.at + p.length - at, fmt.Errorf("%w: %v", errLost, p.id.key)
		}
		// It was compacted, and then deleted.
		if err := r.refresh(ctx); err != nil {
			return nil, 0, err
		}
	}
}

// refresh reads the ranges again. Positions stay valid.
func (r *reader) refresh(ctx context.Context) error {
	ranges, err := r.js.registry.Ranges(ctx, r.id)
	if err != nil {
		return err
	}
	if len(ranges) == 0 {
		return fmt.Errorf("the journal was removed: %w", store.ErrNotFound)
	}
	r.ranges = ranges
	return nil
}

// fetch reads a piece of range i, and at the same time the ones after it that the cache does not
// have.
func (r *reader) fetch(ctx context.Context, i int, first piece) ([]byte, error) {
	wanted := []piece{first}
	bytes := first.length
	for g, at := i, first.at+first.length; len(wanted) < readAhead; {
		if at == r.ranges[g].End() {
			if g++; g == len(r.ranges) {
				break
			}
		}
		p := pieceAt(r.ranges[g], at)
		if bytes+p.length > aheadBytes {
			break
		}
		if r.js.cache.get(p.id) == nil {
			wanted = append(wanted, p)
			bytes += p.length
		}
		at += p.length
	}
	var running sync.WaitGroup
	var data []byte
	var err error
	for n, p := range wanted {
		running.Go(func() {
			read := make([]byte, p.length)
			readErr := r.js.objects.ReadAt(ctx, p.id.key.String(), read, p.id.offset)
			if readErr == nil {
				r.js.cache.put(p.id, read)
			}
			if n == 0 { // the caller does not need the others yet
				data, err = read, readErr
			}
		})
	}
	running.Wait()
	return data, err
}

// at returns the journal as a file. Lost parts read as zeros, which no record begins with.
func (r *reader) at(ctx context.Context) io.ReaderAt { return &file{ctx: ctx, reader: r} }

// file is the journal for the time of one call, so it may hold the context of that.
type file struct {
	ctx    context.Context
	reader *reader
}

func (f *file) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		data, lost, err := f.reader.load(f.ctx, at+int64(n))
		switch {
		case errors.Is(err, errLost):
			f.reader.js.opts.Logger.WarnContext(f.ctx, "a part of a journal is missing",
				"batch_id", f.reader.id.Batch, "chunk", f.reader.id.Index, "error", err)
			zeros := p[n:min(int64(len(p)), int64(n)+lost)]
			clear(zeros)
			n += len(zeros)
		case err != nil:
			return n, err
		default:
			n += copy(p[n:], data)
		}
	}
	return n, nil
}
