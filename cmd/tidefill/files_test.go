package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/apptest"
)

func TestFiles(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	if got := must(t, exitOK, "files", "ls"); got.errors != "No files.\n" {
		t.Errorf("list without files: %s%s", got.out, got.errors)
	}
	content := apptest.BatchFile(2)
	id := strings.TrimSpace(must(t, exitOK, "files", "upload", writeFile(t, "in.jsonl", content),
		"-q").out)
	other := strings.TrimSpace(commandWith(t, content, "files", "upload", "-", "--purpose",
		"user_data", "-q").out)
	if got := must(t, exitOK, "files", "list"); !strings.Contains(got.out, id+
		"  in.jsonl  batch") || !strings.Contains(got.out, other) {
		t.Errorf("list:\n%s", got.out)
	}
	if got := must(t, exitOK, "files", "list", "--purpose", "batch", "-q"); got.out != id+"\n" {
		t.Errorf("list of a purpose:\n%s", got.out)
	}
	if got := must(t, exitOK, "files", "list", "-n", "1"); got.errors !=
		"1 of 2; --limit 0 shows all\n" {
		t.Errorf("list -n 1: %s", got.errors)
	}
	if got := must(t, exitOK, "files", "get", id, other, "--json"); strings.Count(got.out,
		`"object":"file"`) != 2 {
		t.Errorf("get:\n%s", got.out)
	}
	if got := must(t, exitOK, "files", "download", id); got.out != content {
		t.Errorf("download prints\n%s", got.out)
	}
	dir := t.TempDir()
	must(t, exitOK, "files", "download", id, "--out", dir)
	if got, err := os.ReadFile(filepath.Join(dir, "in.jsonl")); err != nil ||
		string(got) != content {
		t.Errorf("download wrote %q, %v", got, err)
	}
	own := writeFile(t, ".bashrc", "mine")
	evil := strings.TrimSpace(must(t, exitOK, "files", "upload", writeFile(t, ".bashrc", "evil"),
		"--purpose", "user_data", "-q").out)
	if got := must(t, exitError, "files", "download", evil, "--out", filepath.Dir(own)); !strings.
		Contains(got.errors, own+" exists") {
		t.Errorf("download over a file: %s", got.errors)
	}
	if got, err := os.ReadFile(own); err != nil || string(got) != "mine" {
		t.Errorf("download replaced a file by %q, %v", got, err)
	}
	must(t, exitOK, "files", "download", evil, "--out", own)
	must(t, exitOK, "files", "rm", evil)
	if got := must(t, exitOK, "__complete", "files", "rm", id, ""); !strings.Contains(got.out,
		other+"\tstdin, ") || strings.Contains(got.out, id) {
		t.Errorf("a shell is offered\n%s", got.out)
	}
	// the one that is missing keeps the other from nothing
	if got := must(t, exitError, "files", "rm", "file-nope", id); got.out != id+"  deleted\n" ||
		!strings.Contains(got.errors, "file-nope") {
		t.Errorf("delete: %s%s", got.out, got.errors)
	}
	if got := must(t, exitOK, "files", "list", "-q"); got.out != other+"\n" {
		t.Errorf("left after delete:\n%s", got.out)
	}
}

// A refused batch leaves no file, and faults of options are found before the upload.
func TestRefusedSubmitLeavesNothing(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	input := writeFile(t, "in.jsonl", apptest.BatchFile(1))
	second := writeFile(t, "second.jsonl", apptest.BatchFile(1))
	for want, args := range map[string][]string{
		"completion_window":       {input, "--window", "1day"},
		"tidefill.deadline":       {input, second, "--deadline", "2020-01-01T00:00:00Z"},
		"is not a supported":      {input, "--endpoint", "/v1/nope"},
		"tidefill.max_failed_rat": {input, "--max-failed-ratio", "7"},
	} {
		got := must(t, exitError, append([]string{"batch", "submit"}, args...)...)
		if !strings.Contains(got.errors, want) || !strings.Contains(got.errors, "create batch: ") {
			t.Errorf("%q: %s", args, got.errors)
		}
	}
	faulty := must(t, exitNotComplete, "batch", "submit", writeFile(t, "README.md", "# Tidefill\n"))
	if !strings.Contains(faulty.out, "invalid_json_line") {
		t.Errorf("a file without requests: %s%s", faulty.out, faulty.errors)
	}
	if got := must(t, exitOK, "files", "list", "-q"); got.out != "" {
		t.Errorf("left behind:\n%s", got.out)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/batches" || r.URL.Query().Get("dry_run") == "" {
			t.Errorf("%s %s before the options are checked", r.Method, r.URL)
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"Too late.","param":"tidefill.deadline"}}`)
	}))
	defer server.Close()
	must(t, exitError, "batch", "submit", input, "--server", server.URL)
}

// What is found only with the input, such as a deadline that can't be met, comes after the upload.
func TestRefusedSubmitDeletesItsUpload(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusServiceUnavailable} {
		var deleted []string
		mux := http.NewServeMux()
		mux.HandleFunc("POST /v1/batches", func(w http.ResponseWriter, r *http.Request) {
			param := "input_file_id"
			if r.URL.Query().Get("dry_run") == "" {
				w.WriteHeader(status)
				param = "tidefill.deadline"
			} else {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprintf(w, `{"error":{"message":"Refused.","param":%q}}`, param)
		})
		mux.HandleFunc("POST /v1/files", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, `{"id":"file-1"}`)
		})
		mux.HandleFunc("DELETE /v1/files/{id}", func(w http.ResponseWriter, r *http.Request) {
			deleted = append(deleted, r.PathValue("id"))
			fmt.Fprint(w, `{}`)
		})
		server := httptest.NewServer(mux)
		got := must(t, exitError, "batch", "submit", "--server", server.URL,
			writeFile(t, "in.jsonl", apptest.BatchFile(1)))
		server.Close()
		if !strings.Contains(got.errors, "Refused.") {
			t.Errorf("the error is %s", got.errors)
		}
		// after a 5xx, the batch may exist
		if refused := status < 500; refused != (len(deleted) == 1) {
			t.Errorf("after status %d, %v are deleted", status, deleted)
		}
	}
}

func TestSubmitPrintsSomeFaults(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	page := writeFile(t, "my page.md", strings.Repeat("text\n", 108))
	got := must(t, exitNotComplete, "batch", "submit", page)
	if strings.Count(got.out, "invalid_json_line") != 10 ||
		!strings.Contains(got.out, "98 more: tidefill check '"+page+"'\n") {
		t.Errorf("faults:\n%s", got.out)
	}
	if got := must(t, exitOK, "batch", "get", "--latest", "--json"); strings.Count(got.out,
		"invalid_json_line") != 108 {
		t.Errorf("JSON lacks faults:\n%.300s", got.out)
	}
}
