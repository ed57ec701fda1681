package main

import (
	"strings"
	"testing"
)

func TestDemoOnce(t *testing.T) {
	got := must(t, exitOK, "demo", "--once", "--lines", "60", "--speedup", "20", "--listen",
		"127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data", t.TempDir())
	for _, want := range []string{"60/60 (100%)", "60 done, 0 failed", "_output.jsonl",
		"label-0001", "promised a first token within 200ms and 3.75ms per token", "time per token",
		"later than promised"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("demo lacks %q:\n%s", want, got.out)
		}
	}
}
