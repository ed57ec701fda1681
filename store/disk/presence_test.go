package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func TestNothingIsWrittenWhileTheDirectoryIsMissing(t *testing.T) {
	for what, takeAway := range map[string]func(dir string) error{
		"moved": func(dir string) error { return os.Rename(dir, dir+"-away") },
		"another in its place": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-away"), os.Mkdir(dir, 0o700))
		},
		"its blobs moved": func(dir string) error {
			return os.Rename(filepath.Join(dir, "blobs"), filepath.Join(dir, "blobs-away"))
		},
		"deleted": os.RemoveAll,
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s := openStore(t, dir, Options{
				CommitAfter: time.Millisecond, RetryAfter: time.Millisecond, ReserveBytes: 1 << 20})
			commits := make(chan store.Commit, 1000)
			ctx := t.Context()
			j, err := s.Journals().Open(ctx, chunk, 1, func(store.Record) {}, func(c store.Commit) {
				commits <- c
			})
			if err != nil {
				t.Fatal(err)
			}
			w, err := s.Blobs().Create(ctx, "files/f")
			if err != nil {
				t.Fatal(err)
			}
			if err := takeAway(dir); err != nil {
				t.Fatal(err)
			}
			s.presence.expire()
			wantGone := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s: got %v, want %v alone", what, err, store.ErrUnavailable)
				}
			}
			wantGone("present", s.Available())
			wantGone("commit a blob", w.Commit(t.Context()))
			_, err = s.Blobs().Create(ctx, "files/g")
			wantGone("create a blob", err)
			_, err = s.Blobs().Open(ctx, "files/f")
			wantGone("open a blob", err)
			wantGone("delete a blob", s.Blobs().Delete(ctx, "files/f"))
			_, err = s.Blobs().List(ctx, "files", "", 0)
			wantGone("list blobs", err)
			_, err = s.Journals().Open(ctx, store.ChunkID{Batch: "c"}, 1, func(store.Record) {},
				func(store.Commit) {})
			wantGone("open a journal", err)
			if what != "its blobs moved" {
				wantGone("read a journal", s.Journals().Read(ctx, chunk, nil))
			}
			wantGone("remove journals", s.Journals().Remove(ctx, chunk.Batch))
			if err := j.Append(t.Context(), store.Record{Line: 1, Result: result(1)}); err != nil {
				t.Fatal(err)
			}
			wantGone("commit a record", (<-commits).Err)
			s.inspect()
			if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 &&
				what != "its blobs moved" {
				t.Errorf("made in the place of the directory: %v", entries)
			}

			away, back := dir+"-away", dir
			if what == "its blobs moved" {
				away, back = filepath.Join(dir, "blobs-away"), filepath.Join(dir, "blobs")
			}
			if _, err := os.Stat(away); err != nil {
				return
			}
			if err := errors.Join(os.RemoveAll(back), os.Rename(away, back)); err != nil {
				t.Fatal(err)
			}
			if c := <-commits; c.Err != nil || c.Records != 1 {
				t.Errorf("with the directory back: got commit %+v", c)
			}
			if w, err := s.Blobs().Create(ctx, "files/g"); err != nil || w.Commit(
				t.Context()) != nil {
				t.Errorf("with the directory back: %v", err)
			}
		})
	}
}

// expire has the next check inspect the directories.
func (p *presence) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checkedAt = time.Time{}
}

func TestTheNextOpenMakesTheNameOfAJournalDurable(t *testing.T) {
	broken := errors.New("broken")
	synced := 0
	fails := true
	s := openStore(t, t.TempDir(), Options{syncDir: func(path string) error {
		if fails {
			return broken
		}
		synced++
		return syncDir(path)
	}})
	open := func() error {
		j, err := s.Journals().Open(t.Context(), chunk, 1, func(store.Record) {},
			func(store.Commit) {})
		if err == nil {
			err = j.Close(t.Context())
		}
		return err
	}
	if err := open(); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	fails = false
	if err := open(); err != nil || synced != 1 {
		t.Errorf("opened again: %v, the directory was made durable %d times, want once", err,
			synced)
	}
	if err := open(); err != nil || synced != 1 {
		t.Errorf("opened a third time: %v, the directory was made durable %d times, want once", err,
			synced)
	}
}
