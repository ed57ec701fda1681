package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	days "github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator"
)

// daybook writes a simulated day down as a daemon would.
type daybook struct{ bytes.Buffer }

func (d *daybook) line(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	d.Write(append(text, '\n'))
}

func (d *daybook) Put(e days.Entry) { d.line(e) }

// record simulates half an hour under a policy and returns the file that a daemon would have
// written.
func recordSimulated(t *testing.T, policy string) (file string) {
	t.Helper()
	text := `
name: recorded
horizon: 30m
pool: {profile: llama-7b-h100, replicas: 2, kv_tokens: 110000}
interactive: {generator: conversation, rate: 6}
metrics: {period: 1s, delay: 20ms}
jobs: [{name: night, kind: bal}]
`
	at, err := openStory(writeFile(t, "recorded.yaml", text), recording{})
	if err != nil {
		t.Fatal(err)
	}
	acting, err := configured{}.named(policy)
	if err != nil {
		t.Fatal(err)
	}
	var book daybook
	slo := at.Scenario.Interactive.SLO
	book.line(days.Header{Version: days.Version, Began: simulator.Epoch(), Policy: policy,
		TTFT: slo.TTFT.Seconds(), TPOT: slo.TPOT.Seconds()})
	ttft := []float64{.05, .1, .25, .5, .75, 1, 2.5, 5, 10, math.Inf(1)}
	tpot := []float64{.005, .01, .015, .02, .025, .03, .04, .05, .075, .1, .2, math.Inf(1)}
	told := newRetold(ttft, tpot)
	told.Recorder = days.NewRecorder(simulator.Epoch(), &book)
	setup := at.on(3, acting.policy)
	setup.Outputs.Recorder = told
	if _, err := simulator.RunAgainst(simulator.NoBatch{}, setup, func(float64) error {
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "day.jsonl")
	if err := os.WriteFile(file, book.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A day that the simulator itself has told is recognized: what the recording leaves out is all that
// differs.
func TestCompareRecognizesADay(t *testing.T) {
	file := recordSimulated(t, "headroom")
	for _, args := range [][]string{{"--profile", "llama-7b-h100"}, nil} {
		got := must(t, exitOK, append([]string{"simulate", "--compare", file, "--json"},
			args...)...)
		var c comparison
		if err := json.Unmarshal([]byte(got.out), &c); err != nil {
			t.Fatal(err)
		}
		if c.Runners != 2 || c.Policy != "headroom" || c.Seconds < 1790 ||
			c.Calibrated != (args == nil) {
			t.Errorf("%+v", c)
		}
		limits := map[string]float64{
			"requests running, all runners": 0.15, "harvest": 0.15,
			"TPOT of all requests p50": 0.15, "TPOT of all requests p90": 0.15,
			"iteration, mean of a second p50": 0.15, "TTFT of all requests p50": 0.4,
			"interactive TPOT p50": 0.15,
		}
		for _, f := range c.Figures {
			limit, judged := limits[f.Name]
			switch delete(limits, f.Name); {
			case !judged:
			case f.Error == nil:
				t.Errorf("%v: %s is not compared: %+v", args, f.Name, f)
			case math.Abs(*f.Error) > limit:
				t.Errorf("%v: %s is off by %.1f %%: recorded %v, simulated %v", args, f.Name,
					100**f.Error, *f.Recorded, *f.Simulated)
			}
		}
		if len(limits) > 0 {
			t.Errorf("figures are missing: %v", limits)
		}
	}
	if again := must(t, exitOK, "simulate", "--compare", file); again.out != must(t, exitOK,
		"simulate", "--compare", file).out || !strings.Contains(again.out, "recorded") {
		t.Error("twice the same recording gives different bytes")
	}
	// An engine that is twice as slow is not that of the recording.
	other := must(t, exitOK, "simulate", "--compare", file, "--json", "--profile", "llama-70b-a100")
	if !strings.Contains(other.out, "llama-70b-a100") {
		t.Error(other.out)
	}
}

func TestCompareRefusesWhatItCantTell(t *testing.T) {
	empty := writeFile(t, "day.jsonl",
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
