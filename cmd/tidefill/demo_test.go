package main

import (
	"strings"
	"testing"
)

func TestDemoOnce(t *testing.T) {
	got := must(t, exitOK, "demo", "--once", "--lines", "9", "--speedup", "100", "--listen",
		"127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data", t.TempDir())
	for _, want := range []string{"9/9 (100%)", "9 done, 0 failed", "_output.jsonl", "label-0001"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("demo lacks %q:\n%s", want, got.out)
		}
	}
}
