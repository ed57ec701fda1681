package disk

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Options are what Open takes besides the directory. The zero value is good.
type Options struct {
	// CommitAfter is how long an appended record waits for others to become durable with; 20 ms by
	// default.
	CommitAfter time.Duration
	// CommitBytes is how much may wait, over all journals, before a commit starts at once; 1 MiB by
	// default.
	CommitBytes int
	// RetryAfter is the pause before a refused commit is tried again; 1 s by default.
	RetryAfter time.Duration
	// ReserveBytes is how much room blobs and journals leave on the medium, so that a full one can
	// be emptied; a sixteenth of the file system at most; none by default.
	ReserveBytes int64
	// Logger hears of damage; it is dropped by default.
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
	watching sync.WaitGroup
	gone     bool // the directory, as the log knows; owned by watch
	stop     chan struct{}
	closing  sync.Once
	closed   error // what Close returns
}

// Open opens the data directory, creates what is missing of it and removes what dead processes have
// left half written.
func Open(dir string, opts Options) (*Store, error) {
	s, err := open(dir, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", dir, err)
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
	s.journals = &Journals{store: s, open: make(map[store.ChunkID]*journal)}
	go s.commits.run()
	s.watching.Go(s.watch)
	return s, nil
}

// watchEvery is how often the medium is looked at.
const watchEvery = time.Second

// watch looks at the medium until Close.
func (s *Store) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.look()
		}
	}
}

// look notes in the log when the directory goes and comes back, and keeps the reserve.
func (s *Store) look() {
	was := s.gone
	s.gone = s.presence.check() != nil
	switch {
	case s.gone && !was:
		s.opts.Logger.Error(
			"the data directory is not the one that was opened; nothing is written until it is back", "error", s.presence.check())
	case was && !s.gone:
		s.opts.Logger.Info("the data directory is back", "data", s.dir)
	}
	if !s.gone {
		s.reserve.look()
	}
}

// Present returns store.ErrUnavailable while the directory isn't the one that was opened: it was
// deleted or unmounted.
func (s *Store) Present() error { return s.presence.check() }

// openFile opens a file of the directory, as Options say.
func (s *Store) openFile(path string, flag int) (file, error) {
	f, err := s.opts.openFile(path, flag)
	if err != nil {
		return nil, s.presence.missing(err)
	}
	return f, nil
}

// Room returns store.ErrNoSpace while nothing but the reserve is left on the medium.
func (s *Store) Room() error { return s.reserve.room(1) }

// MakeRoom gives up the reserve for a small write that found no room, and reports whether there was
// one.
func (s *Store) MakeRoom() bool { return s.reserve.giveUp() }

// FreeBytes is the room that is left on the medium for unprivileged writers.
func (s *Store) FreeBytes() (uint64, error) {
	if err := s.Present(); err != nil {
		return 0, err
	}
	space, err := s.reserve.statfs(s.dir)
	return uint64(max(0, space.free)), err
}

// Blobs are the blobs of the directory.
func (s *Store) Blobs() *Blobs { return &Blobs{s} }

// Journals are the journals of the directory.
func (s *Store) Journals() *Journals { return s.journals }

// DamagedBytes counts what journals' readers had to skip since Open.
func (s *Store) DamagedBytes() int64 { return s.damaged.Load() }

// Close flushes and closes all journals. Blobs that aren't committed yet are dropped.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.watching.Wait()
		s.closed = s.journals.closeAll()
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
			"process %s runs under this name already: give every process a node name of its own",
			strings.TrimSpace(string(holder)))
	}
	if err == nil {
		err = errors.Join(f.Truncate(0), writePID(f))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock node name %s: %w", node, err), f.Close())
	}
	return f.Close, nil
}

// writePID tells who holds the lock, for the message that the next one gets.
func writePID(f *os.File) error {
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}
