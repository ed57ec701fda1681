package disk

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

func largeOf(size int) func() io.Reader {
	text := strings.Repeat("0123456789", size/10+1)[:size]
	return func() io.Reader { return strings.NewReader(text) }
}

func TestALargeRecordThatTheMediumRefusesCanBeAppendedAgain(t *testing.T) {
	const size = 300 << 10
	for name, refuse := range map[string]func(*medium){
		"write": func(m *medium) { m.space = size / 2 },
		"sync":  func(m *medium) { m.sync = errors.New("broken") },
		"torn": func(m *medium) {
			m.between = func(f *os.File) {
				f.Write(frame.Append(nil, frame.Record, 0, &store.Record{Line: 9}))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t)
			f.append(1)
			f.want("a small record", commitOf(1))
			f.medium.set(func() { refuse(f.medium) })
			if err := f.journal.AppendFrom(t.Context(), store.Record{Line: 2}, size, largeOf(
				size)); err == nil {
				t.Fatal("the medium refused, AppendFrom did not")
			}
			f.medium.set(func() { f.medium.space, f.medium.sync = -1, nil })
			f.append(3)
			f.want("a small record after that", commitOf(1))
			if err := f.journal.AppendFrom(t.Context(), store.Record{Line: 2}, size, largeOf(
				size)); err != nil {
				t.Fatal(err)
			}
			f.want("the large record", commitOf(1))
			lines := map[uint32]bool{}
			err := f.store.Journals().Read(t.Context(), chunk, func(
				r store.Record, _ store.Location) error {
				lines[r.Line] = true
				return nil
			})
			if err != nil || len(lines) != 3 || !lines[1] || !lines[2] || !lines[3] {
				t.Errorf("read lines %v, %v", lines, err)
			}
		})
	}
}

func TestALargeRecordThatChangesIsRefused(t *testing.T) {
	f := newFaulty(t)
	for name, second := range map[string]string{"shorter": "ab", "other": "abx"} {
		readings := []string{"abc", second}
		err := f.journal.AppendFrom(t.Context(), store.Record{Line: 1}, 3, func() io.Reader {
			now := readings[0]
			readings = readings[1:]
			return strings.NewReader(now)
		})
		if !errors.Is(err, frame.ErrChanged) {
			t.Errorf("%s: got %v, want %v", name, err, frame.ErrChanged)
		}
	}
	f.append(2)
	f.want("the next record", commitOf(1))
	f.wantLines(2)
}

// slowly is a reader that waits before it begins.
type slowly struct {
	go_ <-chan struct{}
	io.Reader
}

func (s slowly) Read(p []byte) (int, error) {
	<-s.go_
	return s.Reader.Read(p)
}

func TestALargeRecordHoldsNoOtherJournalUp(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{CommitAfter: time.Millisecond})
	commits := make(chan store.Commit, 10)
	open := func(index int) store.Journal {
		j, err := s.Journals().Open(t.Context(), store.ChunkID{Batch: "b", Index: index}, 1,
			func(store.Record) {}, func(c store.Commit) { commits <- c })
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	busy, other := open(0), open(1)
	release, writing := make(chan struct{}), make(chan struct{})
	readings := 0
	done := make(chan error, 1)
	go func() {
		done <- busy.AppendFrom(t.Context(), store.Record{Line: 1}, 1000, func() io.Reader {
			if readings++; readings == 1 {
				return largeOf(1000)()
			}
			close(writing)
			return slowly{release, largeOf(1000)()}
		})
	}()
	<-writing
	for _, j := range []store.Journal{busy, other} {
		if err := j.Append(t.Context(), store.Record{Line: 5, Result: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if c := <-commits; c.Records != 1 || c.Err != nil { // of the other one
		t.Errorf("got commit %+v", c)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	for range 2 {
		if c := <-commits; c.Records != 1 || c.Err != nil {
			t.Errorf("got commit %+v", c)
		}
	}
}

// TestDamagedLargeRecordsAreSkipped flips bits of a journal with a frame that is larger than a
// window.
func TestDamagedLargeRecordsAreSkipped(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	record := func(line, size int) []byte {
		return frame.Append(nil, frame.Record, 1, &store.Record{Line: uint32(line),
			Result: bytes.Repeat([]byte("x"), size)})
	}
	before, large, after := record(1, 10), record(2, 3*frame.Window+17), record(3, 10)
	complete := slices.Concat(before, large, after)
	path := filepath.Join(s.dir, "journals", "b", "0.journal")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (lines []int) {
		if err := os.WriteFile(path, b, 0o640); err != nil {
			t.Fatal(err)
		}
		err := s.Journals().Read(t.Context(), chunk, func(r store.Record, at store.Location) error {
			lines = append(lines, int(r.Line))
			want := store.Location{Offset: int64(len(before) + frame.EmptySize),
				Length: 3*frame.Window + 17}
			if r.Line == 2 && at != want {
				t.Errorf("the large result has the location %+v", at)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	if lines := read(complete); !slices.Equal(lines, []int{1, 2, 3}) {
		t.Fatalf("read lines %v", lines)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for range 50 {
		damaged := slices.Clone(complete)
		damaged[len(before)+random.IntN(len(large))] ^= 1 << random.IntN(8)
		if lines := read(damaged); !slices.Equal(lines, []int{1, 3}) {
			t.Fatalf("read lines %v", lines)
		}
	}
	for _, cut := range []int{len(before) + 5, len(before) + frame.EmptySize,
		len(before) + frame.Window, len(before) + len(large) - 1} {
		if lines := read(complete[:cut]); !slices.Equal(lines, []int{1}) {
			t.Fatalf("cut at %d: read lines %v", cut, lines)
		}
	}
}

func TestTemporaryFilesLeaveNothing(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	f, err := s.Temporary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "hello "); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "world"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
	if err != nil || string(text) != "hello world" {
		t.Errorf("read %q, %v", text, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(s.tmp.path, "answer-*")); err != nil ||
		len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
