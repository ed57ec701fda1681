package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
	"github.com/tidefill/tidefill/store/journals"
)

// Journals implements [store.Journals].
type Journals struct {
	store *Store
	open  journals.Writers
}

var _ store.Journals = (*Journals)(nil)

// Durability implements [store.Journals].
func (js *Journals) Durability() store.Durability {
	return store.Durability{Delay: js.store.opts.CommitAfter,
		Bytes: int64(js.store.opts.CommitBytes)}
}

// DamagedBytes returns the number of bytes that were damaged and skipped since Open.
func (js *Journals) DamagedBytes() int64 { return js.store.DamagedBytes() }

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
	j := &journal{open: &js.open, commits: js.store.commits, reserve: js.store.reserve,
		presence: js.store.presence, file: f,
		Log: journals.Log{ID: id, Epoch: epoch, Committed: committed}}
	j.Queue = j
	if err := js.start(ctx, j, replay); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// openFile opens the journal for appending. The name of a new one is made durable.
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
		return nil, js.store.presence.explain(err)
	}
	if f, err = js.store.openFile(path, flag|os.O_CREATE); err != nil {
		return nil, err
	}
	return f, js.name(f, path)
}

// name makes the name of an empty journal durable. It closes the file on an error.
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

// start fences lower epochs, makes j the chunk's writer in this process, and replays.
func (js *Journals) start(ctx context.Context, j *journal, replay func(store.Record)) error {
	// Check first: a writer with too low an epoch must neither replay a record nor append a fence.
	if err := js.checkEpoch(ctx, j); err != nil {
		return err
	}
	fence := frame.Append(nil, frame.Fence, j.Epoch, &store.Record{})
	if _, err := j.file.Write(fence); err != nil {
		return fmt.Errorf("append fence: %w", err)
	}
	// Not only for the fence: the file may have records of a killed process that are not durable,
	// and they count as done once they are replayed.
	if err := j.file.Sync(); err != nil {
		return err
	}
	if err := js.open.Enter(&j.Log, j); err != nil {
		return err
	}
	if err := js.replay(ctx, j, replay); err != nil {
		js.open.Forget(&j.Log)
		return err
	}
	return nil
}

// checkEpoch returns ErrFenced if the file has a higher epoch.
func (js *Journals) checkEpoch(ctx context.Context, j *journal) error {
	size, err := j.file.Size()
	if err != nil {
		return err
	}
	s := frame.NewScanner(j.file, 0, size)
	for s.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.Frame.Epoch > j.Epoch {
			return store.ErrFenced
		}
	}
	return s.Err
}

// replay calls each for every valid record of the file.
func (js *Journals) replay(ctx context.Context, j *journal, each func(store.Record)) error {
	j.io.Lock()
	defer j.io.Unlock()
	size, err := j.file.Size()
	if err != nil {
		return err
	}
	s := frame.NewScanner(j.file, 0, size)
	var v frame.Validity
	for s.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.Frame.Epoch > j.Epoch {
			return store.ErrFenced
		}
		if v.Accept(s.Frame) {
			each(s.Frame.Record)
		}
	}
	j.size = s.To
	js.reportDamage(j.ID, s.Damaged)
	return s.Err
}

func (js *Journals) reportDamage(id store.ChunkID, bytes int64) {
	if bytes == 0 {
		return
	}
	js.store.damaged.Add(bytes)
	js.store.opts.Logger.Warn(
		"skipped damaged parts of a journal; their lines are sent again",
		"batch_id", id.Batch, "chunk", id.Index, "bytes", bytes)
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
	s := frame.NewScanner(f, 0, size)
	if err := s.Records(ctx, each); err != nil && s.Err == nil {
		return err // of each
	}
	// the end of the file may be a frame that is being written
	js.reportDamage(id, s.Damaged-(size-s.To))
	return s.Err
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

// Remove implements [store.Journals]. Writers that have a journal open append to a deleted file.
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
