package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/tidefill/tidefill/internal/humanize"
)

// forged is a name that colors the terminal, sets its title, adds a row to a table, and reverses
// what follows it.
const forged = "\x1b[31mred\x1b]0;title\a\nbatch_forged\tcompleted\u202e\u009b1m"

// checkPrintable checks that a text for a terminal has so many rows, and that no row controls it.
func checkPrintable(t *testing.T, what, text string, rows int) {
	t.Helper()
	for row := range strings.Lines(text) {
		if row = strings.TrimSuffix(row, "\n"); row != humanize.Printable(row) {
			t.Errorf("%s controls the terminal: %q", what, row)
		}
		if strings.HasPrefix(row, "batch_forged") {
			t.Errorf("%s has a forged row: %q", what, row)
		}
	}
	if got := strings.Count(text, "\n"); got != rows {
		t.Errorf("%s has %d rows, want %d:\n%q", what, got, rows, text)
	}
}

func TestPrintf(t *testing.T) {
	var out strings.Builder
	printf(&out, "%-4s|%4d|%v|%q|%.2f\n", "a\n", 12, errors.New("b\tc"), "d\x1b", 1.234)
	if want := "a\ufffd  |  12|b\ufffdc|\"d\\x1b\"|1.23\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	printError(&out, "tidefill: ", errors.Join(errors.New("one\x1b"), errors.New("\n\ttwo")))
	if want := "tidefill: one\ufffd\n\n        two\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestBatchesDoNotControlTheTerminal(t *testing.T) {
	object := fmt.Sprintf(`{"id":"b","object":"batch","status":"in_progress","endpoint":"/v1/%[1]s",
		"model":"%[1]s","metadata":{"%[1]s":"%[1]s"},"request_counts":{"total":4},
		"errors":{"data":[{"code":"%[1]s","message":"%[1]s","line":1}]},
		"tidefill":{"waiting":"%[1]s","rank_error":"%[1]s","verdict":"%[1]s",
		"models":[{"model":"%[1]s","lines":4}]}}`, inJSON(forged))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/batches/b", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, object)
	})
	mux.HandleFunc("GET /v1/batches", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"object":"list","has_more":false,"data":[%s]}`, object)
	})
	mux.HandleFunc("GET /v1/batches/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":{"message":"no batch %s"}}`, inJSON(forged))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	t.Setenv("TIDEFILL_SERVER", server.URL)

	checkPrintable(t, "get", must(t, exitOK, "batch", "get", "b").out, 12)
	checkPrintable(t, "wide", must(t, exitOK, "batch", "get", "b", "-o", "wide").out, 2)
	checkPrintable(t, "list", must(t, exitOK, "batch", "list").out, 2)
	failure := must(t, exitError, "batch", "get", "x").errors
	checkPrintable(t, "an error", failure, 2)
	if raw := must(t, exitOK, "batch", "get", "b", "--json").out; !strings.Contains(raw, `\u001b`) {
		t.Errorf("JSON lacks what the API sent: %q", raw)
	}
}

// inJSON returns a text as part of a string in JSON.
func inJSON(text string) string {
	var b strings.Builder
	for _, c := range text {
		if unicode.IsControl(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func TestCheckDoesNotControlTheTerminal(t *testing.T) {
	name := writeFile(t, "in\x1b[31m\u202e.jsonl", fmt.Sprintf(
		`{"custom_id":"%[1]s","method":"POST","url":"/v1/chat/completions","body":{"model":"%[1]s","messages":[]}}
{"custom_id":"%[1]s","method":"POST","url":"/v1/%[1]s","body":{"model":"%[1]s","messages":[]}}
`, inJSON(forged)))
	// Faults of the second line: its id, used before, and its URL.
	checkPrintable(t, "check", must(t, exitError, "check", name).out, 5)
}

func TestExplainDoesNotControlTheTerminal(t *testing.T) {
	list := fmt.Sprintf(`{"time":1,"waiting":["%[1]s"],"data":[{"name":"%[1]s,b",
		"models":["%[1]s","b"],"policy":"p","protection":"none","warnings":[{"code":"c",
		"text":"%[1]s"}],"decision":{"reason":"loading","runners":[{"name":"%[1]s",
		"reason":"loading"}]}}],"degraded":[{"target":"%[1]s"}]}`, inJSON(forged))
	startFakeAdmin(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, list) })
	text := must(t, exitOK, "explain").out
	checkPrintable(t, "explain", text, 13)

	// The heading can be given as the argument.
	name := strings.Split(strings.Split(text, "\n")[2], "  ")[0]
	got := must(t, exitOK, "explain", strings.Trim(name, "'")).out
	if !strings.Contains(got, name+"  policy p") {
		t.Errorf("explain of %s prints:\n%s", name, got)
	}
}
