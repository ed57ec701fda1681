package batchfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDamageToALineIsFound(t *testing.T) {
	file := []byte("\n" + chat("a", "") + "\n  " + chat("b",
		`,"x":"`+strings.Repeat("x", 2*heldBytes)+`"`) + " \n")
	_, lines := scan(t, string(file), Limits{})
	check := func(l Line) (held, read error) {
		object := objectOf(l, file)
		return l.Check(object), l.CheckFile(bytes.NewReader(file))
	}
	for i, l := range lines {
		if held, read := check(l); held != nil || read != nil {
			t.Fatalf("line %d as it was written: %v, %v", i, held, read)
		}
		for _, at := range []int64{l.Offset, l.Offset + int64(l.Length)/2,
			l.Offset + int64(l.Length) - 1} {
			for bit := range 8 {
				file[at] ^= 1 << bit
				if held, read := check(l); !errors.Is(held, ErrDamaged) || !errors.Is(
					read, ErrDamaged) || !strings.Contains(held.Error(), "line ") {
					t.Errorf("line %d with bit %d of byte %d flipped: %v, %v; want %v", i, bit, at,
						held, read, ErrDamaged)
				}
				file[at] ^= 1 << bit
			}
		}
		file[l.Offset-1] ^= 1 // white space between lines has no checksum
		if held, read := check(l); held != nil || read != nil {
			t.Errorf("line %d, bytes around it changed: %v, %v", i, held, read)
		}
		file[l.Offset-1] ^= 1
	}
	if err := lines[1].CheckFile(bytes.NewReader(file[:len(file)-10])); !errors.Is(err,
		ErrDamaged) {
		t.Errorf("a file that was cut: got %v, want %v", err, ErrDamaged)
	}
	if got := lines[0].VerifiedID([]byte(`"a"`)); string(got) != `"a"` {
		t.Errorf("got the custom_id %s, want it unchanged", got)
	}
	if got := lines[0].VerifiedID([]byte(`"q"`)); string(got) != `"damaged custom_id of line 2"` {
		t.Errorf("got the damaged custom_id %s, want one that names the row", got)
	}
}

func TestDamageToAnIndexIsFound(t *testing.T) {
	var index bytes.Buffer
	s := NewScanner(&index, Limits{})
	io.WriteString(s, chat("a", "")+"\n"+chat("b", ""))
	if _, err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	whole := index.Bytes()
	for at := range whole {
		whole[at] ^= 0x10
		x, err := OpenIndex(bytes.NewReader(whole), int64(len(whole)))
		if err == nil {
			err = x.Check()
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d changed: got %v, want %v", at, err, ErrDamaged)
		}
		whole[at] ^= 0x10
	}
}

// TestIndexOfTheFirstVersion reads an index of an older release, without checksums of lines.
func TestIndexOfTheFirstVersion(t *testing.T) {
	file := chat("a", "") + "\n" + chat("b", "")
	var index bytes.Buffer
	s := NewScanner(&index, Limits{})
	io.WriteString(s, file)
	if _, err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	_, want := scan(t, file, Limits{})
	old := []byte(indexHeader1)
	rest := index.Bytes()[len(indexHeader):]
	for range want {
		fields := rest[:record1Size-4]
		old = binary.LittleEndian.AppendUint32(append(old, fields...),
			crc32.Checksum(fields, castagnoli))
		rest = rest[recordSize:]
	}
	old = append(old, rest...)

	x, err := OpenIndex(bytes.NewReader(old), int64(len(old)))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]Line, 3)
	n, err := x.Read(0, got)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Checksums, want[i].NoChecksums = Checksums{}, true
	}
	if diff := cmp.Diff(want, got[:n]); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if err := errors.Join(got[0].Check([]byte("anything")),
		got[0].CheckFile(strings.NewReader(strings.ToUpper(file)))); err != nil {
		t.Errorf("a line without checksums: got %v, want nil", err)
	}
	if id := got[0].VerifiedID(nil); string(id) != `"damaged custom_id of line 1"` {
		t.Errorf("a custom_id that could not be read: got %s", id)
	}
	if id := got[0].VerifiedID([]byte(`"x"`)); string(id) != `"x"` {
		t.Errorf("a custom_id without a checksum: got %s", id)
	}
}
