package segments

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
	"github.com/tidefill/tidefill/store/journals"
)

// Journals implements [store.Journals]. It has a goroutine that commits, one that compacts and one
// that sweeps.
type Journals struct {
	objects  Objects
	registry Registry
	opts     Options
	keys     *keys
	queue    *budget
	commits  *committer
	compacts *compactor
	cache    *cache
	prepared prepared
	large    journals.Large
	damaged  atomic.Int64
	open     journals.Writers

	stop    context.CancelFunc
	running sync.WaitGroup
}

var (
	_ store.Journals        = (*Journals)(nil)
	_ store.JournalPreparer = (*Journals)(nil)
	_ store.SettledJournals = (*Journals)(nil)
)

// Open returns the journals on an object storage and a registry. Its background work runs until
// Close.
func Open(
	ctx context.Context, objects Objects, registry Registry, opts Options,
) (*Journals, error) {
	process, now, err := registry.Enroll(ctx)
	if err != nil {
		return nil, fmt.Errorf("open journals: %w", err)
	}
	js := &Journals{objects: objects, registry: registry, opts: opts.withDefaults(),
		keys:  &keys{process: process},
		large: journals.NewLarge()}
	js.keys.learn(now)
	js.queue = newBudget(js.opts.QueueBytes)
	js.cache = newCache(js.opts.CacheBytes)
	js.commits = newCommitter(js)
	js.compacts = newCompactor(js)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	js.stop = stop
	js.running.Go(func() { js.commits.run(background) })
	js.running.Go(func() { js.compacts.run(background) })
	js.running.Go(func() { js.sweepUntil(background) })
	return js, nil
}

// Close flushes and closes the open journals, and ends the background work.
func (js *Journals) Close() (err error) {
	err = js.open.CloseAll()
	js.stop()
	js.running.Wait()
	return err
}

// Durability implements [store.Journals].
func (js *Journals) Durability() store.Durability {
	return store.Durability{Delay: js.opts.CommitFewAfter, Bytes: int64(js.opts.CommitBytes)}
}

// DamagedBytes returns the number of bytes that readers have skipped since Open because they were
// damaged or lost.
func (js *Journals) DamagedBytes() int64 { return js.damaged.Load() }

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
	if err := errors.Join(ctx.Err(), checkBatch(id.Batch)); err != nil {
		return nil, err
	}
	fence := Fence{id, epoch}
	ranges, ok := js.prepared.take(fence)
	if !ok {
		var err error
		if ranges, err = js.registry.Fence(ctx, fence); err != nil {
			return nil, err
		}
	}
	j := &journal{js: js, Log: journals.Log{ID: id, Epoch: epoch, Committed: committed}}
	j.Queue = j
	if err := js.open.Enter(&j.Log, j); err != nil {
		return nil, err
	}
	r := &reader{js: js, id: id, ranges: ranges}
	err := r.records(ctx, func(rec store.Record, _ store.Location) error {
		replay(rec)
		return nil
	})
	if err != nil {
		js.open.Forget(&j.Log)
		return nil, err
	}
	js.compacts.adopt(r.ranges)
	return j, nil
}

// Read implements [store.Journals].
func (js *Journals) Read(
	ctx context.Context, id store.ChunkID, each func(store.Record, store.Location) error,
) error {
	r, err := js.reader(ctx, id)
	if err != nil {
		return fmt.Errorf("read journal %d of batch %s: %w", id.Index, id.Batch, err)
	}
	return r.read(ctx, each)
}

func (r *reader) read(
	ctx context.Context, each func(store.Record, store.Location) error,
) error {
	if err := r.records(ctx, each); err != nil {
		return fmt.Errorf("read journal %d of batch %s: %w", r.id.Index, r.id.Batch, err)
	}
	return nil
}

// records calls each for every valid record of the journal.
func (r *reader) records(
	ctx context.Context, each func(store.Record, store.Location) error,
) error {
	s := frame.NewScanner(r.at(ctx), 0, r.size())
	if err := s.Records(ctx, each); err != nil && s.Err == nil {
		return err // of each
	}
	if s.Damaged > 0 {
		r.js.damaged.Add(s.Damaged)
		r.js.opts.Logger.WarnContext(ctx,
			"skipped damaged parts of a journal; their lines are sent again",
			"batch_id", r.id.Batch, "chunk", r.id.Index, "bytes", s.Damaged)
	}
	return s.Err
}

// Batches implements [store.Journals].
func (js *Journals) Batches(ctx context.Context) ([]string, error) {
	batches, err := js.registry.Batches(ctx)
	if err != nil {
		return nil, fmt.Errorf("list batches with journals: %w", err)
	}
	return batches, nil
}

// Remove implements [store.Journals]. Writers that have a journal open are fenced at their next
// commit.
func (js *Journals) Remove(ctx context.Context, batch string) error {
	err := checkBatch(batch)
	if err == nil {
		err = js.registry.Remove(ctx, batch)
	}
	if err != nil {
		return fmt.Errorf("remove journals of batch %s: %w", batch, err)
	}
	return nil
}

// checkBatch accepts the names that every backend accepts.
func checkBatch(name string) error {
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%q can't be a batch's name", name)
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.':
		default:
			return fmt.Errorf("%q can't be a batch's name: use letters, digits, '-', '_' and '.'",
				name)
		}
	}
	return nil
}
