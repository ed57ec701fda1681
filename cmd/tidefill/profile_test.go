package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit/profile"
)

// stepsFile records an engine that takes 10 ms and 0.1 ms a request, with a ripple of 1 %.
func stepsFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(
		"experiment,step,start_us,prefill_tokens,decode_tokens,context_tokens,gap_steps,gap_us\n")
	at := 0
	for i := range 400 {
		n := 1 + i*37%90
		us := int(1000 * (10 + 0.1*float64(n)) * (1 + 0.01*math.Sin(float64(i))))
		fmt.Fprintf(&b, "run,%d,%d,0,%d,%d,1,%d\n", i, at, n, 100*n, us)
		at += us
	}
	return writeFile(t, "steps.csv", b.String())
}

func TestProfileFit(t *testing.T) {
	steps, dir := stepsFile(t), t.TempDir()
	out, plot := filepath.Join(dir, "mine.yaml"), filepath.Join(dir, "mine.svg")
	args := []string{"profile", "fit", steps, "--ahead", "0", "--prior", "llama-8b-a100",
		"--out", out, "--plot", plot}
	table := must(t, exitOK, args...).out
	for _, want := range []string{
		"mine: 400 iterations with a known time, 1 run, 1 to 90 decoding requests",
		"second half of each run, fitted on the first: mean error 0.",
		"warning: c1 and kv can't be distinguished",
		"warning: p1 can't be determined: no interval shows it",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	written := read(t, out)
	if drawing := read(t, plot); !strings.HasPrefix(drawing, "<svg ") {
		t.Errorf("no drawing: %.60s", drawing)
	}
	if shown := must(t, exitOK, "profile", "show", out).out; shown != written {
		t.Errorf("shown is not what was written:\n%s\n%s", shown, written)
	}

	var f profile.File
	if err := json.Unmarshal([]byte(must(t, exitOK, append(args, "--json")...).out),
		&f); err != nil {
		t.Fatal(err)
	}
	p, err := f.Profile()
	if err != nil {
		t.Fatal(err)
	}
	if slope := p.CostModel.C1 + 100*p.CostModel.KV; math.Abs(p.CostModel.C0-10) > 0.1 ||
		math.Abs(slope-0.1) > 0.003 || p.CostModel.KV != 8.4e-5 {
		t.Errorf("cost model %+v, want 10 ms and 0.1 ms a request, kv of the prior", p.CostModel)
	}
	if f.Fit.Sources[0].File != "steps.csv" || len(f.Fit.Sources[0].SHA256) != 64 ||
		f.Noise < 0.005 || f.Noise > 0.015 {
		t.Errorf("noise %g, sources %+v", f.Noise, f.Fit.Sources)
	}

	must(t, exitOK, args...)
	if read(t, out) != written {
		t.Error("the same seed gave other bytes")
	}
	// A fitted profile is a prior like a bundled one.
	must(t, exitOK, "profile", "fit", steps, "--ahead", "0", "--prior", out)
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestProfileListAndShow(t *testing.T) {
	list := must(t, exitOK, "profile", "list").out
	for _, want := range []string{
		"llama-70b-h100      Llama-2-70B  4 H100  16.1 ms  2,510     iterations\n",
		"llama-8b-a100       Llama-3-8B   1 A100  12.3 ms  2,268     operators\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	for _, p := range engine.Profiles() {
		if engine.OriginOf(p.Name) == (engine.Origin{}) {
			t.Errorf("nobody says what the profile %s is of", p.Name)
		}
	}
	wide := must(t, exitOK, "profile", "list", "-o", "wide").out
	if !strings.Contains(wide, " C0 ") {
		t.Errorf("the wide list lacks the cost model:\n%s", wide)
	}
	if lines := strings.Count(must(t, exitOK, "profile", "list", "--json").out,
		"\n"); lines != len(engine.Profiles()) {
		t.Errorf("%d profiles as JSON, want %d", lines, len(engine.Profiles()))
	}
	if shown := must(t, exitOK, "profile", "show", "llama-70b-h100").out; !strings.Contains(shown,
		"kv_tokens: 500000") {
		t.Errorf("shown is\n%s", shown)
	}
}

func TestProfileMistakes(t *testing.T) {
	steps := stepsFile(t)
	short := writeFile(t, "short.csv",
		"experiment,step,start_us,prefill_tokens,decode_tokens,gap_steps,gap_us\nrun,1,0,0,3,1,9\n"+
			"run,2,9,0,-3,,\n")
	strange := writeFile(t, "strange.csv", "time,tokens\n1,2\n")
	empty := writeFile(t, "few.csv",
		"experiment,step,start_us,prefill_tokens,decode_tokens,gap_steps,gap_us\nrun,1,0,0,3,1,9\n"+
			"run,2,9,0,3,,\n")
	for _, test := range []struct {
		name   string
		args   []string
		status int
		want   []string
	}{
		{"no file", []string{"fit"}, exitUsage, []string{"requires at least 1 arg"}},
		{"missing file", []string{"fit", "/nowhere.csv"}, exitError,
			[]string{"/nowhere.csv: no such file"}},
		{"a file twice", []string{"fit", steps, steps}, exitUsage, []string{"is given twice"}},
		{"faults of all files", []string{"fit", short, strange}, exitError,
			[]string{`short.csv:3: decode_tokens "-3" is negative`,
				`strange.csv:1: unknown column "time"`,
				"strange.csv:1: missing column experiment"}},
		{"too little", []string{"fit", empty}, exitError,
			[]string{"few.csv: 1 iterations with a known time can't bear a fit, at least 30"}},
		{"bad ahead", []string{"fit", steps, "--ahead", "2"}, exitUsage,
			[]string{`--ahead is "2", want 0, 1 or auto`}},
		{"bad context", []string{"fit", steps, "--mean-context", "-1"}, exitUsage,
			[]string{"--mean-context is -1"}},
		{"unknown prior", []string{"fit", steps, "--prior", "b300"}, exitUsage,
			[]string{"--prior", `"b300" is neither a file nor a bundled profile`,
				"llama-70b-h100"}},
		{"unknown profile", []string{"show", "b300"}, exitUsage, []string{"llama-70b-h100"}},
		{"no profile", []string{"show", short}, exitError, []string{"short.csv: yaml"}},
		{"no folder", []string{"fit", steps, "--out", "/nowhere/p.yaml"}, exitError,
			[]string{"/nowhere/p.yaml: no such file"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := must(t, test.status, append([]string{"profile"}, test.args...)...)
			for _, want := range test.want {
				if !strings.Contains(got.errors, want) {
					t.Errorf("standard error lacks %q:\n%s", want, got.errors)
				}
			}
		})
	}
}
