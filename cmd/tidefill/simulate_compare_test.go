package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCompareMistakes(t *testing.T) {
	empty := writeFile(t, "recording.jsonl",
		`{"tidefill_recording":1,"began":"2026-01-01T00:00:00Z","policy":"fixed","slo_ttft_s":2,"slo_tpot_s":0.1}`+"\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"at least 3m", []string{"--compare", empty}},
		{"no recording", []string{"--compare", writeFile(t, "x", "{}\n")}},
		{"one scenario at most", []string{"--compare", empty, "a.yaml", "b.yaml"}},
		{"no such file", []string{"--compare", filepath.Join(t.TempDir(), "none")}},
	} {
		got := command(t, append([]string{"simulate"}, c.args...)...)
		if got.status == exitOK || !strings.Contains(got.errors, c.want) {
			t.Errorf("%v: status %d, %s; want %q", c.args, got.status, got.errors, c.want)
		}
	}
}
