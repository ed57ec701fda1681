package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures Open. The zero value uses the defaults.
type Options struct {
	// CommitAfter is the time for which an appended record waits for others, to be committed
	// together. Default: 20 ms.
	CommitAfter time.Duration
	// CommitBytes is the amount of appended records, over all journals, that starts a commit at
	// once. Default: 1 MiB.
	CommitBytes int
	// RetryAfter is the time until a failed commit is tried again. Default: 1 s.
	RetryAfter time.Duration
	// ReserveBytes is the space that blobs and journals leave free on the medium, so that a full
	// one can be emptied. A sixteenth of the file system at most. Default: none.
	ReserveBytes int64
	// Scratch says that blobs and journals are elsewhere, and only temporary files are here.
	Scratch bool
	// Logger receives reports of damage and of a full or missing medium. Default: none.
	Logger *slog.Logger

	openFile func(path string, flag int) (file, error)
	statfs   func(dir string) (space, error)
	syncDir  func(path string) error
}

func (o Options) withDefaults() Options {
	if o.CommitAfter <= 0 {
		o.CommitAfter = 20 * time.Millisecond
	}
	if o.CommitBytes <= 0 {
		o.CommitBytes = 1 << 20
	}
	if o.RetryAfter <= 0 {
		o.RetryAfter = time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.openFile == nil {
		o.openFile = openFile
	}
	if o.statfs == nil {
		o.statfs = spaceOf
	}
	if o.syncDir == nil {
		o.syncDir = syncDir
	}
	return o
}

// Store is an open data directory. Several processes may have the same one open.
type Store struct {
	dir      string
	opts     Options
	tmp      tmpDir
	reserve  *reserve
	presence *presence
	commits  *committer
	journals *Journals
	damaged  atomic.Int64
	// temporary is the number of bytes in temporary files
	temporary atomic.Int64
	locked    sync.Map // the node names that this process has locked
	watching  sync.WaitGroup
	missing   bool // the directory, as logged last; owned by watch
	stop      chan struct{}
	closing   sync.Once
	closed    error // what Close returns
}

// Open opens the data directory, creates what is missing of it, and removes the temporary files of
// processes that have ended. What only an operator can repair is store.ErrRefused.
func Open(dir string, opts Options) (*Store, error) {
	s, err := open(dir, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, refusal(dir, err))
	}
	return s, nil
}

func open(dir string, opts Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	reserve := newReserve(dir, opts)
	reserve.prepare()
	for _, name := range []string{"blobs", "journals", "tmp", "nodes"} {
		if err := makeDir(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	s := &Store{dir: dir, opts: opts, reserve: reserve, commits: newCommitter(opts),
		stop: make(chan struct{})}
	if s.tmp, err = openTmp(filepath.Join(dir, "tmp")); err != nil {
		return nil, err
	}
	s.presence, err = openPresence(dir, filepath.Join(dir, "blobs"), filepath.Join(dir, "journals"),
		s.tmp.path)
	if err != nil {
		return nil, errors.Join(err, s.tmp.close())
	}
	s.journals = &Journals{store: s}
	go s.commits.run()
	s.watching.Go(s.watch)
	return s, nil
}

// watchEvery is the interval of the inspections of the medium.
const watchEvery = time.Second

// watch inspects the medium until Close.
func (s *Store) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.inspect()
		}
	}
}

// inspect logs when the directory is missing and when it is back, and restores the reserve.
func (s *Store) inspect() {
	was := s.missing
	s.missing = s.presence.check() != nil
	switch {
	case s.missing && !was:
		s.opts.Logger.Error("the data directory is not the one that was opened; nothing is "+
			"written until it is moved back", "error", s.presence.check())
	case was && !s.missing:
		s.opts.Logger.Info("the data directory is back", "data", s.dir)
	}
	if !s.missing {
		s.reserve.restore()
	}
}

// Available returns store.ErrUnavailable while the directory is not the one that was opened: it was
// deleted or unmounted.
func (s *Store) Available() error { return s.presence.check() }

// Expect has a file checked from now on, by which the directory is recognized: while it is missing
// or has another content, the directory is not the one that was opened.
func (s *Store) Expect(name, content string) {
	s.presence.expect(filepath.Join(s.dir, name), content)
}

// openFile opens a file of the directory with Options.openFile.
func (s *Store) openFile(path string, flag int) (file, error) {
	f, err := s.opts.openFile(path, flag)
	if err != nil {
		return nil, s.presence.explain(err)
	}
	return f, nil
}

// CheckSpace returns store.ErrNoSpace while the medium has no free space except the reserve.
func (s *Store) CheckSpace() error { return s.reserve.check(1) }

// FreeReserve releases the reserve for a small write that found no space, and reports whether there
// was one.
func (s *Store) FreeReserve() bool { return s.reserve.release() }

// FreeBytes returns the free space of the medium for unprivileged writers.
func (s *Store) FreeBytes() (uint64, error) {
	if err := s.Available(); err != nil {
		return 0, err
	}
	space, err := s.reserve.statfs(s.dir)
	return uint64(max(0, space.free)), err
}

// Blobs returns the blobs of the directory.
func (s *Store) Blobs() *Blobs { return &Blobs{s} }

// Journals returns the journals of the directory.
func (s *Store) Journals() *Journals { return s.journals }

// DamagedBytes returns the number of bytes of journals that were damaged and skipped since Open.
func (s *Store) DamagedBytes() int64 { return s.damaged.Load() }

// Close flushes and closes all journals, and drops blobs that are not committed.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.watching.Wait()
		s.closed = s.journals.open.CloseAll()
		s.commits.close()
		s.closed = errors.Join(s.closed, s.tmp.close(), s.presence.close())
	})
	return s.closed
}

// Lock makes this process the only one that runs under the node's name in this directory, until
// release or its end.
func (s *Store) Lock(node string) (release func() error, err error) {
	if err := checkName(node); err != nil {
		return nil, fmt.Errorf("lock node name: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "nodes", node+".lock"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("lock node name %s: %w", node, err)
	}
	free, err := flock(f, false)
	if err == nil && !free {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		err = fmt.Errorf(
			"process %s runs under this name already; give every process a node name of its own",
			strings.TrimSpace(string(holder)))
	}
	if err == nil {
		err = errors.Join(f.Truncate(0), writePID(f))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock node name %s: %w", node, err), f.Close())
	}
	s.locked.Store(node, true)
	return func() error {
		s.locked.Delete(node)
		return f.Close()
	}, nil
}

// ID returns the random id of the directory, which the first call writes into it.
func (s *Store) ID() (string, error) {
	path := filepath.Join(s.dir, "nodes", "directory-id")
	id, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = linkNew(path, rand.Text()+"\n"); err == nil {
			id, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return "", fmt.Errorf("identify data directory %s: %w", s.dir, err)
	}
	return strings.TrimSpace(string(id)), nil
}

// linkNew makes a complete file unless there is one, also if several processes begin at once.
func linkNew(path, content string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(content)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err = os.Link(draft.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// OtherNodes returns the node names under which other processes have the directory open.
func (s *Store) OtherNodes() (nodes []string, err error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "nodes", "*.lock"))
	for _, name := range names {
		held, lockErr := isHeld(name)
		if err = errors.Join(err, lockErr); held {
			nodes = append(nodes, strings.TrimSuffix(filepath.Base(name), ".lock"))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find the nodes that use %s: %w", s.dir, err)
	}
	return slices.DeleteFunc(nodes, s.locks), nil
}

// isHeld reports whether a process holds the lock of a file.
func isHeld(name string) (bool, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	free, err := flock(f, false)
	return !free && err == nil, err
}

// locks reports whether this process has locked the name.
func (s *Store) locks(node string) bool {
	_, locked := s.locked.Load(node)
	return locked
}

// writePID writes the process that holds the lock, for the error that another process gets.
func writePID(f *os.File) error {
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}
