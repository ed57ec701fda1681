package compare

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator"
)

// The files of a directory are joined in the order in which the daemon wrote them, and replayed
// with one GPU fewer.
func TestReplayOfADirectory(t *testing.T) {
	file := recordSimulation(t, "fixed,per_runner=8")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := bytes.SplitAfter(content, []byte("\n"))
	header, rest := rows[0], rows[1:]
	dir := t.TempDir()
	write := func(name string, head []byte, rows [][]byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Join(append([][]byte{head},
			rows...), nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Three files of the first start, and one of a start an hour later.
	n := len(rest) / 3
	write("day.jsonl.4", header, rest[:n])
	write("day.jsonl.3", header, rest[n:2*n])
	write("day.jsonl.2", header, rest[2*n:])
	began := simulator.Epoch().Add(time.Hour).Format(time.RFC3339)
	later := bytes.Replace(header, []byte(simulator.Epoch().Format(time.RFC3339)),
		[]byte(began), 1)
	if bytes.Equal(later, header) {
		t.Fatalf("the header has no time: %s", header)
	}
	write("day.jsonl", later, rest)
	write("requests.jsonl", []byte(`{"custom_id":"1"}`+"\n"), nil) // no recording
	open := func(since time.Duration) *Comparison {
		t.Helper()
		p := Replay{Path: dir, Since: since, Policies: []string{"fixed,per_runner=8"},
			RecordingComparison: RecordingComparison{Profile: "llama-7b-h100", Seed: 1}}
		c, notes, err := p.Open()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(notes, "\n"), "the pool has 2 runners all the time") {
			t.Errorf("notes: %q", notes)
		}
		return c
	}
	s := open(0).Scenarios[0]
	if h := s.Scenario.Horizon.Round(time.Minute); h != 90*time.Minute || len(s.ExtraJobs) != 2 {
		t.Errorf("all of it: %s, %d jobs, want 1h30m and a job of each start", h, len(s.ExtraJobs))
	}
	c := open(10 * time.Minute)
	s = c.Scenarios[0]
	if h := s.Scenario.Horizon.Round(time.Second); h != 10*time.Minute || len(s.ExtraJobs) != 1 {
		t.Errorf("the last 10 minutes: %s, %d jobs", h, len(s.ExtraJobs))
	}
	w := WhatIf{Comparison: c, Changes: []Change{{"replicas", "-1"}}}
	r, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string][2]float64{}
	for _, f := range r.Differences[0].Policies[0].Figures {
		figures[f.Name] = [2]float64{float64(f.Given), float64(f.Changed)}
	}
	if f := figures["replica hours"]; f[0] < 0.33 || f[0] > 0.34 || f[1] > 0.17 {
		t.Errorf("replica hours are %v, want those of 2 and of 1 for ten minutes", f)
	}
	if f := figures["useful batch tokens, M an hour"]; !(f[1] > 0 && f[1] < f[0]) {
		t.Errorf("harvest is %v, want less with one replica", f)
	}
	if want := "With pool.replicas 1 instead of 2, "; !strings.HasPrefix(
		r.Differences[0].Sentences[0], want) {
		t.Errorf("the answer is %q", r.Differences[0].Sentences)
	}
}

func TestReplayWithoutRecordings(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir: "there is no recording",
		filepath.Join(dir, "none.jsonl"): "no such file"} {
		if _, _, err := (&Replay{Path: path}).Open(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
