package batchfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// seeds holds lines for every rule of the grammar.
var seeds = []string{
	``, ` `, `{}`, `[]`, `null`, `tru`, `nul`, `{"a":1,}`, `[1,]`, `{"a"}`, `{"a":}`, `{,}`, `[,]`,
	`{"a" 1}`, `{"a":1 "b":2}`, `[1 2]`,
	`-`, `-0`, `01`, `1.`, `.5`, `1e`, `1e+`, `1E-7`, `-12.30e5`, `"\u12"`, `"\u12G4"`, `"\x"`,
	`"a`, "\"\t\"", `"\ud83d\ude00"`, `"\ud83d\u0041"`,
	`"0123456`, `"01234567"`, `"012345678901234\n"`, `{"a":[{"b":[[]]}]}`, "\xEF\xBB\xBF{}",
	"{\"\xFF\":1}", "\"\xC3\xBC\"", `""""`, `{}{}`, "1\r", "\v1",
	`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"hi"}]}}`,
	` {"body" : {"model":"\u006d","input":["a",["b"]]} , "url":"\/v1\/embeddings","method":"POST","custom_id":"\u00e9\\" } `,
	`{"custom_id":"a","custom_id":"b","method":"POST","url":"/v1/score","body":{"model":"m","model":1,"stream":true}}`,
	`{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":[ ]}}`,
	strings.Repeat("[", 600) + strings.Repeat("]", 600),
}

func FuzzValid(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := valid(b, answerDepth), json.Valid(b); got != want {
			t.Errorf("valid(%q) = %v, want %v", b, got, want)
		}
	})
}

// nesting returns the depth of a valid value.
func nesting(b []byte) (deepest int) {
	depth := 0
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		switch token, err := d.Token(); {
		case err != nil:
			return deepest
		case token == json.Delim('{') || token == json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case token == json.Delim('}') || token == json.Delim(']'):
			depth--
		}
	}
}

// FuzzLine compares what the scanner and encoding/json read from one line.
func FuzzLine(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if bytes.ContainsRune(file, '\n') {
			t.Skip("more than a line")
		}
		sum, lines := scan(t, string(file), Limits{})
		content := bytes.TrimPrefix(file, byteOrderMark)
		if len(bytes.Trim(content, " \t\r")) == 0 {
			if sum.Lines != 0 || sum.FaultCount != 1 || sum.Faults[0].Code != CodeEmptyFile {
				t.Fatalf("blank: %+v", sum)
			}
			return
		}
		wellFormed := json.Valid(content) && utf8.Valid(content) && nesting(content) <= maxDepth
		refused := sum.FaultCount > 0 && sum.Faults[0].Code == CodeInvalidJSON
		if sum.Lines != 1 || wellFormed == refused {
			t.Fatalf("well-formed %v, but %+v", wellFormed, sum)
		}
		if len(lines)+min(sum.FaultCount, 1) != 1 {
			t.Fatalf("%d lines in the index and %d faults", len(lines), sum.FaultCount)
		}
		if len(lines) == 0 {
			return
		}

		object := objectOf(lines[0], file)
		var want map[string]json.RawMessage
		if err := json.Unmarshal(object, &want); err != nil {
			t.Fatal(err)
		}
		if got := lines[0].Body(object); !bytes.Equal(got, want["body"]) {
			t.Errorf("body %q, want %q", got, want["body"])
		}
		literal := lines[0].CustomID(object)
		var id string
		if err := json.Unmarshal(literal, &id); err != nil ||
			!bytes.Equal(literal, want["custom_id"]) {
			t.Errorf("custom_id %q, want %q (%v)", literal, want["custom_id"], err)
		}
		if got := CustomID(literal); utf8.ValidString(got) && got != id {
			t.Errorf("custom_id %q means %q, want %q", literal, got, id)
		}
		var body struct{ Model, Stream any }
		json.Unmarshal(want["body"], &body)
		if body.Stream == true {
			t.Error("a line with stream has no fault")
		}
	})
}

// FuzzChunks checks that the result does not depend on the sizes of writes.
func FuzzChunks(f *testing.F) {
	f.Add([]byte(strings.Join(seeds, "\n")), uint64(1))
	f.Add([]byte(chat("a", "")+"\r\n\n"+chat("b", "")+"\n"+chat("a", "")), uint64(7))
	f.Fuzz(func(t *testing.T, file []byte, cuts uint64) {
		complete, completeLines := scan(t, string(file), Limits{MaxLines: 40})
		parts, partLines := scanWith(t, Limits{MaxLines: 40}, func(s *Scanner) error {
			return inPieces(cuts, file, s)
		})
		if diff := cmp.Diff(complete, parts); diff != "" {
			t.Errorf("summary (-one write +chunks):\n%s", diff)
		}
		if diff := cmp.Diff(completeLines, partLines); diff != "" {
			t.Errorf("index (-one write +chunks):\n%s", diff)
		}
	})
}

// FuzzEditBody compares the edit with the same edit of decoded values.
func FuzzEditBody(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[2],"c":{}}`), "a", `7`, "d", `"x"`)
	f.Add([]byte(` { } `), "a", `null`, "d", `null`)
	f.Add([]byte(`{"\u0061" : 1 , "b":2 }`), "a", `null`, "b", `3`)
	f.Add([]byte(`{"a":1,"a":2}`), "a", `{"z":[]}`, "a", `3`)
	f.Fuzz(func(t *testing.T, body []byte, override, overrideTo, preset, presetTo string) {
		edited, err := EditBody([]byte("kept"), body,
			map[string]json.RawMessage{preset: json.RawMessage(presetTo)},
			map[string]json.RawMessage{override: json.RawMessage(overrideTo)})
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(body, &want) == nil && want != nil && nesting(body) <= maxDepth
		if !isObject || !json.Valid([]byte(overrideTo)) || !json.Valid([]byte(presetTo)) {
			if err == nil {
				t.Fatalf("edited %q into %q", body, edited)
			}
			return
		}
		if !utf8.Valid(body) || !utf8.ValidString(override) || !utf8.ValidString(preset) ||
			bytes.Contains(body, []byte(`\ud`)) ||
			nesting([]byte(overrideTo)) > 100 || nesting([]byte(presetTo)) > 100 {
			return // encoding/json would change these keys
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, has := want[preset]; !has && strings.TrimSpace(presetTo) != "null" {
			want[preset] = json.RawMessage(presetTo)
		}
		want[override] = json.RawMessage(overrideTo)
		if strings.TrimSpace(overrideTo) == "null" {
			delete(want, override)
		}
		rest, ok := bytes.CutPrefix(edited, []byte("kept"))
		var got map[string]json.RawMessage
		if err := json.Unmarshal(rest, &got); err != nil || !ok {
			t.Fatalf("edited %q into %q: %v", body, rest, err)
		}
		for _, m := range []map[string]json.RawMessage{want, got} {
			for k, v := range m {
				m[k] = bytes.TrimSpace(v)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("edited %q into %q (-want +got):\n%s", body, rest, diff)
		}
	})
}

func FuzzAppendResult(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), s)
	}
	f.Add([]byte("{\r\n \"a\": 1\n}\n"), "req\x00\"\\\n\u2028\xff")
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		line := AppendResult(nil, Result{ID: text, CustomID: []byte(`"a"`), Status: 200,
			RequestID: text, Body: body})
		if bytes.IndexByte(line, '\n') != len(line)-1 || bytes.IndexByte(line, '\r') >= 0 ||
			!utf8.Valid(line) {
			t.Fatalf("not a line: %q", line)
		}
		var got struct {
			ID       string
			CustomID string `json:"custom_id"`
			Response struct {
				RequestID string `json:"request_id"`
				Body      json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &got); err != nil {
			if nesting(body) > answerDepth-2 {
				t.Skip("encoding/json can't read so deep")
			}
			t.Fatalf("%v: %q", err, line)
		}
		want := strings.ToValidUTF8(text, "")
		if got.CustomID != "a" || strings.ReplaceAll(got.ID, "\uFFFD", "") != strings.ReplaceAll(
			want, "\uFFFD", "") {
			t.Errorf("%q became %q", text, got.ID)
		}
		if json.Valid(body) && utf8.Valid(body) {
			blanked := bytes.Map(func(r rune) rune {
				if r == '\n' || r == '\r' {
					return ' '
				}
				return r
			}, body)
			if !bytes.Contains(line, append([]byte(`"body":`), append(blanked, '}')...)) {
				t.Errorf("%q is not unchanged in %q", body, line)
			}
		} else if !json.Valid(body) && got.Response.Body[0] != '"' {
			t.Errorf("%q is not a string in %q", body, line)
		}
	})
}
