package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	days "github.com/tidefill/tidefill/internal/recording"
)

func TestRecordTellsTheDayWithoutItsWords(t *testing.T) {
	cfg := testConfig(t.TempDir(), startRunner(t, nil))
	cfg.Record = filepath.Join(t.TempDir(), "day.jsonl")
	cfg.Readings.Every = 5 * time.Millisecond
	d, stop := runDaemonUntilEnd(t, cfg, nil)
	t.Setenv("TIDEFILL_SERVER", d.url())
	must(t, exitOK, "batch", "submit", writeFile(t, "in.jsonl", batchLines(20)), "--wait")
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
	header, err := days.Read(cfg.Record, strings.NewReader(string(text)), func(e days.Entry) error {
		switch {
		case e.Runner != nil:
			runners++
		case e.Job != nil && e.Job.Lines == 20 && e.Job.Deadline > 86_000 && e.Job.Most == 3:
			jobs++
		case e.Line != nil && e.Line.End == "succeeded" && e.Line.Output == 3 && e.Line.Prompt > 0:
			lines++
		case e.Latencies != nil:
			latencies++
		}
		return nil
	})
	if err != nil || header.Policy != "aimd" {
		t.Errorf("%v, header %+v", err, header)
	}
	if runners != 1 || jobs != 1 || lines != 20 || latencies != 1 {
		t.Errorf("%d runners, %d jobs, %d lines, %d latencies; want 1, 1, 20, 1:\n%.3000s", runners,
			jobs, lines, latencies, text)
	}
}
