package fit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator/engine"
)

// measured is a recording of a real server: vLLM 0.15.1, Llama-2-70B on four H100. It is not a part
// of the project.
func measured(t *testing.T) []Step {
	t.Helper()
	traces := os.Getenv("TIDEFILL_TRACES")
	if traces == "" {
		t.Skip("no recording of a real engine; TIDEFILL_TRACES names the folder of traces")
	}
	name := filepath.Join(traces, "engine", "vllm_steps_llama2-70b_h100_tp4.csv.gz")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := ReadSteps(filepath.Base(name), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// The goal: a cost model fitted on the first half of each run is within 5 % of the iterations of
// the second, which ran at twice to thrice the load. It must hold without a prior, since one of the
// bundled ones has seen this recording.
func TestMeasuredEngine(t *testing.T) {
	steps := measured(t)
	bundled, _ := engine.ProfileNamed("llama-70b-h100")
	foreign, _ := engine.ProfileNamed("llama-70b-a100")
	for _, test := range []struct {
		name    string
		prior   engine.Profile
		context float64
	}{{"no prior", engine.Profile{}, 0}, {"no prior, mean context", engine.Profile{}, 708},
		{"bundled prior", bundled, 708}, {"prior of another GPU", foreign, 708}} {
		t.Run(test.name, func(t *testing.T) {
			obs, err := Observe(steps, test.context, AheadUnknown)
			if err != nil {
				t.Fatal(err)
			}
			if obs.Exact != 1251 || obs.Ahead != AheadOne || obs.Runs != 2 ||
				obs.KVTokens != 501_696 {
				t.Errorf("%d iterations, %d ahead, %d runs, %d KV tokens; want 1251, 1, 2, 501696",
					obs.Exact, obs.Ahead, obs.Runs, obs.KVTokens)
			}
			r, err := Fit(obs, Options{Prior: test.prior, Resamples: 5})
			if err != nil {
				t.Fatal(err)
			}
			if r.Error.Mean > 0.025 || r.Error.P90 > 0.05 || r.Noise > 0.016 {
				t.Errorf("error %+v, noise %.4f", r.Error, r.Noise)
			}
			warnings := strings.Join(r.Warnings, "\n")
			for _, want := range []string{"p1 can't be determined", "p2 can't be determined",
				"and kv can't be distinguished"} {
				if !strings.Contains(warnings, want) {
					t.Errorf("warnings lack %q:\n%s", want, warnings)
				}
			}
			held := CrossValidate(obs, Options{Prior: test.prior})
			for i, limit := range []float64{0.05, 0.025} {
				h := held[i]
				t.Logf("%s: %+v", h.Split, h.Error)
				if h.Fault != "" || h.Error.Points < 500 || h.Error.Mean > limit {
					t.Errorf("%s: error %+v, want a mean of at most %g %s", h.Split, h.Error, limit,
						h.Fault)
				}
			}
		})
	}
}
