package csvlines_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/csvlines"
)

func parse(t testing.TB, id, body string) *csvlines.Template {
	t.Helper()
	template, err := csvlines.Parse(id, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// convert converts a whole file, read byte by byte.
func convert(t testing.TB, id, body, file string) (string, *csvlines.Reader, error) {
	t.Helper()
	r, err := csvlines.NewReader(iotest.OneByteReader(strings.NewReader(file)), parse(t, id, body),
		"/v1/chat/completions")
	if err != nil {
		return "", nil, err
	}
	lines, err := io.ReadAll(r)
	return string(lines), r, err
}

// TestConvert also has what spreadsheets write: a mark of the byte order, CRLF, and cells with
// quotes, commas and line ends.
func TestConvert(t *testing.T) {
	const body = ` {"model": "m", "{{n}}": "{{ text }}!", "n": "{{n|json}}", "list": ["{{ n |json}}"],
		"seed": 12345678901234567890, "more": "{{id}}: {{text}} \u007b{n}}", "plain": "\u00e9{ }"} `
	file := "\uFEFF\"id\", n ,text\r\n" +
		"a,1,\"say \"\"hi\"\",\nthen \\ stop\"\r\n" +
		"\r\n" +
		"\"b\n\",\"[ 1, {\"\"x\"\": null}]\",<ü&\t\x01>\r\n" +
		"c,true,{{n}}"
	got, r, err := convert(t, "id", body, file)
	if err != nil {
		t.Fatal(err)
	}
	line := func(id, n, text, more string) string {
		return fmt.Sprintf(`{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":`+
			`{"model":"m","{{n}}":"%s!","n":%s,"list":[%[3]s],"seed":12345678901234567890,`+
			`"more":"%[1]s: %[2]s %[4]s","plain":"\u00e9{ }"}}`+"\n", id, text, n, more)
	}
	want := line("a", "1", `say \"hi\",\nthen \\ stop`, "1") +
		line(`b\n`, `[1,{"x":null}]`, `<ü&\t\u0001>`, `[ 1, {\"x\": null}]`) +
		line("c", "true", "{{n}}", "true")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if faults, n := r.Faults(); n != 0 {
		t.Errorf("got faults %v", faults)
	}
	got, _, err = convert(t, "", `{"x":"{{a}}"}`, "a\n1\n2\n")
	if err != nil || !strings.HasPrefix(got, `{"custom_id":"row-1",`) ||
		!strings.Contains(got, "\n"+`{"custom_id":"row-2",`) {
		t.Errorf("without a column of ids: %s, %v", got, err)
	}
}

// A faulty row leaves a blank line, so that the numbers of lines are those of rows.
func TestFaultsOfRows(t *testing.T) {
	got, r, err := convert(t, "id", `{"n":"{{n|json}}"}`,
		"id,n\nok,1\nfew\nmany,1,2\nbare,\"x\" y\nopen,a\"b\nword,yes\nempty,\n\xff,1\nlast,2\n")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(got, "\n")
	if len(lines) != 10 || !strings.Contains(lines[0], `"ok"`) ||
		!strings.Contains(lines[8], `"last"`) || strings.Join(lines[1:8], "") != "" {
		t.Errorf("got %q", lines)
	}
	want := []string{
		"Row 2, line 3 of the file: it has 1 cells, and the first row names 2 columns.",
		"Row 3, line 4 of the file: it has 3 cells",
		`Row 4, line 5 of the file: extraneous or missing " in quoted-field`,
		`Row 5, line 6 of the file: bare " in non-quoted-field`,
		`Row 6, line 7 of the file: the cell of "n" is not JSON`,
		`Row 7, line 8 of the file: the cell of "n" is not JSON`,
		`Row 8, line 9 of the file: the cell of "id" is not UTF-8`,
	}
	faults, n := r.Faults()
	if n != len(want) || len(faults) != n {
		t.Fatalf("got %d faults: %v", n, faults)
	}
	for i, f := range faults {
		if f.Row != i+2 || !strings.HasPrefix(f.Message, want[i]) {
			t.Errorf("got fault %+v, want %q", f, want[i])
		}
	}
	_, r, err = convert(t, "", `{}`, "a,b\n"+strings.Repeat("x\n", 1500))
	if faults, n := r.Faults(); err != nil || n != 1500 || len(faults) != 1000 {
		t.Errorf("kept %d of %d faults, %v", len(faults), n, err)
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	for body, words := range map[string]string{
		`{"a": `:                        "not JSON",
		`["{{a}}"]`:                     "no JSON object",
		`{"a": "{{b"}`:                  "{{ without }}",
		`{"a": "{{ }}"}`:                "names no column",
		`{"a": "x {{b|json}}"}`:         "a JSON value is no part of a string",
		`{"a": "{{b|json}}{{c}}"}`:      "a JSON value is no part of a string",
		`{"a": "{{|json}}"}`:            "names no column",
		`{"a": "{{b}} {{ c | json }}"}`: "",
	} {
		_, err := csvlines.Parse("", []byte(body))
		if words == "" && err != nil || words != "" && (err == nil ||
			!strings.Contains(err.Error(), words)) {
			t.Errorf("%s: got %v, want %q", body, err, words)
		}
	}
}

// What is wrong with the columns is known before a row is read.
func TestFilesThatAreRefused(t *testing.T) {
	for file, words := range map[string]string{
		"":                "the file is empty",
		"id,x\n":          "no row below",
		"id,y\na,b\n":     `there is no column "x"; the first row names ["id" "y"]`,
		"x;y\n":           `the first row names ["x;y"], separated by commas`,
		"x,x\na,b\n":      `there is no column "id"`,
		"id,x,x\na,b,c\n": `names the column "x" more than once`,
		"\"id,x\na,b\n":   "the first row, which names the columns, can't be read",
	} {
		_, _, err := convert(t, "id", `{"x":"{{x}}"}`, file)
		var own *csvlines.Error
		if !errors.As(err, &own) || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want %q", file, err, words)
		}
	}
	from := iotest.ErrReader(io.ErrUnexpectedEOF)
	if _, err := csvlines.NewReader(from, parse(t, "", "{}"), "/"); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v, want the error of the source", err)
	}
	r, err := csvlines.NewReader(io.MultiReader(strings.NewReader("a\n1\n2\n"), from),
		parse(t, "", "{}"), "/")
	if err == nil {
		_, err = io.ReadAll(r)
	}
	if err != io.ErrUnexpectedEOF {
		t.Errorf("got %v, want the error of the source", err)
	}
}

// endless is the rest of a file after a quote that nothing closes.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

// A row is never held beyond its limit, nor a line that a template makes of it.
func TestRowsAreLimited(t *testing.T) {
	for _, beginning := range []string{"", "\"", "a,b\n1,\"", "a,b\n1,"} {
		rest := &endless{}
		r, err := csvlines.NewReader(io.MultiReader(strings.NewReader(beginning), rest),
			parse(t, "", "{}"), "/")
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if err == nil || !strings.Contains(err.Error(), "is a quote missing?") ||
			rest.read > 2<<20 {
			t.Errorf("after %q: %v, with %d bytes read", beginning, err, rest.read)
		}
	}
	many := strings.Repeat(strings.Repeat("x", 1000)+"\n", 3000) // a long file of short rows
	if lines, _, err := convert(t, "", `{"a":"{{a}}"}`, "a\n"+many); err != nil ||
		strings.Count(lines, "\n") != 3000 {
		t.Errorf("a long file has %d lines, %v", strings.Count(lines, "\n"), err)
	}
	cell := strings.Repeat("\x01", 900<<10)
	lines, r, err := convert(t, "", `{"a":"`+strings.Repeat("{{a}}", 1000)+`"}`,
		"a\n"+cell+"\nb\n")
	faults, n := r.Faults()
	if err != nil || n != 1 || !strings.Contains(faults[0].Message, "its line is longer than") ||
		!strings.HasPrefix(lines, "\n{") {
		t.Errorf("got %v, %d faults: %v", err, n, faults)
	}
}

// Every line is valid JSON with the custom_id and the cells of its row, or blank with a fault.
func FuzzConvert(f *testing.F) {
	for _, file := range []string{"id,x\na,1\n", "\uFEFFx,id\r\n\"a\"\"\n\",\"b,\"\r\n\r\n1,2",
		"id,x\na\nb,\xff\nc,\x00\n", "id,x\n\"", "id,x\n\\,\"{{x}}\"\n",
		"id,x\na,[1 , {\"b\":[]}]\n"} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		template := parse(t, "id", `{"text":"<{{x}}>","all":"{{x}}","json":"{{x|json}}"}`)
		texts := parse(t, "id", `{"text":"<{{x}}>"}`)
		for _, of := range []*csvlines.Template{template, texts} {
			r, err := csvlines.NewReader(strings.NewReader(file), of, "/v1/u")
			if err != nil {
				return
			}
			lines, err := io.ReadAll(r)
			if err != nil {
				return
			}
			check(t, file, lines, r)
		}
	})
}

func check(t *testing.T, file string, lines []byte, r *csvlines.Reader) {
	t.Helper()
	rows := csv.NewReader(strings.NewReader(strings.TrimPrefix(file, "\uFEFF")))
	header, err := rows.Read()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range header {
		at[strings.TrimSpace(name)] = i
	}
	faults, n := r.Faults()
	faulty := map[int]bool{}
	for _, fault := range faults {
		faulty[fault.Row] = true
	}
	all := bytes.Split(lines, []byte("\n"))
	if len(all[len(all)-1]) > 0 {
		t.Fatalf("%q has no end of line", lines)
	}
	for i, line := range all[:len(all)-1] {
		cells, err := rows.Read()
		if err == io.EOF {
			t.Fatalf("%d lines of a file with fewer rows", i)
		}
		if len(line) == 0 {
			if n == len(faults) && !faulty[i+1] {
				t.Errorf("row %d, %q, has neither a line nor a fault", i+1, cells)
			}
			continue
		}
		var got struct {
			CustomID    string `json:"custom_id"`
			Method, URL string
			Body        struct {
				Text string
				JSON json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("row %d: %v: %q", i+1, err, line)
		}
		if got.CustomID != cells[at["id"]] || got.Method != "POST" ||
			got.URL != "/v1/u" || got.Body.Text != "<"+cells[at["x"]]+">" {
			t.Errorf("row %d, %q, becomes %s", i+1, cells, line)
		}
	}
	if _, err := rows.Read(); err != io.EOF {
		t.Errorf("a row has no line")
	}
}
