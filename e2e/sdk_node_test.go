package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// nodeModules installs the pinned packages if one is not installed yet.
var nodeModules = sync.OnceValue(func() error {
	missing := error(nil)
	for _, file := range []string{"openai/package.json", "ai/package.json", axeScript} {
		if _, err := os.Stat("node/node_modules/" + file); err != nil {
			missing = err
		}
	}
	if missing == nil {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = "node"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

// runNode runs a script of node/ against the daemon and decodes its output.
func runNode(t *testing.T, d *Daemon, into any, script string, args ...string) {
	t.Helper()
	if err := nodeModules(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
	cmd.Dir = "node"
	cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+d.DescribedURL()+"/v1",
		"OPENAI_API_KEY="+ownKey, "FOREIGN_API_KEY="+foreignKey)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s%s", script, err, out, stderr.Bytes())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("node %s printed %q: %v", script, out, err)
	}
}

func writeInput(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNodeSDKUploadsInEveryForm(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	// Over the high-water mark of streams, so that a chunked upload has several chunks.
	lines := NewLines("node-upload", "m", 2000)
	var shapes map[string]struct {
		File    File
		Chunked bool
	}
	runNode(t, d, &shapes, "upload.mjs", writeInput(t, "größe \"1\".jsonl", lines.Content))
	chunked := 0
	for shape, sent := range shapes {
		f := sent.File
		if f.Bytes != int64(len(lines.Content)) || f.Purpose != "batch" ||
			f.Status != "processed" || f.ExpiresAt == nil || !strings.HasSuffix(f.Filename,
			".jsonl") {
			t.Errorf("%s: the file is %+v", shape, f)
		}
		if content, err := d.Client().Content(f.ID); err != nil ||
			!bytes.Equal(content, lines.Content) {
			t.Errorf("%s: %d bytes were returned of %d, %v", shape, len(content),
				len(lines.Content),
				err)
		}
		if sent.Chunked {
			chunked++
		}
	}
	if len(shapes) != 7 || chunked < 4 {
		t.Errorf("%d shapes were sent, %d of them chunked: %v", len(shapes), chunked, shapes)
	}
	if got, want := *shapes["expires_after"].File.ExpiresAt-shapes["expires_after"].File.CreatedAt,
		int64(3600); got != want {
		t.Errorf("expires_after 3600 gave %d", got)
	}
	if got := shapes["stream"].File.Filename; got != `größe "1".jsonl` {
		t.Errorf("the name of the streamed file is %q", got)
	}
}

func TestNodeSDKRunsABatch(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	lines := NewLines("node", "m", 120)
	var run struct {
		Created, Ended json.RawMessage
		Digests        map[string]string // by custom_id
		RequestID      string
		Fetched        int
	}
	runNode(t, d, &run, "batch.mjs", writeInput(t, "input.jsonl", lines.Content))
	var ended struct {
		Batch
		Metadata map[string]string
		Tidefill struct{ Priority int }
	}
	if err := json.Unmarshal(run.Ended, &ended); err != nil {
		t.Fatal(err)
	}
	if ended.Status != "completed" || ended.RequestCounts.Completed != 120 ||
		ended.Metadata["project"] != "nightly" || ended.Tidefill.Priority != 7 {
		t.Errorf("ended as %s", run.Ended)
	}
	var created map[string]json.RawMessage
	if err := json.Unmarshal(run.Created, &created); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"errors", "output_file_id", "error_file_id", "completed_at",
		"failed_at", "cancelled_at"} {
		if string(created[key]) != "null" {
			t.Errorf("a fresh batch has %s %s, want null", key, created[key])
		}
	}
	for id, body := range lines.Bodies {
		if run.Digests[id] != Digest([]byte(body)) {
			t.Errorf("%s has the answer of another body", id)
		}
	}
	if len(run.Digests) != 120 || run.RequestID == "" {
		t.Errorf("%d results, request id %q", len(run.Digests), run.RequestID)
	}
	d.Verify(t, ended.ID)
}

func TestNodeSDKPages(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	var pages struct{ Files, FilesAsc, Batches, ListedFiles, ListedAsc, ListedBatches []string }
	runNode(t, d, &pages, "pages.mjs", writeInput(t, "input.jsonl", NewLines("pages",
		"m", 1).Content))
	slices.Reverse(pages.Files)
	slices.Reverse(pages.Batches)
	if len(pages.Files) != 13 || !slices.Equal(pages.ListedFiles, pages.Files) {
		t.Errorf("files: got %v\nwant %v", pages.ListedFiles, pages.Files)
	}
	if slices.Reverse(pages.Files); !slices.Equal(pages.ListedAsc, pages.Files) {
		t.Errorf("files, oldest first: got %v\nwant %v", pages.ListedAsc, pages.Files)
	}
	if len(pages.Batches) != 13 || !slices.Equal(pages.ListedBatches, pages.Batches) {
		t.Errorf("batches: got %v\nwant %v", pages.ListedBatches, pages.Batches)
	}
}

func TestNodeSDKErrorClasses(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	var faults map[string]struct {
		Class, Code, Param, Type string
		Status, Requests         int
		HasRequestID             bool
	}
	runNode(t, d, &faults, "errors.mjs", writeInput(t, "input.jsonl", NewLines("errors",
		"m", 2).Content))
	want := map[string]struct {
		class, code, param string
		status             int
	}{
		"wrong key":       {"AuthenticationError", "invalid_api_key", "", 401},
		"unknown batch":   {"NotFoundError", "", "id", 404},
		"unknown file":    {"NotFoundError", "", "id", 404},
		"foreign batch":   {"NotFoundError", "", "id", 404},
		"foreign file":    {"NotFoundError", "", "id", 404},
		"foreign content": {"NotFoundError", "", "id", 404},
		"unknown key":     {"BadRequestError", "unknown_parameter", "extra_body", 400},
		"unknown option":  {"BadRequestError", "unknown_parameter", "tidefill.nope", 400},
		"no window": {"BadRequestError", "missing_required_parameter",
			"completion_window", 400},
		"bad purpose": {"BadRequestError", "invalid_value", "purpose", 400},
		"late cancel": {"ConflictError", "invalid_batch_status", "", 409},
	}
	for name, w := range want {
		got, ok := faults[name]
		if !ok || got.Class != w.class || got.Status != w.status || got.Code != w.code ||
			got.Param != w.param ||
			got.Type != "invalid_request_error" || !got.HasRequestID || got.Requests != 1 {
			t.Errorf("%s: got %+v, want %+v with one request", name, got, w)
		}
	}
	if len(faults) != len(want) {
		t.Errorf("the script got %d errors, want %d", len(faults), len(want))
	}
}

func TestNodeSDKRetriesCreateOneFile(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	var counts struct{ Attempts, Files, Batches int }
	runNode(t, d, &counts, "retries.mjs", writeInput(t, "input.jsonl", NewLines("retries",
		"m", 2).Content))
	if counts.Attempts != 4 || counts.Files != 1 || counts.Batches != 1 {
		t.Errorf("got %+v, want 4 attempts to make 1 file and 1 batch", counts)
	}
}

func TestNodeSDKDryRun(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	var got struct {
		Preview struct {
			Object           string
			Accepted         bool
			Verdict, Reason  *string
			Lines            int
			CompletionWindow string `json:"completion_window"`
			ExpiresAt        int64  `json:"expires_at"`
		}
		Error   struct{ Class, Param string }
		Sent    int
		Batches []string
	}
	before := time.Now().Unix()
	runNode(t, d, &got, "dryrun.mjs", writeInput(t, "input.jsonl", NewLines("dry",
		"m", 5).Content))
	p := got.Preview
	if p.Object != "batch.dry_run" || !p.Accepted || p.Lines != 5 || p.CompletionWindow != "1h" ||
		p.ExpiresAt < before+1800 || p.ExpiresAt > time.Now().Unix()+1800 {
		t.Errorf("the preview is %+v", p)
	}
	if (p.Verdict == nil) == (p.Reason == nil) {
		t.Errorf("verdict %v, reason %v; want one of them", p.Verdict, p.Reason)
	}
	if got.Error.Class != "BadRequestError" || got.Error.Param != "input_file_id" {
		t.Errorf("a wrong file got %+v", got.Error)
	}
	if len(got.Batches) != 0 || got.Sent != 2 {
		t.Errorf("%d requests made the batches %v, want none of 2", got.Sent, got.Batches)
	}
}
