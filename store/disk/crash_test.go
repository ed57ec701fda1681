package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

var chunk = store.ChunkID{Batch: "b", Index: 0}

func openStore(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func result(line int) []byte { return fmt.Appendf(nil, "{\"custom_id\":\"%d\"}\n", line) }

// journalOf writes a journal of two epochs and returns its bytes and the frames' ends.
func journalOf(t testing.TB, lines int) (b []byte, ends []int) {
	add := func(k frame.Kind, epoch int64, r store.Record) {
		b = frame.Append(b, k, epoch, &r)
		ends = append(ends, len(b))
	}
	add(frame.Fence, 1, store.Record{})
	for line := range lines {
		if line == lines/2 {
			add(frame.Fence, 2, store.Record{})
		}
		add(frame.Record, 1+int64(line/(lines/2)), store.Record{Line: uint32(line), Result: result(
			line)})
	}
	return b, ends
}

// linesIn reads the lines of a journal with these bytes.
func linesIn(t testing.TB, s *Store, b []byte) (lines []int) {
	t.Helper()
	path := filepath.Join(s.dir, "journals", "b", "0.journal")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o640); err != nil {
		t.Fatal(err)
	}
	err := s.Journals().Read(t.Context(), chunk, func(r store.Record, at store.Location) error {
		if string(r.Result) != string(result(int(r.Line))) ||
			string(b[at.Offset:at.Offset+int64(at.Length)]) != string(r.Result) {
			return fmt.Errorf("line %d has result %q", r.Line, r.Result)
		}
		lines = append(lines, int(r.Line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// wholeLines are the lines whose frames lie in b[:cut] and are not hit.
func wholeLines(ends []int, cut int, hit func(start, end int) bool) (lines []int) {
	start, line := 0, 0
	half := (len(ends) - 2) / 2
	for i, end := range ends {
		fence := i == 0 || i == half+1
		if !fence && end <= cut && (hit == nil || !hit(start, end)) {
			lines = append(lines, line)
		}
		if !fence {
			line++
		}
		start = end
	}
	return lines
}

func TestJournalIsCutAtEveryByte(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	b, ends := journalOf(t, 8)
	for cut := range len(b) + 1 {
		if lines, want := linesIn(t, s, b[:cut]), wholeLines(ends, cut, nil); !slices.Equal(lines,
			want) {
			t.Fatalf("cut at %d: got lines %v, want %v", cut, lines, want)
		}
	}
}

func TestJournalGoesOnAfterATornTail(t *testing.T) {
	complete, ends := journalOf(t, 4)
	for cut := ends[2]; cut <= len(complete); cut += 7 {
		s := openStore(t, t.TempDir(), Options{})
		want := linesIn(t, s, complete[:cut])
		j, err := s.Journals().Open(t.Context(), chunk, 3, func(store.Record) {},
			func(store.Commit) {})
		if err != nil {
			t.Fatal(err)
		}
		for line := 100; line < 103; line++ {
			if err := j.Append(t.Context(), store.Record{Line: uint32(line), Result: result(
				line)}); err != nil {
				t.Fatal(err)
			}
			want = append(want, line)
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(s.dir, "journals", "b", "0.journal"))
		if err != nil {
			t.Fatal(err)
		}
		if lines := linesIn(t, s, b); !slices.Equal(lines, want) {
			t.Fatalf("cut at %d: got lines %v, want %v", cut, lines, want)
		}
	}
}

func TestFlippedBitsCostTheFramesTheyHit(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	b, ends := journalOf(t, 6)
	for at := range len(b) {
		damaged := slices.Clone(b)
		damaged[at] ^= 1 << (at % 8)
		want := wholeLines(ends, len(b), func(start, end int) bool {
			return start <= at && at < end
		})
		if lines := linesIn(t, s, damaged); !slices.Equal(lines, want) {
			t.Fatalf("bit flipped in byte %d: got lines %v, want %v", at, lines, want)
		}
	}
	if s.DamagedBytes() == 0 {
		t.Error("no damage was counted")
	}
}

// TestDamageAnywhere overwrites stretches of a journal that is larger than a scanner's window.
func TestDamageAnywhere(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	b, ends := journalOf(t, 6000)
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		damaged := slices.Clone(b)
		from := random.IntN(len(b))
		to := min(len(b), from+1+random.IntN(4*frame.Window/3))
		for i := from; i < to; i++ {
			damaged[i] = byte(random.Uint32()) | 1
		}
		copy(damaged[from:to], b[:4]) // looks like a frame
		want := wholeLines(ends, len(b), func(start, end int) bool {
			return start < to && from < end && string(b[start:end]) != string(damaged[start:end])
		})
		if lines := linesIn(t, s, damaged); !slices.Equal(lines, want) {
			t.Fatalf("bytes %d to %d overwritten: got %d lines, want %d", from, to, len(lines),
				len(want))
		}
	}
}

func TestLateFramesOfLowerEpochsAreIgnored(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	record := func(epoch int64, line int) []byte {
		return frame.Append(nil, frame.Record, epoch, &store.Record{Line: uint32(line),
			Result: result(line)})
	}
	fence := func(epoch int64) []byte {
		return frame.Append(nil, frame.Fence, epoch, &store.Record{})
	}
	b := slices.Concat(fence(1), record(1, 1), fence(3), record(1, 2), record(3, 3), fence(2),
		record(2, 4), record(3, 5),
		record(4, 6), record(3, 7)) // whose fence was lost
	if lines, want := linesIn(t, s, b), []int{1, 3, 5, 6}; !slices.Equal(lines, want) {
		t.Errorf("got lines %v, want %v", lines, want)
	}
	if _, err := s.Journals().Open(t.Context(), chunk, 3, func(store.Record) {},
		nil); !errors.Is(err, store.ErrFenced) {
		t.Errorf("open below a record's epoch: got %v, want %v", err, store.ErrFenced)
	}
}

func FuzzScanner(f *testing.F) {
	complete, ends := journalOf(f, 4)
	f.Add(complete, []byte{})
	f.Add(complete[:ends[3]+9], complete)
	f.Add([]byte("\xF5Tj\n\xff\xff\xff\x0f"), complete)
	whole := frame.Append(nil, frame.Record, 7, &store.Record{Line: 7, Result: result(7)})
	f.Fuzz(func(t *testing.T, before, after []byte) {
		// A complete frame is found whatever surrounds it, unless it is inside of another complete
		// one.
		b := slices.Concat(before, whole, after)
		s := frame.NewScanner(byteReader(b), 0, int64(len(b)))
		covered, found := int64(0), false
		for s.Next() {
			if s.From < covered {
				t.Fatalf("frame at %d overlaps the one that ends at %d", s.From, covered)
			}
			covered = s.To
			found = found || s.From <= int64(len(before)) && int64(len(before)) < s.To
		}
		if s.Err == nil && !found {
			t.Fatalf("the frame at %d was skipped", len(before))
		}
	})
}

type byteReader []byte

func (b byteReader) ReadAt(p []byte, at int64) (int, error) { return copy(p, b[at:]), nil }

func TestScannerFindsFramesAcrossWindows(t *testing.T) {
	whole := frame.Append(nil, frame.Record, 1, &store.Record{Line: 1, Result: result(1)})
	for at := frame.Window - len(whole) - 1; at <= frame.Window+1; at++ {
		b := append(make([]byte, at), whole...)
		b = append(b, make([]byte, frame.Window)...)
		s := frame.NewScanner(byteReader(b), 0, int64(len(b)))
		if !s.Next() || s.From != int64(at) {
			t.Fatalf("frame at %d wasn't found", at)
		}
	}
}
