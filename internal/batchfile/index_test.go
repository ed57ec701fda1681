package batchfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func indexOf(t *testing.T, file string) []byte {
	t.Helper()
	var index bytes.Buffer
	s := NewScanner(&index, Limits{})
	s.Write([]byte(file))
	if _, err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	return index.Bytes()
}

func TestIndexWindows(t *testing.T) {
	var file strings.Builder
	for i := range 10 {
		file.WriteString(chat(fmt.Sprint(i), "") + "\n")
	}
	index := indexOf(t, file.String())
	x, err := OpenIndex(bytes.NewReader(index), int64(len(index)))
	if err != nil {
		t.Fatal(err)
	}
	window := make([]Line, 4)
	var got []uint32
	for first := 0; ; {
		n, err := x.Read(first, window)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range window[:n] {
			got = append(got, l.Number, l.Row)
		}
		first += n
	}
	want := []uint32{0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	if n, err := x.Read(-1, window); n != 0 || err == nil || err == io.EOF {
		t.Errorf("Read(-1) = %d, %v", n, err)
	}
}

// TestIndexDamage cuts an index at every byte, and changes every byte. Both must be errors.
func TestIndexDamage(t *testing.T) {
	index := indexOf(t, chat("a", "")+"\n"+chat("b", ""))
	readAll := func(b []byte) error {
		x, err := OpenIndex(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return err
		}
		_, err = x.Read(0, make([]Line, x.Len()))
		return err
	}
	if err := readAll(index); err != nil {
		t.Fatal(err)
	}
	for n := range index {
		if err := readAll(index[:n]); !errors.Is(err, errTorn) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(index), err)
		}
		damaged := bytes.Clone(index)
		damaged[n] ^= 0x40
		if err := readAll(damaged); !errors.Is(err, errTorn) {
			t.Errorf("byte %d damaged: %v", n, err)
		}
	}
}

func TestMismatchedLines(t *testing.T) {
	embed := `{"custom_id":"%s","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"x"}}` + "\n"
	file := chat("a", "") + "\n\n" + fmt.Sprintf(embed, "b") + chat("c", "") + "\n" +
		fmt.Sprintf(embed, "d")
	open := func(file string) *Index {
		index := indexOf(t, file)
		x, err := OpenIndex(bytes.NewReader(index), int64(len(index)))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x, alike := open(file), open(chat("a", "")+"\n"+chat("b", "")+"\n")
	for _, tt := range []struct {
		endpoint string
		most     int
		want     []int
	}{
		{"/v1/chat/completions", 10, []int{3, 5}},
		{"/v1/chat/completions", 1, []int{3}},
		{"/v1/embeddings", 10, []int{1, 4}},
		{"/v1/responses", 10, []int{1, 3, 4, 5}},
	} {
		faults, err := MismatchedLines(x, tt.endpoint, tt.most)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, f := range faults {
			if f.Code != CodeURLMismatch || f.Param != "url" || !strings.Contains(f.Message,
				tt.endpoint) {
				t.Errorf("fault %+v", f)
			}
			got = append(got, f.Line)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, at most %d (-want +got):\n%s", tt.endpoint, tt.most, diff)
		}
	}
	faults, err := MismatchedLines(alike, "/v1/responses", 10)
	const want = `The url "/v1/chat/completions" of all lines is not the batch's endpoint ` +
		`"/v1/responses"`
	if err != nil || len(faults) != 1 || faults[0].Line != 1 ||
		!strings.HasPrefix(faults[0].Message, want) {
		t.Errorf("of lines that are alike: %+v, %v", faults, err)
	}
	if faults, err := MismatchedLines(alike, "/v1/chat/completions", 10); len(faults) > 0 {
		t.Errorf("of lines with the endpoint: %+v, %v", faults, err)
	}
}

// full is a disk with space for so many bytes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if n := int(*f); len(p) > n {
		*f = 0
		return n, errors.New("disk full")
	}
	*f -= full(len(p))
	return len(p), nil
}

func TestIndexWriteError(t *testing.T) {
	var file strings.Builder
	for i := range 3_000 { // more records than the writer buffers
		file.WriteString(chat(fmt.Sprint(i), "") + "\n")
	}
	disk := full(10)
	s := NewScanner(&disk, Limits{})
	if n, err := s.Write([]byte(file.String())); n != 0 || err == nil ||
		!strings.Contains(err.Error(), "disk full") {
		t.Errorf("Write = %d, %v", n, err)
	}
	if _, err := s.Finish(); err == nil {
		t.Error("Finish completed an index that could not be written")
	}

	disk = 10
	s = NewScanner(&disk, Limits{})
	if _, err := s.Write([]byte(chat("a", ""))); err != nil {
		t.Errorf("Write within the buffer: %v", err)
	}
	if _, err := s.Finish(); err == nil {
		t.Error("Finish did not return the error of flush")
	}
}
