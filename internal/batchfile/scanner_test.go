package batchfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// objectOf returns the JSON object of a line.
func objectOf(l Line, file []byte) []byte { return file[l.Offset:][:l.Length] }

// scan runs a whole file through a scanner and opens its index.
func scan(t testing.TB, file string, limits Limits) (Summary, []Line) {
	t.Helper()
	return scanWith(t, limits, func(s *Scanner) error {
		n, err := s.Write([]byte(file))
		if n != len(file) {
			t.Errorf("Write = %d, want %d", n, len(file))
		}
		return err
	})
}

// scanWith writes a file to a scanner and opens its index.
func scanWith(t testing.TB, limits Limits, write func(*Scanner) error) (Summary, []Line) {
	t.Helper()
	var index bytes.Buffer
	s := NewScanner(&index, limits)
	if err := write(s); err != nil {
		t.Fatal(err)
	}
	sum, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := OpenIndex(bytes.NewReader(index.Bytes()), int64(index.Len()))
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]Line, x.Len()+1)
	n, err := x.Read(0, lines)
	if n != x.Len() {
		t.Fatalf("Read = %d, %v; want %d lines", n, err, x.Len())
	}
	for i, m := range sum.Models {
		if x.Models()[i] != m.Name {
			t.Errorf("index model %d = %q, want %q", i, x.Models()[i], m.Name)
		}
	}
	for i, u := range sum.URLs {
		if x.URLs()[i] != u.URL {
			t.Errorf("index url %d = %q, want %q", i, x.URLs()[i], u.URL)
		}
	}
	return sum, lines[:n]
}

// chat is a line for /v1/chat/completions with more members in its body.
func chat(id, more string) string {
	return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions",`+
		`"body":{"model":"m","messages":[{"role":"user","content":"hi"}]%s}}`, id, more)
}

func TestScanGoodFile(t *testing.T) {
	file := "\xEF\xBB\xBF" + chat("a", `,"max_tokens":7`) + "\r\n" +
		"\n \t\r\n" +
		"  " + `{"body":{"model":"\u0065mb","input":["x","y",[1]]},"url":"\/v1\/embeddings","method":"POST","custom_id":"\u00fc\/"}` + " \n" +
		chat("c", `,"max_completion_tokens":5,"max_tokens":9,"seed":9223372036854775807`)
	sum, lines := scan(t, file, Limits{})

	messages := len(`[{"role":"user","content":"hi"}]`)
	want := Summary{
		Lines: 3,
		Bytes: int64(len(file)),
		Models: []ModelSummary{
			{Name: "m", Lines: 2, PromptBytes: int64(2 * messages), MaxTokens: 12, CappedLines: 2},
			{Name: "emb", Lines: 1, PromptBytes: int64(len(`["x","y",[1]]`))},
		},
		URLs: []URLSummary{
			{URL: "/v1/chat/completions", Lines: 2, FirstLine: 1},
			{URL: "/v1/embeddings", Lines: 1, FirstLine: 4},
		},
		EmbeddingInputs: 3,
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Fatalf("summary (-want +got):\n%s", diff)
	}

	wantLines := []struct {
		row, maxTokens uint32
		id, bodyEnd    string
	}{
		{1, 7, `"a"`, `"max_tokens":7}`},
		{4, 0, `"\u00fc\/"`, `["x","y",[1]]}`},
		{5, 5, `"c"`, `"seed":9223372036854775807}`},
	}
	for i, want := range wantLines {
		l := lines[i]
		object := objectOf(l, []byte(file))
		if l.Number != uint32(i) || l.Row != want.row || l.MaxTokens != want.maxTokens {
			t.Errorf("line %d = %+v, want %+v", i, l, want)
		}
		if !json.Valid(object) || object[0] != '{' || object[len(object)-1] != '}' {
			t.Errorf("line %d: object %q", i, object)
		}
		if got := string(l.CustomID(object)); got != want.id {
			t.Errorf("line %d: custom_id %s, want %s", i, got, want.id)
		}
		if got := string(l.Body(object)); !strings.HasSuffix(got, want.bodyEnd) || got[0] != '{' {
			t.Errorf("line %d: body %s, want …%s", i, got, want.bodyEnd)
		}
	}
	if lines[0].PrefixHash == 0 || lines[0].PrefixHash != lines[2].PrefixHash {
		t.Errorf("prefix hashes %x and %x of the same prompt", lines[0].PrefixHash,
			lines[2].PrefixHash)
	}
	if lines[1].PrefixHash != 0 {
		t.Errorf("an embedding has prefix hash %x, want none", lines[1].PrefixHash)
	}
}

func TestScanFaults(t *testing.T) {
	const notJSON = "This line is not parseable as valid JSON."
	line := func(id, method, url, body string) string {
		return fmt.Sprintf(`{"custom_id":%s,"method":%s,"url":%s,"body":%s}`, id, method, url, body)
	}
	const id, post, url, body = `"a"`, `"POST"`, `"/v1/chat/completions"`, `{"model":"m"}`

	tests := []struct {
		name, file string
		code       string
		param      string
		line       int
		message    string // a part of it
	}{
		{"empty", "", CodeEmptyFile, "", 0, "no requests"},
		{"blank lines only", "\n \r\n\t\n", CodeEmptyFile, "", 0, "no requests"},
		{"not JSON", "hello", CodeInvalidJSON, "", 1, notJSON + " Byte 1"},
		{"cut", chat("a", "")[:40], CodeInvalidJSON, "", 1, notJSON + " Byte 41: the line ends"},
		{"two values", chat("a", "") + "{}", CodeInvalidJSON, "", 1,
			"each object a line of its own"},
		{"an array", "[1]", CodeInvalidRequest, "", 1, "not a JSON object"},
		{"null", "null", CodeInvalidRequest, "", 1, "not a JSON object"},
		{"bad UTF-8", chat("a\\u0000", "") + "\n" + strings.Replace(chat("b", ""), "hi",
			"h\xFF", 1), CodeInvalidJSON, "", 2, "not UTF-8"},
		{"raw control", strings.Replace(chat("b", ""), "hi", "h\ti", 1), CodeInvalidJSON, "", 1,
			"control character"},
		{"bad escape", strings.Replace(chat("b", ""), "hi", `C:\dir`, 1), CodeInvalidJSON, "", 1,
			"unknown escape"},
		{"too deep", chat("b", `,"x":`+strings.Repeat("[", 511)+strings.Repeat("]", 511)),
			CodeInvalidJSON, "", 1, "nested too deep"},
		{"too deep in objects", chat("b", `,"x":`+strings.Repeat(`{"x":`, 511)+"1"+strings.Repeat(
			"}", 511)), CodeInvalidJSON, "", 1, "nested too deep"},
		{"no custom_id", `{"method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}`,
			CodeMissing, "custom_id", 1, "custom_id"},
		{"null custom_id", line(`null`, post, url, body), CodeInvalidType, "custom_id", 1,
			"is null"},
		{"numeric custom_id", line(`7`, post, url, body), CodeInvalidType, "custom_id", 1,
			"is a number"},
		{"empty custom_id", line(`""`, post, url, body), CodeInvalidValue, "custom_id", 1,
			"is empty"},
		{"same custom_id", chat("a", "") + "\n\n" + chat("a", ""), CodeDuplicateCustomID,
			"custom_id", 3, "on line 1"},
		{"same custom_id, escaped", chat("a", "") + "\n" + line(`"\u0061"`, post, url, body),
			CodeDuplicateCustomID, "custom_id", 2, "on line 1"},
		{"GET", line(id, `"GET"`, url, body), CodeInvalidValue, "method", 1, "POST"},
		{"post", line(id, `"post"`, url, body), CodeInvalidValue, "method", 1, "POST"},
		{"method missing", `{"custom_id":"a","url":"/v1/chat/completions","body":{"model":"m"}}`,
			CodeMissing, "method", 1, "POST"},
		{"url unknown", line(id, post, `"/v1/chat"`, body), CodeURLMismatch, "url", 1,
			`"/v1/chat"`},
		{"url absolute", line(id, post, `"http://10.0.0.1/v1/chat/completions"`, body),
			CodeURLMismatch, "url", 1, "10.0.0.1"},
		{"url missing", `{"custom_id":"a","method":"POST","body":{"model":"m"}}`, CodeMissing,
			"url", 1, "endpoint"},
		{"body missing", `{"custom_id":"a","method":"POST","url":"/v1/chat/completions"}`,
			CodeMissing, "body", 1, "body"},
		{"body a string", line(id, post, url, `"{}"`), CodeInvalidType, "body", 1, "a string"},
		{"model missing", line(id, post, url, `{}`), CodeMissing, "body.model", 1, "model"},
		{"model null", line(id, post, url, `{"model":null}`), CodeInvalidType, "body.model", 1,
			"null"},
		{"model empty", line(id, post, url, `{"model":""}`), CodeInvalidValue, "body.model", 1,
			"empty"},
		{"model endless", line(id, post, url, `{"model":"`+strings.Repeat("m", 513)+`"}`),
			CodeInvalidValue, "body.model", 1, "513"},
		{"model with half a character", line(id, post, url, `{"model":"m\ud800"}`), CodeInvalidValue,
			"body.model", 1, `half a character`},
		{"stream", chat("a", `,"stream":true`), CodeStream, "body.stream", 1, "stream"},
		{"stream 1", chat("a", `,"stream":1`), CodeInvalidType, "body.stream", 1, "a number"},
		{"key twice", chat("a", `,"model":"n"`), CodeDuplicateKey, "body.model", 1,
			"more than once"},
		{"key twice, escaped", chat("a", `,"mod\u0065l":"n"`), CodeDuplicateKey, "body.model", 1,
			"more than once"},
		{"body twice", `{"body":{"model":"x"},` + chat("a", "")[1:], CodeDuplicateKey, "body", 1,
			"more than once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sum, _ := scan(t, tt.file, Limits{})
			if sum.FaultCount != 1 || len(sum.Faults) != 1 {
				t.Fatalf("faults %v (%d), want one", sum.Faults, sum.FaultCount)
			}
			got := sum.Faults[0]
			if got.Code != tt.code || got.Param != tt.param || got.Line != tt.line ||
				!strings.Contains(got.Message, tt.message) {
				t.Errorf("got  %+v\nwant %s, param %q, line %d, …%s…", got, tt.code, tt.param,
					tt.line, tt.message)
			}
		})
	}
}

func TestScanAccepts(t *testing.T) {
	for name, file := range map[string]string{
		"moderation without a model": `{"custom_id":"a","method":"POST","url":"/v1/moderations","body":{"input":"x"}}`,
		"stream false":               chat("a", `,"stream":false`),
		"stream null":                chat("a", `,"stream":null`),
		"unknown members twice":      chat("a", `,"x":1,"x":2`),
		"as deep as may be": chat("b", `,"x":`+strings.Repeat("[", 510)+strings.Repeat("]",
			510)),
		"max_tokens no number":  chat("a", `,"max_tokens":-1.5e3`),
		"half a surrogate pair": chat("a", `,"x":"\ud800"`),
		"ids that differ in halves": strings.Replace(chat("X", ""), "X", `\ud800`, 1) + "\n" +
			strings.Replace(chat("X", ""), "X", `\ud801`, 1),
	} {
		if sum, _ := scan(t, file, Limits{}); sum.FaultCount != 0 {
			t.Errorf("%s: %v", name, sum.Faults)
		}
	}
}

func TestScanLimits(t *testing.T) {
	var file strings.Builder
	for i := range 10 {
		file.WriteString(chat(fmt.Sprint(i), "") + "\n")
	}
	size := int64(file.Len())

	t.Run("lines", func(t *testing.T) {
		if sum, _ := scan(t, file.String(), Limits{MaxLines: 10}); sum.FaultCount != 0 {
			t.Errorf("at the limit: %v", sum.Faults)
		}
		sum, lines := scan(t, file.String(), Limits{MaxLines: 9})
		if sum.Lines != 10 || len(lines) != 9 || sum.FaultCount != 1 ||
			sum.Faults[0].Code != CodeTooManyTasks {
			t.Errorf("over it: %d lines, %d in the index, %v", sum.Lines, len(lines), sum.Faults)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		if sum, _ := scan(t, file.String(), Limits{MaxBytes: size}); sum.FaultCount != 0 {
			t.Errorf("at the limit: %v", sum.Faults)
		}
		// a line cut by the limit is no fault of its own
		for _, over := range []int64{1, 2, 50, size - 1} {
			sum, _ := scan(t, file.String(), Limits{MaxBytes: size - over})
			if sum.Bytes != size || sum.FaultCount != 1 || sum.Faults[0].Code != CodeFileTooLarge ||
				sum.Faults[0].Line != 0 {
				t.Errorf("%d over it: %d bytes, %v", over, sum.Bytes, sum.Faults)
			}
		}
	})
	t.Run("faults", func(t *testing.T) {
		sum, _ := scan(t, strings.Repeat("x\n", 100), Limits{MaxFaults: 3, MaxLines: 50})
		if sum.FaultCount != 51 || len(sum.Faults) != 3 || sum.Faults[0].Code != CodeTooManyTasks ||
			sum.Faults[2].Line != 2 {
			t.Errorf("%d faults, kept %v", sum.FaultCount, sum.Faults)
		}
	})
	t.Run("models", func(t *testing.T) {
		two := chat("a", "") + "\n" + strings.Replace(chat("b", ""), `"m"`, `"n"`, 1)
		if sum, _ := scan(t, two, Limits{MaxModels: 2}); sum.FaultCount != 0 {
			t.Errorf("at the limit: %v", sum.Faults)
		}
		sum, _ := scan(t, two, Limits{MaxModels: 1})
		if sum.FaultCount != 1 || sum.Faults[0].Code != CodeTooManyModels ||
			sum.Faults[0].Line != 2 {
			t.Errorf("over it: %v", sum.Faults)
		}
	})
}

func TestScanManyFaultsOfALine(t *testing.T) {
	sum, _ := scan(t, "{}\n\n"+chat("a", "")+"\n"+`{"custom_id":1}`, Limits{})
	var got []string
	for _, f := range sum.Faults {
		got = append(got, fmt.Sprint(f.Line, " ", f.Param))
	}
	want := []string{"1 custom_id", "1 method", "1 url", "1 body", "4 custom_id", "4 method",
		"4 url", "4 body"}
	if diff := cmp.Diff(want, got); diff != "" || sum.Lines != 3 {
		t.Errorf("%d lines, faults (-want +got):\n%s", sum.Lines, diff)
	}
}

// TestScanAllocations lets the sets of ids and names grow, but no line cost an allocation.
func TestScanAllocations(t *testing.T) {
	const lines = 2_000
	file := chatFile(lines, 100, prose)
	escaped := bytes.ReplaceAll(file, []byte("/v1/chat"), []byte(`\/v1\/chat`))
	escaped = bytes.ReplaceAll(escaped, []byte(`"model"`), []byte(`"mod\u0065l"`))
	for name, file := range map[string][]byte{"plain": file, "escaped": escaped} {
		got := testing.AllocsPerRun(3, func() {
			s := NewScanner(io.Discard, Limits{})
			for chunk := range slices.Chunk(file, 1_000) {
				s.Write(chunk)
			}
			if sum, err := s.Finish(); err != nil || sum.FaultCount > 0 || sum.Lines != lines {
				t.Fatal(err, sum)
			}
		})
		if got > lines/20 {
			t.Errorf("%s: %v allocations for %d lines", name, got, lines)
		}
	}
}

func TestSummaryInJSON(t *testing.T) {
	want, _ := scan(t, chat("a", "")+"\n"+chat("a", ""), Limits{})
	stored, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Summary
	if err := json.Unmarshal(stored, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("through %s (-want +got):\n%s", stored, diff)
	}
}
