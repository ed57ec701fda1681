package disk

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidefill/tidefill/store"
)

// volume is a file system whose space is used by the ballast and, as the test sets, by others.
type volume struct {
	mu            sync.Mutex
	dir           string
	total, others int64
}

func (v *volume) statfs(string) (space, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	used := v.others
	if info, err := os.Stat(filepath.Join(v.dir, ballastName)); err == nil {
		used += info.Size()
	}
	return space{free: max(0, v.total-used), total: v.total}, nil
}

func (v *volume) use(others int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.others = others
}

const mb = 1 << 20

func openOn(t *testing.T, v *volume, reserve int64) *Store {
	t.Helper()
	return openStore(t, v.dir, Options{ReserveBytes: reserve, RetryAfter: time.Millisecond,
		statfs: v.statfs})
}

func TestTheReserveIsNotUsed(t *testing.T) {
	v := &volume{dir: t.TempDir(), total: 1000 * mb}
	s := openOn(t, v, 8*mb)
	if held := s.reserve.ballastSize(); held != 4*mb {
		t.Errorf("the ballast has %d bytes, want %d", held, 4*mb)
	}
	commits := make(chan store.Commit, 1000)
	j, err := s.Journals().Open(t.Context(), chunk, 1, func(store.Record) {}, func(c store.Commit) {
		commits <- c
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Blobs().Create(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}

	v.use(1000*mb - 8*mb) // the ballast and as much again are left
	if err := s.CheckSpace(); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("check space: got %v, want %v", err, store.ErrNoSpace)
	}
	if _, err := s.Blobs().Create(t.Context(), "another"); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("create a blob: got %v, want %v", err, store.ErrNoSpace)
	}
	if _, err := w.Write(make([]byte, mb)); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("write a blob: got %v, want %v", err, store.ErrNoSpace)
	}
	if err := j.Append(t.Context(), store.Record{Line: 1, Result: result(1)}); err != nil {
		t.Fatal(err)
	}
	if c := <-commits; !noSpace(c) {
		t.Errorf("append: got commit %+v", c)
	}

	// Others use all; the ballast is released, and its space is not for blobs.
	v.use(1000*mb - 4*mb)
	if !s.FreeReserve() || s.FreeReserve() {
		t.Error("the reserve was not given up, or twice")
	}
	if free, err := s.FreeBytes(); err != nil || free != 4*mb {
		t.Errorf("%d bytes are free, %v, want %d", free, err, 4*mb)
	}
	if err := s.CheckSpace(); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("check space after the release: got %v, want %v", err, store.ErrNoSpace)
	}
	s.reserve.restore()
	if held := s.reserve.ballastSize(); held != 0 {
		t.Errorf("the ballast has %d bytes although the disk is full", held)
	}

	v.use(1000*mb - 9*mb)
	s.reserve.restore()
	if held := s.reserve.ballastSize(); held != 4*mb {
		t.Errorf("with free space again, the ballast has %d bytes, want %d", held, 4*mb)
	}
	if err := s.CheckSpace(); err != nil {
		t.Errorf("check space again: %v", err)
	}
	for c := range commits {
		if c.Err == nil && c.Records == 1 {
			break
		}
	}
}

func TestTemporaryFilesHaveTheSpaceBesideTheReserve(t *testing.T) {
	for _, test := range []struct{ others, reserve, want int64 }{
		{900 * mb, 8 * mb, 92 * mb}, {999 * mb, 8 * mb, 0}, {900 * mb, 0, 100 * mb},
		{1000 * mb, 0, 0},
	} {
		v := &volume{dir: t.TempDir(), total: 1000 * mb}
		s := openOn(t, v, test.reserve)
		v.use(test.others)
		if got, err := s.TemporarySpace(); err != nil || got != test.want {
			t.Errorf("%+v: got %d, %v", test, got, err)
		}
	}
}

// What temporary files have counts as theirs, until they are closed.
func TestTemporaryFilesHaveTheSpaceThatTheyUse(t *testing.T) {
	v := &volume{dir: t.TempDir(), total: 1000 * mb}
	s := openOn(t, v, 8*mb)
	f, err := s.Temporary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 3*mb)); err != nil {
		t.Fatal(err)
	}
	v.use(900*mb + 3*mb)
	if got, err := s.TemporarySpace(); err != nil || got != 92*mb {
		t.Errorf("got %d, %v, want %d", got, err, 92*mb)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.TemporarySpace(); err != nil || got != 89*mb {
		t.Errorf("after the file, which another one has replaced: got %d, %v", got, err)
	}
}

// What waits on a full disk differs if only temporary files are on it.
func TestTheLogSaysWhatWaitsOnAFullDisk(t *testing.T) {
	for scratch, want := range map[bool]string{false: "no new lines and no uploads until",
		true: "no new lines whose answers are too large for memory until"} {
		var log bytes.Buffer
		v := &volume{dir: t.TempDir(), total: 1000 * mb, others: 1000 * mb}
		openStore(t, v.dir, Options{ReserveBytes: 8 * mb, statfs: v.statfs, Scratch: scratch,
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if !strings.Contains(log.String(), want) {
			t.Errorf("scratch is %v: logged %s, want %q", scratch, log.String(), want)
		}
	}
}

func TestTheReserveIsScaledAndCanBeNone(t *testing.T) {
	for _, test := range []struct{ total, asked, want int64 }{
		{1000 * mb, 8 * mb, 4 * mb}, {64 * mb, 64 * mb, 2 * mb}, {1000 * mb, 0, 0},
		{1000 * mb, -1, 0},
	} {
		v := &volume{dir: t.TempDir(), total: test.total}
		if held := openOn(t, v, test.asked).reserve.ballastSize(); held != test.want {
			t.Errorf("%+v: the ballast has %d bytes", test, held)
		}
	}
}

func TestAStartOnAFullDiskReleasesTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &volume{dir: t.TempDir(), total: 1000 * mb}
		if err := openOn(t, v, 8*mb).Close(); err != nil {
			t.Fatal(err)
		}
		v.use(1000*mb - 4*mb)
		s := openOn(t, v, 8*mb)
		if free, err := s.FreeBytes(); err != nil || free != 4*mb {
			t.Errorf("%d bytes are free, %v, want the ballast's %d", free, err, 4*mb)
		}
		v.use(0)
		time.Sleep(watchEvery) // in the time of the test
		synctest.Wait()
		if size := s.reserve.ballastSize(); size != 4*mb {
			t.Errorf("the ballast has %d bytes, want %d", size, 4*mb)
		}
	})
}

func TestFillUsesSpaceWithoutHelpOfTheFileSystem(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int64{100_000, 100_000, 200_001} {
		if err := fill(f, size); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(f.Name())
		if err != nil || int64(len(content)) != size || strings.Count(string(content),
			"\x00") > int(size/64) {
			t.Errorf("got %d bytes, %v, want %d random ones", len(content), err, size)
		}
	}
}
