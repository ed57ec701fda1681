package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// volume is a file system of which only the ballast takes room, and what a test says that others
// take.
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

func (v *volume) take(others int64) {
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

func TestTheReserveIsLeftAlone(t *testing.T) {
	v := &volume{dir: t.TempDir(), total: 1000 * mb}
	s := openOn(t, v, 8*mb)
	if held := s.reserve.ballastSize(); held != 4*mb {
		t.Errorf("the ballast has %d bytes, want %d", held, 4*mb)
	}
	told := make(chan store.Commit, 1000)
	j, err := s.Journals().Open(t.Context(), chunk, 1, func(store.Record) {}, func(c store.Commit) {
		told <- c
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Blobs().Create(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}

	v.take(1000*mb - 8*mb) // the ballast and as much again are left
	if err := s.CheckSpace(); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("room: got %v, want %v", err, store.ErrNoSpace)
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
	if c := <-told; !noSpace(c) {
		t.Errorf("append: was told %+v", c)
	}

	// Others take all; the ballast goes, and is no room for blobs.
	v.take(1000*mb - 4*mb)
	if !s.FreeReserve() || s.FreeReserve() {
		t.Error("the reserve was not given up, or twice")
	}
	if free, err := s.FreeBytes(); err != nil || free != 4*mb {
		t.Errorf("%d bytes are free, %v, want %d", free, err, 4*mb)
	}
	if err := s.CheckSpace(); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("room in the ballast's place: got %v, want %v", err, store.ErrNoSpace)
	}
	s.reserve.restore()
	if held := s.reserve.ballastSize(); held != 0 {
		t.Errorf("the ballast has taken %d bytes although there is no room", held)
	}

	v.take(1000*mb - 9*mb)
	s.reserve.restore()
	if held := s.reserve.ballastSize(); held != 4*mb {
		t.Errorf("with room again, the ballast has %d bytes, want %d", held, 4*mb)
	}
	if err := s.CheckSpace(); err != nil {
		t.Errorf("room again: %v", err)
	}
	for c := range told {
		if c.Err == nil && c.Records == 1 {
			break
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

func TestAStartOnAFullDiskGivesUpTheReserve(t *testing.T) {
	v := &volume{dir: t.TempDir(), total: 1000 * mb}
	if err := openOn(t, v, 8*mb).Close(); err != nil {
		t.Fatal(err)
	}
	v.take(1000*mb - 4*mb)
	s := openOn(t, v, 8*mb)
	if free, err := s.FreeBytes(); err != nil || free != 4*mb {
		t.Errorf("%d bytes are free, %v, want the ballast's %d", free, err, 4*mb)
	}
	v.take(0)
	for s.reserve.ballastSize() == 0 { // it looks every second by itself
		time.Sleep(10 * time.Millisecond)
	}
}

func TestFillTakesRoomWithoutHelpOfTheFileSystem(t *testing.T) {
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
