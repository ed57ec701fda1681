package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
)

// TestCurlRunsABatch runs a batch as a user without an SDK does.
func TestCurlRunsABatch(t *testing.T) {
	t.Parallel()
	testservers.Path(t, "curl")
	runner := startRunner(t, freeAddress(t), "--profile", "instant", "--model", "m")
	d := NewDaemon(t, Options{Upstreams: []string{runner}, Keys: ownKey})
	server := d.DescribedURL()
	curl := func(into any, args ...string) []byte {
		t.Helper()
		args = append([]string{"--silent", "--show-error", "--fail-with-body", "-H",
			"Authorization: Bearer " + ownKey}, args...)
		out, err := exec.CommandContext(t.Context(), "curl", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("curl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if into != nil {
			if err := json.Unmarshal(out, into); err != nil {
				t.Fatalf("curl got %s: %v", out, err)
			}
		}
		return out
	}
	// Over a megabyte, so that curl sends Expect: 100-continue.
	lines := NewLines("curl", "m", 8000)
	input := writeInput(t, "requests.jsonl", lines.Content)
	var f File
	curl(&f, server+"/v1/files", "-F", "purpose=batch", "-F", "file=@"+input)
	if f.Bytes != int64(len(lines.Content)) || f.Filename != filepath.Base(input) {
		t.Errorf("the file is %+v", f)
	}
	var b Batch
	curl(&b, server+"/v1/batches", "-H", "Content-Type: application/json",
		"-d", `{"input_file_id":"`+f.ID+`","endpoint":"/v1/chat/completions","completion_window":"24h"}`)
	for deadline := time.Now().Add(30 * time.Second); !b.Ended() &&
		time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		curl(&b, server+"/v1/batches/"+b.ID)
	}
	if b.Status != "completed" || b.RequestCounts.Completed != 8000 {
		t.Fatalf("the batch is %s, %+v", b.Status, b.RequestCounts)
	}
	content := server + "/v1/files/" + *b.OutputFileID + "/content"
	all := curl(nil, content)
	if results := ParseResults(t, all); len(results) != 8000 {
		t.Errorf("the output has %d lines", len(results))
	}
	if part := curl(nil, "--range", "100-299", content); string(part) != string(all[100:300]) {
		t.Errorf("bytes 100 to 299 are %q", part)
	}
	events := curl(nil, "--no-buffer", "--max-time", "10", server+"/v1/batches/"+b.ID+"/events")
	if !strings.Contains(string(events), "completed") {
		t.Errorf("the events of the ended batch are %q", events)
	}
	d.Verify(t, b.ID)
}

// TestCommandLineRunsABatch submits, watches, fetches and verifies a batch with the program itself.
func TestCommandLineRunsABatch(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Keys: "own=" + ownKey})
	lines := NewLines("cli", "m", 40)
	dir := t.TempDir()
	out, status := d.Run("batch", "submit", writeInput(t, "requests.jsonl", lines.Content),
		"--out", dir, "--json")
	if status != 0 {
		t.Fatalf("submit: status %d\n%s", status, out)
	}
	batches := listAll(t, d.Client(), "/v1/batches?limit=100")
	if len(batches) != 1 {
		t.Fatalf("batches: %v", batches)
	}
	if written, err := filepath.Glob(filepath.Join(dir, "*_output.jsonl")); err != nil ||
		len(written) != 1 {
		t.Errorf("result files: %v, %v", written, err)
	}
	d.Verify(t, batches[0])
	if out, status := d.Run("batch", "cancel", batches[0]); status == 0 ||
		!strings.Contains(out, "completed") {
		t.Errorf("cancel of a completed batch: status %d\n%s", status, out)
	}
	if out, status := d.Run("check",
		writeInput(t, "bad.jsonl", []byte("{\n"+line("a")+"\n"+line("a")+"\n"))); status == 0 ||
		!strings.Contains(out, "1") || !strings.Contains(out, "3") {
		t.Errorf("check of a file with errors on lines 1 and 3: status %d\n%s", status, out)
	}
}
