package batchfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestAppendResult(t *testing.T) {
	for name, tt := range map[string]struct {
		r    Result
		want string
	}{
		"answer": {
			Result{ID: "batch_req_1", CustomID: []byte(`"\u0061"`), Status: 200,
				RequestID: "req_1", Body: []byte(
					"{\n \"seed\": 9223372036854775807,\r\n \"s\": \"a\\nb\"\n}\n")},
			`{"id":"batch_req_1","custom_id":"\u0061","response":{"status_code":200,"request_id":"req_1","body":{  "seed": 9223372036854775807,   "s": "a\nb" } },"error":null}`,
		},
		"answer that is no JSON": {
			Result{ID: "i", CustomID: []byte(`"a"`), Status: 502,
				Body: []byte("<html>\n\"bad\"\xff</html>")},
			`{"id":"i","custom_id":"a","response":{"status_code":502,"request_id":"","body":"<html>\n\"bad\"` + "\uFFFD" + `</html>"},"error":null}`,
		},
		"answer with bytes that are not UTF-8": {
			Result{ID: "i", CustomID: []byte(`"a"`), Status: 200, Body: []byte("{\"a\":\"\xff\"}")},
			`{"id":"i","custom_id":"a","response":{"status_code":200,"request_id":"","body":{"a":"` + "\uFFFD" + `"}},"error":null}`,
		},
		"empty answer": {
			Result{ID: "i", CustomID: []byte(`"a"`), Status: 204},
			`{"id":"i","custom_id":"a","response":{"status_code":204,"request_id":"","body":""},"error":null}`,
		},
		"no answer": {
			Result{ID: "i", CustomID: []byte(`"a"`), ErrorCode: "batch_expired",
				ErrorMessage: "too \"late\"\x01"},
			`{"id":"i","custom_id":"a","response":null,"error":{"code":"batch_expired","message":"too \"late\"\u0001"}}`,
		},
		"answer that does not count": {
			Result{ID: "i", CustomID: []byte(`"a"`), Status: 200, Body: []byte("{\n}"),
				ErrorCode: "check_failed", ErrorMessage: "why"},
			`{"id":"i","custom_id":"a","response":{"status_code":200,"request_id":"","body":{ }},"error":{"code":"check_failed","message":"why"}}`,
		},
	} {
		if got := string(AppendResult([]byte("+"), tt.r)); got != "+"+tt.want+"\n" {
			t.Errorf("%s:\ngot  %swant %s", name, got, tt.want)
		}
	}
}

func TestScanResults(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	var file []byte
	var want []string
	for i, body := range []string{`{}`, long, `[1]`, long, long} {
		id := fmt.Sprintf("é%d", i)
		file = AppendResult(file, Result{CustomID: appendQuoted(nil, id), Status: 200,
			Body: []byte(body)})
		file = append(file, '\n')
		want = append(want, fmt.Sprintf("%s on %d", id, 2*i+1))
	}
	for name, r := range map[string]io.Reader{
		"whole":       bytes.NewReader(file),
		"by bytes":    iotest.OneByteReader(bytes.NewReader(file)),
		"no newline":  bytes.NewReader(bytes.TrimRight(file, "\n")),
		"data at EOF": iotest.DataErrReader(bytes.NewReader(file)),
	} {
		var got []string
		err := ScanResults(r, func(id string, line int64) error {
			got = append(got, fmt.Sprintf("%s on %d", id, line))
			return nil
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestCustomID(t *testing.T) {
	for literal, want := range map[string]string{
		`"a"`:                      "a",
		`"é😀"`:                     "é😀",
		`"\u00e9\ud83d\ude00!"`:    "é😀!",
		`"\"\\\/\b\f\n\r\t\u0000"`: "\"\\/\b\f\n\r\t\x00",
		`"\ud83dx\ude00"`:          "\xed\xa0\xbdx\xed\xb8\x80",
		`"\ud83d\u0041"`:           "\xed\xa0\xbdA",
		`"\ude00\ud83d\ude00"`:     "\xed\xb8\x80😀",
		`"\uABCD\uabcd"`:           "\uabcd\uabcd",
	} {
		if got := CustomID([]byte(literal)); got != want {
			t.Errorf("%s means %q, want %q", literal, got, want)
		}
	}
}

func TestScanResultsErrors(t *testing.T) {
	stop := errors.New("stop")
	for file, want := range map[string]string{
		"{\"custom_id\":\"a\"}\n{\"custom_id\":\"b\"\n": "line 2: byte 18: the line ends",
		"{\"custom_id\":\"a\"} {}\n":                    "line 1: byte 19: more follows",
		"{\"custom_id\":7}\n":                           "line 1: no custom_id",
		"{}\n":                                          "line 1: no custom_id",
		"7\n":                                           "line 1: not a JSON object",
	} {
		err := ScanResults(strings.NewReader(file), func(string, int64) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…", file, err, want)
		}
	}
	if err := ScanResults(strings.NewReader("{\"custom_id\":\"a\"}"), func(string, int64) error {
		return stop
	}); err != stop {
		t.Errorf("fn's error came back as %v", err)
	}
	if err := ScanResults(iotest.ErrReader(stop), nil); !errors.Is(err, stop) {
		t.Errorf("the reader's error came back as %v", err)
	}
}

func TestReadAnswer(t *testing.T) {
	for body, want := range map[string]Usage{
		`{"choices":[{"usage":{"prompt_tokens":9}}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,` +
			`"prompt_tokens_details":{"audio_tokens":1,"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`: {5, 7, 12, 3, 2},
		`{"usage" : { "input_tokens" : 5 , "input_tokens_details":{"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":7} }`: {5, 2, 7, 1, 1},
		`{"usage":{"prompt_tokens":5,"prompt_tokens_details":null}}`:      {5, 0, 5, 0, 0},
		`{"usage":{"prompt_tokens":"5","completion_tokens":1e3}}`:         {},
		`{"usage":{"total_tokens":99999999999999999999999}, and rubbish}`: {},
		`{"usage":{"prompt_tokens":18446744073709551615,"completion_tokens":1000000000,` +
			`"total_tokens":1000000001,"prompt_tokens_details":{"cached_tokens":1e30}}}`: {0, 1e9, 1e9, 0, 0},
	} {
		if got, ok, _, _ := ReadAnswer([]byte(body)); !ok || got != want {
			t.Errorf("%s\ngot  %+v, %v\nwant %+v", body, got, ok, want)
		}
	}
	for _, body := range []string{``, `null`, `[]`, `{}`, `{"usage":null}`,
		`{"usage":{"prompt_tokens":5`, `{"x":"usage"}`, `{"x" "usage":{}}`} {
		if got, ok, _, _ := ReadAnswer([]byte(body)); ok {
			t.Errorf("%s has usage %+v", body, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { ReadAnswer(answer, "choices") }); n != 0 {
		t.Errorf("ReadAnswer allocates %v times", n)
	}
}

func TestSumsOfUsageDoNotOverflow(t *testing.T) {
	const most = 1<<63 - 1
	got := Usage{most, 1, most - 1, 0, 0}
	got.Add(Usage{most, 2, 1, 3, 0})
	if want := (Usage{most, 3, most, 3, 0}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEditBody(t *testing.T) {
	type edits = map[string]json.RawMessage
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tt := range []struct {
		name, body          string
		defaults, overrides edits
		want                string
	}{
		{"nothing", ` { "a" : 1e400 , "b":[ ] } `, nil, nil, ` { "a" : 1e400 , "b":[ ] } `},
		{"replace in place", `{ "a" : 1 , "b":2}`, nil, edits{"a": raw(`[7]`)},
			`{ "a" : [7] , "b":2}`},
		{"replace an escaped key", `{"\u0061":1}`, nil, edits{"a": raw(`2`)}, `{"\u0061":2}`},
		{"replace every repeat", `{"a":1,"b":2,"a":3}`, nil, edits{"a": raw(`9`)},
			`{"a":9,"b":2,"a":9}`},
		{"add sorted", `{"m":1}`, edits{"z": raw(`1`), "c": raw(`2`)}, edits{"k": raw(`3`)},
			`{"m":1,"c":2,"k":3,"z":1}`},
		{"default gives way", `{"a":1}`, edits{"a": raw(`2`)}, nil, `{"a":1}`},
		{"default gives way to null", `{"a":null}`, edits{"a": raw(`2`)}, nil, `{"a":null}`},
		{"override beats default", `{}`, edits{"a": raw(`2`)}, edits{"a": raw(`3`)}, `{"a":3}`},
		{"null override beats default", `{}`, edits{"a": raw(`2`)}, edits{"a": raw(`null`)}, `{}`},
		{"remove first", `{"a":1, "b":2}`, nil, edits{"a": raw(`null`)}, `{ "b":2}`},
		{"remove last", `{"a":1, "b":2}`, nil, edits{"b": raw(`null`)}, `{"a":1}`},
		{"remove only, add", `{"a":1}`, edits{"c": raw(`2`)}, edits{"a": raw(` null `)}, `{"c":2}`},
		{"add to empty", `{ }`, edits{"c\n": raw(`2`)}, nil, `{"c\n":2}`},
	} {
		got, err := EditBody([]byte("+"), []byte(tt.body), tt.defaults, tt.overrides)
		if err != nil || string(got) != "+"+tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	for _, body := range []string{``, `[]`, `null`, `{"a":1`, `{"a":}`, `{} {}`} {
		if got, err := EditBody(nil, []byte(body), nil, nil); err == nil {
			t.Errorf("%q was edited into %q", body, got)
		}
	}
	if _, err := EditBody(nil, []byte(`{}`), nil, edits{"a": raw(`{`)}); err == nil {
		t.Error("an override that is no JSON was written")
	}
}
