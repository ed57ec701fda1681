package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// medium is a file system that refuses on cue.
type medium struct {
	mu    sync.Mutex
	space int   // bytes that may still be written; negative: any number
	sync  error // the error of Sync
	// a refused sync loses what was written since the last one, as the page cache of Linux may
	drops    bool
	refusing func()           // called once, before the next refused sync returns
	between  func(f *os.File) // called once in the middle of the next write
	attempts chan struct{}    // one token per refused write or sync
}

func newMedium() *medium { return &medium{space: -1, attempts: make(chan struct{}, 1000)} }

func (m *medium) open(path string, flag int) (file, error) {
	f, err := openFile(path, flag)
	if err != nil {
		return nil, err
	}
	return &faultyFile{osFile: f.(osFile), medium: m}, nil
}

func (m *medium) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

type faultyFile struct {
	osFile
	medium *medium
	synced int64 // size at the last sync
}

func (f *faultyFile) Write(b []byte) (int, error) {
	m := f.medium
	m.mu.Lock()
	defer m.mu.Unlock()
	if between := m.between; between != nil {
		m.between = nil
		n, err := f.osFile.Write(b[:len(b)/2])
		between(f.File)
		rest, restErr := f.osFile.Write(b[len(b)/2:])
		return n + rest, errors.Join(err, restErr)
	}
	if m.space < 0 || len(b) <= m.space {
		m.space -= min(len(b), max(m.space, 0))
		return f.osFile.Write(b)
	}
	n, _ := f.osFile.Write(b[:m.space])
	m.space = 0
	m.attempts <- struct{}{}
	return n, translate(&os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC})
}

func (f *faultyFile) Sync() error {
	f.medium.mu.Lock()
	defer f.medium.mu.Unlock()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if f.medium.sync != nil {
		if f.medium.drops {
			if err := f.lose(f.synced, size); err != nil {
				return err
			}
		}
		err := f.medium.sync
		if refusing := f.medium.refusing; refusing != nil {
			f.medium.refusing = nil
			refusing()
		}
		f.medium.attempts <- struct{}{}
		return err
	}
	f.synced = size
	return f.osFile.Sync()
}

// lose blanks a stretch of the file, through a descriptor that doesn't append.
func (f *faultyFile) lose(from, to int64) error {
	blank, err := os.OpenFile(f.Name(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = blank.WriteAt(make([]byte, to-from), from)
	return errors.Join(err, blank.Close())
}

// faulty is a journal on a medium, with its commits.
type faulty struct {
	t       *testing.T
	medium  *medium
	store   *Store
	journal store.Journal
	commits chan store.Commit
}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{t: t, medium: newMedium(), commits: make(chan store.Commit, 1000)}
	f.store = openStore(t, t.TempDir(), Options{CommitAfter: time.Millisecond,
		RetryAfter: 2 * time.Millisecond, openFile: f.medium.open})
	j, err := f.store.Journals().Open(t.Context(), chunk, 1, func(store.Record) {},
		func(c store.Commit) { f.commits <- c })
	if err != nil {
		t.Fatal(err)
	}
	f.journal = j
	return f
}

func (f *faulty) append(lines ...int) {
	f.t.Helper()
	for _, line := range lines {
		if err := f.journal.Append(f.t.Context(), store.Record{Line: uint32(line), Result: result(
			line)}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// waited is a context that notices when a caller waits for its end.
type waited struct {
	context.Context
	waits chan struct{} // of capacity 1
}

func (w waited) Done() <-chan struct{} {
	select {
	case w.waits <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

func (f *faulty) want(what string, ok func(store.Commit) bool) {
	f.t.Helper()
	if c := <-f.commits; !ok(c) {
		f.t.Errorf("%s: got commit %+v", what, c)
	}
}

// untilRefused waits for the word that the disk is full and returns how many records were durable
// before.
func (f *faulty) untilRefused() (durable int) {
	f.t.Helper()
	for {
		c := <-f.commits
		if noSpace(c) {
			return durable
		}
		if c.Err != nil {
			f.t.Fatalf("full disk: got commit %+v", c)
		}
		durable += c.Records
	}
}

func (f *faulty) wantLines(want ...int) {
	f.t.Helper()
	var lines []int
	err := f.store.Journals().Read(f.t.Context(), chunk,
		func(r store.Record, _ store.Location) error {
			lines = append(lines, int(r.Line))
			return nil
		})
	if err != nil || !slices.Equal(lines, want) {
		f.t.Errorf("read lines %v, %v, want %v", lines, err, want)
	}
}

func noSpace(c store.Commit) bool { return errors.Is(c.Err, store.ErrNoSpace) }

func commitOf(records int) func(store.Commit) bool {
	return func(c store.Commit) bool { return c.Err == nil && c.Records == records }
}

func TestFullDiskIsReportedOnce(t *testing.T) {
	for space := 0; space < 400; space += 13 {
		f := newFaulty(t)
		f.medium.set(func() { f.medium.space = space })
		f.append(1, 2, 3, 4, 5)
		durable := f.untilRefused() // a slow machine may commit the first of them by themselves
		for range 3 {
			<-f.medium.attempts // it tries again by itself
		}
		f.append(6)
		if err := f.journal.Flush(t.Context()); !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("flush on a full disk: got %v, want %v", err, store.ErrNoSpace)
		}
		f.medium.set(func() { f.medium.space = 100 }) // still too little
		<-f.medium.attempts
		<-f.medium.attempts
		f.medium.set(func() { f.medium.space = -1 })
		f.want("space again", commitOf(6-durable))
		f.append(7)
		f.want("next record", commitOf(1))
		if len(f.commits) != 0 {
			t.Errorf("got more commits: %+v", <-f.commits)
		}
		f.wantLines(1, 2, 3, 4, 5, 6, 7)
	}
}

func TestRefusedSyncIsWrittenAgain(t *testing.T) {
	f := newFaulty(t)
	broken := errors.New("broken")
	f.medium.set(func() { f.medium.sync = broken })
	f.append(1, 2)
	f.want("refused sync", func(c store.Commit) bool { return errors.Is(c.Err, broken) })
	f.medium.set(func() { f.medium.sync = nil })
	f.want("sync again", commitOf(2))
	f.append(3)
	if err := f.journal.Close(t.Context()); err != nil {
		t.Error(err)
	}
	f.want("close", commitOf(1))
	f.wantLines(1, 2, 3)
}

func TestFramesLostByARefusedSyncAreWrittenAgain(t *testing.T) {
	f := newFaulty(t)
	f.append(1)
	f.want("first record", commitOf(1))
	eio := translate(&os.PathError{Op: "fdatasync", Path: "journal", Err: syscall.EIO})
	f.medium.set(func() { f.medium.sync, f.medium.drops = eio, true })
	f.append(2, 3)
	f.want("refused sync", func(c store.Commit) bool {
		return errors.Is(c.Err, store.ErrUnavailable)
	})
	for range 3 {
		<-f.medium.attempts // it tries again by itself
	}
	f.append(4)
	f.medium.set(func() { f.medium.sync = nil })
	if err := f.journal.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wantLines(1, 2, 3, 4)
	if err := f.journal.Close(t.Context()); err != nil {
		t.Error(err)
	}
	j, err := f.store.Journals().Open(t.Context(), chunk, 2, func(store.Record) {},
		func(store.Commit) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Error(err)
	}
	f.wantLines(1, 2, 3, 4)
}

func TestFlushWaitsForAnAttemptThatBeganAfterIt(t *testing.T) {
	f := newFaulty(t)
	flushed := make(chan error, 1)
	f.medium.set(func() {
		f.medium.sync = errors.New("broken")
		f.medium.refusing = func() { // the medium recovers, and a caller flushes
			f.medium.sync = nil
			ctx := waited{t.Context(), make(chan struct{}, 1)}
			go func() { flushed <- f.journal.Flush(ctx) }()
			<-ctx.waits
		}
	})
	f.append(1, 2)
	if err := <-flushed; err != nil {
		t.Errorf("flush that began during a refused sync: %v", err)
	}
	f.wantLines(1, 2)
}

func TestAppendTornByAnotherWriterIsWrittenAgain(t *testing.T) {
	f := newFaulty(t)
	late := frame.Append(nil, frame.Record, 0, &store.Record{Line: 9, Result: result(9)})
	f.medium.set(func() { f.medium.between = func(file *os.File) { _, _ = file.Write(late) } })
	f.append(1, 2, 3)
	f.want("torn append", func(c store.Commit) bool { return errors.Is(c.Err, errTorn) })
	f.want("append again", commitOf(3))
	f.append(4)
	f.want("next record", commitOf(1))
	lines := map[uint32]bool{}
	err := f.store.Journals().Read(t.Context(), chunk,
		func(r store.Record, _ store.Location) error {
			lines[r.Line] = true
			return nil
		})
	if err != nil || len(lines) != 4 || lines[9] {
		t.Errorf("read lines %v, %v, want 1 to 4", lines, err)
	}
}

func TestFenceInTheMiddleOfAnAppend(t *testing.T) {
	f := newFaulty(t)
	fence := frame.Append(nil, frame.Fence, 2, &store.Record{})
	f.medium.set(func() { f.medium.between = func(file *os.File) { _, _ = file.Write(fence) } })
	f.append(1, 2, 3)
	f.want("fence", func(c store.Commit) bool {
		return errors.Is(c.Err, store.ErrFenced) && c.Records == 0
	})
	if err := f.journal.Append(t.Context(), store.Record{}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("append after the fence: got %v, want %v", err, store.ErrFenced)
	}
}

func TestFullDiskFailsBlobsCleanly(t *testing.T) {
	m := newMedium()
	s := openStore(t, t.TempDir(), Options{openFile: m.open})
	m.space = 10
	w, err := s.Blobs().Create(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("write: got %v, want %v", err, store.ErrNoSpace)
	}
	if err := w.Commit(t.Context()); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("commit: got %v, want %v", err, store.ErrNoSpace)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	if _, err := s.Blobs().Open(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open: got %v, want %v", err, store.ErrNotFound)
	}
	wantTemporary(t, s, 0)
}

func wantTemporary(t *testing.T, s *Store, want int) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.dir, "tmp", "*", "blob-*"))
	if err != nil || len(left) != want {
		t.Errorf("got temporary files %v, %v, want %d", left, err, want)
	}
}

func TestOpenRemovesTheFilesOfEndedProcesses(t *testing.T) {
	dir := t.TempDir()
	running := openStore(t, dir, Options{})
	if _, err := running.Blobs().Create(t.Context(), "running"); err != nil {
		t.Fatal(err)
	}
	ended := openStore(t, dir, Options{})
	w, err := ended.Blobs().Create(t.Context(), "ended")
	if err != nil {
		t.Fatal(err)
	}
	wantTemporary(t, running, 2)
	// as the end of its process does
	if err := errors.Join(w.(*blobWriter).file.Close(), ended.tmp.lock.Close()); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir, Options{})
	wantTemporary(t, running, 1)
}

func TestNodeNamesAreTakenOnce(t *testing.T) {
	dir := t.TempDir()
	first, second := openStore(t, dir, Options{}), openStore(t, dir, Options{})
	release, err := first.Lock("node-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Lock("node-1"); err == nil || !strings.Contains(err.Error(),
		"node name of its own") {
		t.Errorf("lock a taken name: got %v, want advice", err)
	}
	if _, err := second.Lock("../node-1"); err == nil {
		t.Error("locked a name that is a path")
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = second.Lock("node-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
