package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

func TestBatchFromSubmitToDelete(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	input, results := writeFile(t, "in.jsonl", apptest.BatchFile(50)), t.TempDir()

	submitted := must(t, exitOK, "batch", "submit", input, "--meta", "project=a", "--out", results,
		"--json")
	id := idOf(t, submitted.out)
	output, err := os.ReadFile(filepath.Join(results, id+"_output.jsonl"))
	if err != nil || strings.Count(string(output), "\n") != 50 {
		t.Fatalf("output file: %v, %d lines", err, strings.Count(string(output), "\n"))
	}
	if files, _ := os.ReadDir(results); len(files) != 1 {
		t.Errorf("files left beside the output: %v", files)
	}
	if got := must(t, exitOK, "verify", id); !strings.Contains(got.out, "proven") {
		t.Errorf("verify:\n%s", got.out)
	}
	if got := must(t, exitOK, "batch", "results", id); got.out != string(output) {
		t.Errorf("results on standard output differ from the file")
	}
	if got := must(t, exitOK, "batch", "get", id); !strings.Contains(got.out, "50 completed") ||
		!strings.Contains(got.out, "project=a") {
		t.Errorf("get:\n%s", got.out)
	}
	if got := must(t, exitOK, "batch", "watch", id); !strings.Contains(got.out, "50/50 (100%)") {
		t.Errorf("watch of an ended batch:\n%s", got.out)
	}
	if got := must(t, exitError, "batch", "cancel", id); !strings.Contains(got.errors,
		"completed") || !strings.Contains(got.errors, "request req_") {
		t.Errorf("cancel of a completed batch: %s", got.errors)
	}
	must(t, exitOK, "batch", "delete", id)
	must(t, exitError, "batch", "get", id)
}

func TestListFiltersAndPages(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	input := writeFile(t, "in.jsonl", apptest.BatchFile(1))
	var ids []string
	for _, team := range []string{"a", "b", "a"} {
		ids = append(ids, idOf(t, must(t, exitOK, "batch", "submit", input, "--meta", "team="+team,
			"--wait", "--json").out))
	}
	got := must(t, exitOK, "batch", "list", "--meta", "team=a", "--ascending", "-q")
	if got.out != ids[0]+"\n"+ids[2]+"\n" {
		t.Errorf("list of team a, earliest first:\n%s", got.out)
	}
	if got := must(t, exitOK, "batch", "list", "--json", "--limit", "2"); strings.Count(got.out,
		"\n") != 2 {
		t.Errorf("list --limit 2:\n%s", got.out)
	}
	if got := must(t, exitOK, "batch", "list", "--json", "--limit", "0", "--status",
		"completed"); strings.Count(got.out, "\n") != 3 {
		t.Errorf("list --limit 0:\n%s", got.out)
	}
	if got := must(t, exitError, "batch", "list", "--status", "sleeping"); !strings.Contains(
		got.errors, "use 'validating', 'in_progress'") {
		t.Errorf("an unknown status: %s", got.errors)
	}
	if got := must(t, exitOK, "batch", "ls", "--limit", "2"); got.errors !=
		"2 of 3; --limit 0 shows all\n" || strings.Count(got.out, "\n") != 3 {
		t.Errorf("list --limit 2:\n%s%s", got.out, got.errors)
	}
	if got := must(t, exitOK, "batches", "--model", "n"); got.errors != "No such batches.\n" ||
		got.out != "" {
		t.Errorf("list of nothing:\n%s%s", got.out, got.errors)
	}
	all := strings.Join([]string{ids[2], ids[1], ids[0], ""}, "\n")
	for _, args := range []string{"batches -q", "batches list -o name", "batch list -q"} {
		if got := must(t, exitOK, strings.Fields(args)...); got.out != all {
			t.Errorf("%s prints\n%s", args, got.out)
		}
	}
	if got := must(t, exitOK, "batches", "-o", "wide"); !strings.Contains(got.out, ids[0]) ||
		!strings.Contains(got.out, "MODEL") {
		t.Errorf("list -o wide:\n%s", got.out)
	}
	if got := must(t, exitOK, "batches", "-o", "yaml"); strings.Count(got.out, "\n---\n") != 2 ||
		!strings.HasPrefix(got.out, "id: "+ids[2]+"\n") {
		t.Errorf("list -o yaml:\n%.300s", got.out)
	}
}

func TestSubmitDryRun(t *testing.T) {
	a, _ := startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	input := writeFile(t, "in.jsonl", apptest.BatchFile(3))
	if got := must(t, exitOK, "batch", "submit", input, "--dry-run"); !strings.Contains(got.out,
		"dry run: the batch would be created") || !strings.Contains(got.out, "m, 3 lines") {
		t.Errorf("dry run:\n%s", got.out)
	}
	var preview struct{ Object string }
	if got := must(t, exitOK, "batch", "submit", input, "--dry-run", "--json"); json.Unmarshal(
		[]byte(got.out), &preview) != nil || preview.Object != "batch.dry_run" {
		t.Errorf("dry run as JSON:\n%s", got.out)
	}
	refused := writeFile(t, "refused.jsonl", "nonsense\n")
	if got := must(t, exitNotComplete, "batch", "submit", refused,
		"--dry-run"); !strings.Contains(got.out, "would fail") || !strings.Contains(got.out,
		"line 1: invalid_json_line") {
		t.Errorf("dry run of a faulty file:\n%s", got.out)
	}
	must(t, exitUsage, "batch", "submit", input, "--dry-run", "--wait")
	must(t, exitError, "batch", "submit", input, "--dry-run", "--window", "x")
	if got := must(t, exitOK, "batch", "list"); strings.Contains(got.out, "batch_") {
		t.Errorf("dry runs created batches:\n%s", got.out)
	}
	answer, err := http.Get(a.URL() + "/v1/files")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var files struct{ Data []any }
	if err := json.NewDecoder(answer.Body).Decode(&files); err != nil || len(files.Data) != 0 {
		t.Errorf("dry runs left files: %v, %v", files.Data, err)
	}
}

// Lines that a batch did not run are not shown as failed, and every row has a heading.
func TestDescribeLinesThatDidNotRun(t *testing.T) {
	show := func(b client.Batch, format string) string {
		var out bytes.Buffer
		o := output{format: format}
		if format == formatWide {
			rows := batchRows(&o, screen{}, time.Unix(1000, 0))
			if err := errors.Join(rows.add(&out, b), rows.end()); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		describe(&out, screen{}, b, time.Unix(1000, 0))
		return out.String()
	}
	full := show(stopped, "")
	for _, want := range []string{"10, 3 completed, 1 failed, 6 not run\n",
		"  retry      send again the lines that failed or did not run: tidefill batch retry " +
			"batch_1\n",
	} {
		if !strings.Contains(full, want) {
			t.Errorf("got %s, want %q in it", full, want)
		}
	}
	if strings.Contains(full, "\n             ") {
		t.Errorf("a row has no heading: %s", full)
	}
	if got := strings.Join(strings.Fields(show(stopped, formatWide)), " "); !strings.Contains(got,
		"cancelled 40% of 10 1 ") {
		t.Errorf("the row is %s", got)
	}
}

func TestDescribePreview(t *testing.T) {
	var p client.Preview
	err := json.Unmarshal([]byte(`{"completion_window": "6h", "expires_at": 1800000000,
		"verdict": "infeasible", "predicted_finish": 1800003000, "lines": 50000,
		"work_seconds": 86000, "models": [{"model": "m", "lines": 50000, "input_tokens": 9000000,
		"output_tokens": 12000000, "known_answers": 1}], "pools": [{"pool": "batch",
		"replicas": 4, "gpu_hours": 25.53}], "nearest": {"deadline": 1800003000,
		"completion_window": "7h"}, "windows": [{"completion_window": "24h", "verdict": "ok"}],
		"affected": {"own": 3, "others": 2, "batches": [{"id": "batch_a", "verdict":
		"at_risk"}]}}`), &p)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	describePreview(&out, p)
	for _, want := range []string{"would be refused", "lines      50,000\n",
		"predicted  deadline can't be met, done ", "nearest    7h, until ",
		"24h  deadline will be met\n", "work       23h53m of one engine\n",
		"m, 50,000 lines, about 9,000,000 tokens in, 12,000,000 out, from 1 known answer\n",
		"pool       batch, 4 replicas, 25.5 GPU-hours\n", "batch_a: deadline at risk\n",
		"2 more of your batches\n", "2 of other tenants' batches\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestSubmitFromStandardInput(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	embeddings := strings.NewReplacer("/v1/chat/completions",
		"/v1/embeddings", `"messages":[{"role":"user","content":"0"}],"max_tokens":3`,
		`"input":"x"`).
		Replace(apptest.BatchFile(1))
	got := commandWith(t, "\xEF\xBB\xBF\n"+embeddings, "batch", "submit", "-", "--wait")
	if got.status != exitOK || !strings.Contains(got.out, "/v1/embeddings") {
		t.Errorf("status %d\n%s%s", got.status, got.out, got.errors)
	}
}

func TestExitStatusesOfBatches(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, nil))
	refused := writeFile(t, "refused.jsonl", apptest.BatchFile(1)+"nonsense\n")
	got := must(t, exitNotComplete, "batch", "submit", refused)
	if !strings.Contains(got.out, "line 2: invalid_json_line") {
		t.Errorf("faults of a refused file:\n%s", got.out)
	}
	failing := writeFile(t, "failing.jsonl", apptest.BatchFile(1)+
		`{"custom_id":"bad","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":"none"}}`+"\n")
	id := idOf(t, must(t, exitFailedLines, "batch", "submit", failing, "--wait", "--json").out)
	must(t, exitFailedLines, "batch", "watch", id)
	must(t, exitOK, "verify", id)
	retried := idOf(t, must(t, exitFailedLines, "batch", "retry", id, "--wait", "--json").out)
	if got := must(t, exitOK, "batch", "results", retried); !strings.Contains(got.out, `"bad"`) ||
		strings.Count(got.out, "\n") != 1 {
		t.Errorf("results of the retried line:\n%s", got.out)
	}
}

func TestPauseFollowCancel(t *testing.T) {
	startDaemon(t, t.TempDir(), apptest.StartRunner(t, func(c *emulator.Config) {
		c.Faults.Latency = emulator.Duration(20e6)
	}))
	input := writeFile(t, "in.jsonl", apptest.BatchFile(400))
	id := idOf(t, must(t, exitOK, "batch", "submit", input, "--json").out)
	// said by the API, before a dispatcher does
	if got := must(t, exitOK, "batch", "pause", id); !strings.Contains(got.out,
		plan.Paused.Text()) {
		t.Errorf("pause:\n%s", got.out)
	}
	must(t, exitError, "batch", "results", id, "--out", t.TempDir())
	must(t, exitError, "verify", id)
	must(t, exitOK, "batch", "resume", id)
	if got := must(t, exitOK, "batch", "results", id, "--follow"); strings.Count(got.out,
		"\n") != 400 {
		t.Errorf("followed %d lines, want 400", strings.Count(got.out, "\n"))
	}
	must(t, exitOK, "verify", id)

	id = idOf(t, must(t, exitOK, "batch", "submit", input, "--json").out)
	must(t, exitOK, "batch", "pause", id)
	must(t, exitOK, "batch", "cancel", id)
	must(t, exitNotComplete, "batch", "watch", id)
	must(t, exitOK, "verify", id)
}
