package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/internal/recording"
)

// runBatch runs a batch file through the API and returns when it has completed.
func runBatch(t *testing.T, url, file string) {
	t.Helper()
	c, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	input, err := c.Upload(t.Context(), "in.jsonl", strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.CreateBatch(t.Context(), client.BatchRequest{InputFileID: input.ID,
		Endpoint: "/v1/chat/completions", CompletionWindow: "24h"})
	if err == nil {
		b, err = c.Watch(t.Context(), b.ID, nil)
	}
	if err != nil || b.Status != "completed" {
		t.Fatalf("batch %s: %v", b.Status, err)
	}
}

func TestRecordingHasNoUserData(t *testing.T) {
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Record = filepath.Join(t.TempDir(), "recording.jsonl")
	cfg.Telemetry.Every = 5 * time.Millisecond
	a, stop := apptest.Start(t, cfg, app.Options{})
	runBatch(t, a.URL(), apptest.BatchFile(20))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if text, _ := os.ReadFile(cfg.Record); strings.Count(string(text),
			`"source":"metrics"`) > 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no readings are recorded")
		}
	}
	stop()
	text, err := os.ReadFile(cfg.Record)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"line-1", "content", "default", "127.0.0.1", "batch_", `"m"`} {
		if strings.Contains(string(text), word) {
			t.Errorf("the recording holds %q", word)
		}
	}
	runners, jobs, lines, latencies := 0, 0, 0, 0
	header, err := recording.Read(cfg.Record, strings.NewReader(string(text)),
		func(e recording.Entry) error {
			switch {
			case e.Runner != nil:
				runners++
			case e.Job != nil && e.Job.Lines == 20 && e.Job.Deadline > 86_000 && e.Job.Most == 3:
				jobs++
			case e.Line != nil && e.Line.End == "succeeded" && e.Line.Output == 3 &&
				e.Line.Prompt > 0:
				lines++
			case e.Latencies != nil:
				latencies++
			}
			return nil
		})
	if err != nil || header.Policy != cfg.FlowControl.Policy {
		t.Errorf("%v, header %+v", err, header)
	}
	if runners != 1 || jobs != 1 || lines != 20 || latencies != 1 {
		t.Errorf("%d runners, %d jobs, %d lines, %d latencies; want 1, 1, 20, 1:\n%.3000s", runners,
			jobs, lines, latencies, text)
	}
}
