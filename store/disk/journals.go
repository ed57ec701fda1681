package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// Journals implements [store.Journals].
type Journals struct {
	store *Store

	mu   sync.Mutex
	open map[store.ChunkID]*journal // the newest writer of each chunk in this process
}

var _ store.Journals = (*Journals)(nil)

// Durability implements [store.Journals].
func (js *Journals) Durability() store.Durability {
	return store.Durability{Delay: js.store.opts.CommitAfter,
		Bytes: int64(js.store.opts.CommitBytes)}
}

func (js *Journals) dir(batch string) (string, error) {
	if err := checkName(batch); err != nil {
		return "", err
	}
	return filepath.Join(js.store.dir, "journals", batch), nil
}

func (js *Journals) path(id store.ChunkID) (string, error) {
	dir, err := js.dir(id.Batch)
	return filepath.Join(dir, strconv.Itoa(id.Index)+".journal"), err
}

// Open implements [store.Journals].
func (js *Journals) Open(
	ctx context.Context, id store.ChunkID, epoch int64, replay func(store.Record),
	committed func(store.Commit),
) (store.Journal, error) {
	j, err := js.openAt(ctx, id, epoch, replay, committed)
	if err != nil {
		return nil, fmt.Errorf("open journal %d of batch %s: %w", id.Index, id.Batch, err)
	}
	return j, nil
}

func (js *Journals) openAt(
	ctx context.Context, id store.ChunkID, epoch int64, replay func(store.Record),
	committed func(store.Commit),
) (*journal, error) {
	path, err := js.path(id)
	if err != nil {
		return nil, err
	}
	f, err := js.openFile(path)
	if err != nil {
		return nil, err
	}
	j := &journal{id: id, epoch: epoch, commits: js.store.commits, reserve: js.store.reserve,
		presence: js.store.presence, committed: committed, file: f}
	j.forget = func() { js.forget(j) }
	if err := js.start(ctx, j, replay); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// openFile opens the journal for appending; a new one gets a durable name.
func (js *Journals) openFile(path string) (file, error) {
	const flag = os.O_RDWR | os.O_APPEND
	f, err := js.store.openFile(path, flag)
	if err == nil {
		return f, js.name(f, path)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if f, err = js.store.openFile(path, flag|os.O_CREATE); err != nil {
		return nil, err
	}
	return f, js.name(f, path)
}

// name makes the name of a new journal durable, also of one whose creator failed to. It closes the
// file if it can't.
func (js *Journals) name(f file, path string) error {
	size, err := f.Size()
	if err == nil && size == 0 {
		err = js.store.opts.syncDir(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// start fences lower epochs, replays, and makes j the chunk's writer in this process.
func (js *Journals) start(ctx context.Context, j *journal, replay func(store.Record)) error {
	// Look first: neither may a record be replayed nor a fence be left by somebody who comes too
	// late.
	if err := js.look(ctx, j); err != nil {
		return err
	}
	if _, err := j.file.Write(appendFrame(nil, fenceFrame, j.epoch, &store.Record{})); err != nil {
		return fmt.Errorf("append fence: %w", err)
	}
	// Not for the fence alone: records of a process that was killed may stand in the file without
	// being durable, and whoever has them replayed takes them for done.
	if err := j.file.Sync(); err != nil {
		return err
	}
	if err := js.register(j); err != nil {
		return err
	}
	if err := js.replay(ctx, j, replay); err != nil {
		js.forget(j)
		return err
	}
	return nil
}

// look returns ErrFenced when the file knows a higher epoch.
func (js *Journals) look(ctx context.Context, j *journal) error {
	size, err := j.file.Size()
	if err != nil {
		return err
	}
	s := newScanner(j.file, 0, size)
	for s.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.frame.epoch > j.epoch {
			return store.ErrFenced
		}
	}
	return s.err
}

// replay reads the whole file as it stands now.
func (js *Journals) replay(ctx context.Context, j *journal, each func(store.Record)) error {
	j.io.Lock()
	defer j.io.Unlock()
	size, err := j.file.Size()
	if err != nil {
		return err
	}
	s := newScanner(j.file, 0, size)
	var v validity
	for s.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.frame.epoch > j.epoch {
			return store.ErrFenced
		}
		if v.holds(s.frame) {
			each(s.frame.record)
		}
	}
	j.size = s.frameEnd
	js.tellDamage(j.id, s.damaged)
	return s.err
}

func (js *Journals) tellDamage(id store.ChunkID, bytes int64) {
	if bytes == 0 {
		return
	}
	js.store.damaged.Add(bytes)
	js.store.opts.Logger.Warn(
		"skipped damaged stretches of a journal; the lines they held run again",
		"batch_id", id.Batch, "chunk", id.Index, "bytes", bytes)
}

// register fences the chunk's writer in this process, if there is one.
func (js *Journals) register(j *journal) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.open == nil {
		return errJournalClosed
	}
	if earlier := js.open[j.id]; earlier != nil {
		if earlier.epoch > j.epoch {
			return store.ErrFenced
		}
		earlier.fence()
	}
	js.open[j.id] = j
	return nil
}

func (js *Journals) forget(j *journal) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.open[j.id] == j {
		delete(js.open, j.id)
	}
}

// closeAll closes the journals that are open and lets no more be opened.
func (js *Journals) closeAll() (err error) {
	js.mu.Lock()
	open := js.open
	js.open = nil
	js.mu.Unlock()
	for _, j := range open {
		if closeErr := j.Close(context.Background()); !errors.Is(closeErr, store.ErrFenced) {
			// its owner was told
			err = errors.Join(err, closeErr)
		}
	}
	return err
}

// Read implements [store.Journals].
func (js *Journals) Read(
	ctx context.Context, id store.ChunkID, each func(store.Record, store.Location) error,
) error {
	if err := js.read(ctx, id, each); err != nil {
		return fmt.Errorf("read journal %d of batch %s: %w", id.Index, id.Batch, err)
	}
	return nil
}

func (js *Journals) read(
	ctx context.Context, id store.ChunkID, each func(store.Record, store.Location) error,
) error {
	path, err := js.path(id)
	if err != nil {
		return err
	}
	f, err := js.store.openFile(path, os.O_RDONLY)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	s := newScanner(f, 0, size)
	var v validity
	for s.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !v.holds(s.frame) {
			continue
		}
		at := store.Location{Offset: s.frameAt + fenceSize, Length: uint32(s.result)}
		if err := each(s.frame.record, at); err != nil {
			return err
		}
	}
	js.tellDamage(id, s.damaged-(size-s.frameEnd)) // what ends the file may be a frame under way
	return s.err
}

// Batches implements [store.Journals].
func (js *Journals) Batches(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(js.store.dir, "journals"))
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, fmt.Errorf("list batches with journals: %w", err)
	}
	batches := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() {
			batches = append(batches, e.Name())
		}
	}
	return batches, nil
}

// Remove implements [store.Journals]. Writers that still have a journal open append to a file
// without a name.
func (js *Journals) Remove(ctx context.Context, batch string) error {
	dir, err := js.dir(batch)
	if err == nil {
		err = errors.Join(ctx.Err(), js.store.presence.check())
	}
	if err == nil {
		err = translate(os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("remove journals of batch %s: %w", batch, err)
	}
	return nil
}

// validity decides, frame by frame from the start of a file, which records hold: those that no
// higher epoch came before, and of several for one line the first. Records count like fences, for a
// fence may have been damaged.
type validity struct {
	begun   bool
	highest int64
	lines   map[uint32]struct{}
}

func (v *validity) holds(f frame) bool {
	if v.begun && f.epoch < v.highest {
		return false
	}
	v.begun, v.highest = true, f.epoch
	if f.kind != recordFrame {
		return false
	}
	if _, dup := v.lines[f.record.Line]; dup {
		return false
	}
	if v.lines == nil {
		v.lines = make(map[uint32]struct{})
	}
	v.lines[f.record.Line] = struct{}{}
	return true
}
