package batchfile

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scanWindow scans a file with writes of size bytes and a scanner that holds at most window bytes
// of a line.
func scanWindow(t testing.TB, file string, window, write int, limits Limits) (Summary, []Line) {
	t.Helper()
	return scanWith(t, limits, func(s *Scanner) error {
		s.window = window
		for piece := range slices.Chunk([]byte(file), write) {
			piece := bytes.Clone(piece) // the scanner must not keep it
			if _, err := s.Write(piece); err != nil {
				return err
			}
			clear(piece)
		}
		return nil
	})
}

// sameInPieces checks that the result does not depend on whether lines are in memory or in pieces.
func sameInPieces(t testing.TB, file string, limits Limits, writes ...int) {
	t.Helper()
	complete, completeLines := scanWindow(t, file, 1<<30, 1<<30, limits)
	for _, write := range writes {
		for _, window := range []int{4, 40} {
			sum, lines := scanWindow(t, file, window, write, limits)
			if diff := cmp.Diff(complete, sum); diff != "" {
				t.Fatalf("window %d, writes of %d, %q: summary (-in memory +pieces):\n%s", window,
					write, shown([]byte(file)), diff)
			}
			if diff := cmp.Diff(completeLines, lines); diff != "" {
				t.Fatalf("window %d, writes of %d, %q: index (-in memory +pieces):\n%s",
					window, write, shown([]byte(file)), diff)
			}
		}
	}
}

func TestLongLinesReadAsShortOnes(t *testing.T) {
	files := append([]string{}, seeds...)
	image := `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("QUJD", 50) + `"}}]}]`
	for _, more := range []string{
		`,"max_tokens":7`, `,"max_tokens":` + strings.Repeat("9", 100), `,"max_tokens":1e3`,
		`,"stream":true`, `,"stream":null`, `,"x":[1,2.5e-7,-0,true,false,null,{}]`,
		`,"tools":[";base64,;base64;;base64,x\"y"],"prompt":"` + strings.Repeat("p", 3000) + `"`,
		`,"x":"ü€𝄞\u00fc"`, ",\"x\":\"\xf0\x9d\x84\"", `,"x":tru`, `,"x":01`,
		`,"x":-`, `,"x":1.`, `,"x":1e+`, `,"x":"\q"`, `,"x":"\u12`,
		`,"x":` + strings.Repeat("[", 510) + strings.Repeat("]", 510),
		`,"x":` + strings.Repeat("[", 511),
		`,"model":"n"`, `,"mod\u0065l":"n"`, `,"` + strings.Repeat("k", 500) + `":1`,
	} {
		files = append(files, chat("a", more))
	}
	body := func(url, body string) string {
		return `{"custom_id":"a","method":"POST","url":"` + url + `","body":` + body + `}`
	}
	files = append(files,
		body("/v1/chat/completions", `{"model":"m","messages":`+image+`}`),
		`{"body":{"messages":`+image+`,"tools":[1],"model":"m"},"url":"/v1/chat/completions","method":"POST","custom_id":"z"}`,
		body("/v1/embeddings", `{"model":"m","input":["a",["b"],"c" , 1]}`),
		body("/v1/embeddings", `{"model":"m","input":[ ]}`),
		body("/v1/embeddings", `{"model":"m","input":[1,2,3]}`),
		body("/v1/embeddings", `{"model":"m","input":[[1],[2,3]]}`),
		body("/v1/embeddings", `{"model":"m","input":"x"}`),
		body("/v1/embeddings", `{"model":"m"}`),
		body("/v1/rerank", `{"documents":["`+strings.Repeat("d",
			1500)+`"],"query":"q","model":"m"}`),
		body("/v1/nothing", `{"model":"m"}`),
		body("/v1/chat/completions", `{"model":"`+strings.Repeat("m", 600)+`"}`),
		strings.Replace(chat("X", ""), "X", strings.Repeat("i", maxCustomID), 1),
		strings.Replace(chat("X", ""), "X", strings.Repeat("i", maxCustomID+1), 1),
		strings.Replace(chat("X", ""), "X", strings.Repeat(`\u0069`, maxCustomID/6), 1),
		"\xEF\xBB\xBF"+chat("a", "")+"\r\n"+chat("a", "")+"\n \t \n"+chat("b", "")+" \r",
		chat("a", "")+"\n"+strings.Repeat(" ", 300)+"\n"+strings.Repeat(" ", 300),
		chat("a", "")+"\n"+strings.Repeat("x", 300)+"\n"+chat("b", ""),
		strings.Repeat(" ", 100)+chat("a", "")+strings.Repeat("\t", 100),
	)
	for _, file := range files {
		sameInPieces(t, file, Limits{}, 1, 3, 16, 1<<20)
		sameInPieces(t, file, Limits{MaxLineBytes: 200, MaxLines: 2}, 1, 7, 1<<20)
	}
	sameInPieces(t, strings.Join(files, "\n"), Limits{}, 1, 5, 64, 1<<20)
	sameInPieces(t, strings.Join(files, "\n"), Limits{MaxLines: 20, MaxBytes: 5000}, 11, 1<<20)
}

func FuzzPieces(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), 3, 0)
	}
	f.Add([]byte(chat("a", `,"tools":[";base64,x"],"max_tokens":9`)+"\n"+chat("b", "")), 5, 60)
	f.Fuzz(func(t *testing.T, file []byte, write, lineLimit int) {
		sameInPieces(t, string(file), Limits{MaxLineBytes: max(0, lineLimit%200)},
			1+max(0, write%64))
	})
}

func TestLineTooLong(t *testing.T) {
	long := chat("b", `,"x":"`+strings.Repeat("x", 1000)+`"`)
	file := chat("a", "") + "\n" + long + "\n\nnot JSON\n" + chat("c", "")
	for _, window := range []int{4, 1 << 20} {
		sum, lines := scanWindow(t, file, window, 64, Limits{MaxLineBytes: 500})
		want := []Fault{
			{Code: CodeLineTooLong, Line: 2, Message: fmt.Sprintf(
				"The line has %d bytes, the limit is 500; send what it holds in several lines.",
				len(long))},
			{Code: CodeInvalidJSON, Line: 4,
				Message: "This line is not parseable as valid JSON. " +
					"Byte 1: expected true, false or null."},
		}
		if diff := cmp.Diff(want, sum.Faults); diff != "" {
			t.Errorf("window %d: faults (-want +got):\n%s", window, diff)
		}
		if sum.Lines != 4 || len(lines) != 2 {
			t.Errorf("window %d: got %d lines, %d in the index; want 4 and 2", window, sum.Lines,
				len(lines))
		}
		if sum, _ := scanWindow(t, file, window, 64,
			Limits{MaxLineBytes: len(long)}); sum.FaultCount != 1 {
			t.Errorf("window %d, at the limit: %v", window, sum.Faults)
		}
	}
}

// repeated reads n bytes of repeated text without holding them.
func repeated(text string, n int) io.Reader {
	return io.LimitReader(&repeater{text: text}, int64(n))
}

type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], r.text[r.at:])
		n, r.at = n+m, (r.at+m)%len(r.text)
	}
	return n, nil
}

// allocated returns how many bytes a function allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestScannerMemory scans files that would fill memory if lines, keys or values were held.
func TestScannerMemory(t *testing.T) {
	const size = 12 << 20
	const head, tail = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":`, `}}`
	for name, file := range map[string]io.Reader{
		"no line's end": repeated("x", size),
		"one string": io.MultiReader(strings.NewReader(head+`"`), repeated("word ", size),
			strings.NewReader(`"`+tail)),
		"escapes": io.MultiReader(strings.NewReader(head+`"`), repeated(`\u00fc`, size/6*6),
			strings.NewReader(`"`+tail)),
		"one number": io.MultiReader(strings.NewReader(head), repeated("7", size),
			strings.NewReader(tail)),
		"tokens": io.MultiReader(strings.NewReader(head+"[1"),
			repeated(",128000", size/7*7), strings.NewReader("]"+tail)),
		"repeated keys": io.MultiReader(strings.NewReader(head+"1"),
			repeated(`,"model":"m"`, size/12*12), strings.NewReader(tail)),
		"distinct keys": io.MultiReader(strings.NewReader(head+`{"k":1`),
			repeated(`,"another":1`, size/12*12), strings.NewReader("}"+tail)),
		"one key": io.MultiReader(strings.NewReader(`{"`), repeated(`\u0062`, size/6*6),
			strings.NewReader(`":1}`)),
		"one custom_id": io.MultiReader(strings.NewReader(`{"custom_id":"`), repeated("id", size),
			strings.NewReader(`"}`)),
		"opened for ever": repeated(`[`, size),
		"white space":     repeated(" ", size),
		"images": io.MultiReader(strings.NewReader(head+`"`),
			repeated(";base64,AAAA", size), strings.NewReader(`"`+tail)),
	} {
		t.Run(name, func(t *testing.T) {
			s := NewScanner(io.Discard, Limits{MaxLineBytes: 2 * size})
			buffer := make([]byte, 256<<10)
			used := allocated(func() {
				if _, err := io.CopyBuffer(s, struct{ io.Reader }{file}, buffer); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Finish(); err != nil {
					t.Fatal(err)
				}
			})
			if used > 1<<20 {
				t.Errorf("a line of %d MiB took %d KiB of memory, want less than 1 MiB", size>>20,
					used>>10)
			}
		})
	}
}

func TestScanResultsMemory(t *testing.T) {
	const size = 12 << 20
	file := io.MultiReader(strings.NewReader(
		`{"id":"x","custom_id":"a","response":{"body":{"text":"`), repeated("word ", size),
		strings.NewReader("\"}}}\n{\"custom_id\":\"b\"}\n{\"x\":["), repeated("1,", size),
		strings.NewReader(`1],"custom_id":"\u0063"}`))
	var got []string
	var err error
	used := allocated(func() {
		err = ScanResults(file, func(id string, line int64) error {
			got = append(got, fmt.Sprintf("%d: %s", line, id))
			return nil
		})
	})
	if diff := cmp.Diff([]string{"1: a", "2: b", "3: c"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if used > 1<<20 {
		t.Errorf("lines of %d MiB took %d KiB of memory, want less than 1 MiB", size>>20, used>>10)
	}
}

func TestLongResultsReadAsHeldOnes(t *testing.T) {
	pad := strings.Repeat(" ", 2*heldBytes)
	for _, line := range append(seeds, `{"custom_id":"a"}`,
		`{"custom_id":"\u00e9","custom_id":"b"}`, `{"custom_id":7}`, `{"x":{"custom_id":"a"}}`,
		`{"custom_id":"a"} {}`,
		`{"custom_id":"`+strings.Repeat("i", maxCustomID)+`"}`, `{"custom_id":"`+strings.Repeat("i",
			maxCustomID+1)+`"}`) {
		if strings.Contains(line, "\r") { // not the end of a row
			continue
		}
		scanned := func(file string) (got string) {
			err := ScanResults(strings.NewReader(file), func(id string, line int64) error {
				got += fmt.Sprintf("%d: %s\n", line, shown([]byte(id)))
				return nil
			})
			return fmt.Sprint(got, err)
		}
		if held, long := scanned(line), scanned(line+pad); held != long {
			t.Errorf("%s:\nheld %s\nlong %s", shown([]byte(line)), held, long)
		}
	}
}
