package fit

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
)

// syntheticTrace is an invented recording: consecutive steps of an engine with a known cost model.
type syntheticTrace struct {
	costModel costmodel.Model
	noise     float64
	steps     int
	most      int     // decoding requests
	context   float64 // mean per request; 0: drawn anew for each step
	prefill   float64 // share of steps with a chunk
	before    bool    // chunks follow computed context
	ahead     Ahead
	seed      uint64
}

func (d syntheticTrace) record() []Step {
	rng := rand.New(rand.NewPCG(d.seed, 0))
	var steps []Step
	work := make([]Work, d.steps)
	for i := range work {
		w := Work{Decoding: 1 + rng.IntN(d.most)}
		context := d.context
		if context == 0 {
			context = 100 + 3000*rng.Float64()
		}
		w.Context = math.Round(context * float64(w.Decoding))
		if rng.Float64() < d.prefill {
			w.Chunks, w.Prefill = 1, 16+rng.IntN(1500)
			if d.before {
				w.Before = float64(rng.IntN(8000))
			}
		}
		work[i] = w
		steps = append(steps, Step{
			File: "trace", Line: i + 2, Run: fmt.Sprint("run", i*4/d.steps), Number: int64(i),
			PrefillTokens: int64(w.Prefill), PrefillReqs: int64(w.Chunks), DecodeTokens: int64(
				w.Decoding), Running: int64(w.Decoding + w.Chunks),
			Context: int64(w.Context), PrefillContext: int64(w.Before), KVBlocksUsed: -1,
			KVBlocksTotal: -1,
		})
	}
	at := int64(0)
	for i := range steps {
		computed := work[max(0, i-int(d.ahead))]
		ms := Observation{Steps: 1, Work: computed}.Predict(d.costModel) * math.Exp(
			d.noise*rng.NormFloat64())
		steps[i].Start, steps[i].Gap, steps[i].GapSteps = at, int64(math.Round(1000*ms)), 1
		at += steps[i].Gap
		if i+1 == len(steps) || steps[i+1].Run != steps[i].Run {
			steps[i].Gap, steps[i].GapSteps, at = 0, 0, 0
		}
	}
	return steps
}

func fitted(t interface {
	Helper()
	Fatal(...any)
}, steps []Step, opt Options) (Result, Observations) {
	t.Helper()
	obs, err := Observe(steps, 0, AheadUnknown)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Fit(obs, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r, obs
}

var known = costmodel.Model{C0: 15, C1: 0.03, C2: 0.05, N0: 100, KV: 5e-5, P1: 0.01, P2: 2e-6}

func rich(edit func(*syntheticTrace)) syntheticTrace {
	d := syntheticTrace{costModel: known, noise: 0.01, steps: 800, most: 200, prefill: 0.4,
		before: true,
		ahead:  AheadOne, seed: 1}
	if edit != nil {
		edit(&d)
	}
	return d
}

func TestKnownCostModelsAreRecovered(t *testing.T) {
	tests := []struct {
		name  string
		trace syntheticTrace
	}{
		{"scheduler ahead", rich(nil)},
		{"scheduler not ahead", rich(func(d *syntheticTrace) { d.ahead = AheadNone })},
		{"small batches dearer", rich(func(d *syntheticTrace) {
			d.costModel.C1, d.costModel.C2, d.costModel.N0 = 0.1, -0.06, 60
		})},
		{"another engine", rich(func(d *syntheticTrace) {
			d.costModel = costmodel.Model{C0: 6, C1: 0.02, C2: 0.03, N0: 128, KV: 2e-4, P1: 0.02,
				P2: 5e-6}
		})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, obs := fitted(t, test.trace.record(), Options{Resamples: 20, Seed: 1})
			if obs.Ahead != test.trace.ahead {
				t.Errorf("scheduler found to be %d ahead, want %d", obs.Ahead, test.trace.ahead)
			}
			for _, c := range r.Coefficients {
				want := test.trace.costModel.N0
				if i := slices.Index(termNames[:], c.Name); i >= 0 {
					want = valueOf(test.trace.costModel, term(i))
				}
				if c.Origin != FromData {
					t.Errorf("%s is from %s", c.Name, c.Origin)
				}
				if tolerance := max(5*c.Error, 0.02*math.Abs(want)); math.Abs(
					c.Value-want) > tolerance {
					t.Errorf("%s is %.4g, want %.4g within %.2g", c.Name, c.Value, want, tolerance)
				}
				if c.Error <= 0 || c.Error > math.Abs(want)/2 {
					t.Errorf("%s has the error %g", c.Name, c.Error)
				}
			}
			if math.Abs(r.Noise-test.trace.noise) > 0.2*test.trace.noise {
				t.Errorf("noise is %g, want %g", r.Noise, test.trace.noise)
			}
			// The first iteration of each of four runs may hold a chunk that no row shows.
			if r.Error.Mean > test.trace.noise+0.005 || math.Abs(r.Error.Bias) > 0.005 {
				t.Errorf("error %+v with noise %g", r.Error, test.trace.noise)
			}
			if len(r.Warnings) > 0 {
				t.Errorf("warnings: %q", r.Warnings)
			}
		})
	}
}

func TestOutliersDoNotMoveTheFit(t *testing.T) {
	steps := rich(nil).record()
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range steps {
		if steps[i].Gap > 0 && rng.Float64() < 0.1 {
			steps[i].Gap += 20_000 + rng.Int64N(200_000) // a stall
		}
	}
	r, _ := fitted(t, steps, Options{Resamples: -1})
	for i, tolerance := range map[term]float64{perIteration: 0.02, perToken: 0.1,
		perContext: 0.03} {
		if got, want := valueOf(r.CostModel, i),
			valueOf(known, i); math.Abs(got-want) > tolerance*want {
			t.Errorf("%s is %g, want %g", i, got, want)
		}
	}
	if r.Outliers < 70 {
		t.Errorf("%d outliers found of about 80", r.Outliers)
	}
}

func TestTermsThatDataCannotDetermine(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: many fits")
	}
	prior := engine.Profile{Name: "prior", CostModel: costmodel.Model{C0: 1, C1: 0.001, C2: 0.002,
		N0: 500,
		KV: 5e-5, P1: 0.01, P2: 2e-6}}
	tests := []struct {
		name  string
		trace syntheticTrace
		held  []string // terms not from the data
		want  string   // of the warnings
	}{
		{"one context", rich(func(d *syntheticTrace) {
			d.context, d.prefill = 700, 0
		}), []string{"kv", "p1", "p2"}, "c1 and kv can't be distinguished"},
		{"no prefill", rich(func(d *syntheticTrace) {
			d.prefill = 0
		}), []string{"p1", "p2"}, "p1 can't be determined: no interval shows it"},
		{"hardly any prefill", rich(func(d *syntheticTrace) {
			d.prefill = 0.003
		}), []string{"p1", "p2"}, "p1 can't be determined: only"},
		{"below the knee", rich(func(d *syntheticTrace) {
			d.most, d.prefill = 90, 0
		}), []string{"c2", "n0", "p1", "p2"}, "no bend shows between 1 and 90 tokens"},
		{"decoding below the knee", rich(func(d *syntheticTrace) {
			d.most, d.costModel.N0, d.costModel.C2 = 16, 16, 0.1
			d.prefill = 0.5
		}), []string{"p1"}, "p1 can't be distinguished"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, prior := range []engine.Profile{{}, prior} {
				r, _ := fitted(t, test.trace.record(), Options{Resamples: 20, Prior: prior})
				origin := FromZero
				if prior.Name != "" {
					origin = FromPrior
				}
				var held []string
				for _, c := range r.Coefficients {
					if c.Origin != FromData {
						held = append(held, c.Name)
						if c.Origin != origin {
							t.Errorf("%s is from %s, want %s", c.Name, c.Origin, origin)
						}
						if i := slices.Index(termNames[:], c.Name); i >= 0 && term(
							i) != perPrompt && c.Value != valueOf(prior.CostModel, term(i)) {
							t.Errorf("%s is %g, the prior's is %g", c.Name, c.Value, valueOf(
								prior.CostModel, term(i)))
						}
					}
				}
				for _, name := range test.held {
					if !slices.Contains(held, name) {
						t.Errorf("%s is from the data; held are %v", name, held)
					}
				}
				if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, test.want) {
					t.Errorf("warnings lack %q:\n%s", test.want, all)
				}
			}
		})
	}
}

func TestPrefillKeepsItsCost(t *testing.T) {
	prior := engine.Profile{Name: "prior", CostModel: costmodel.Model{C0: 15, C1: 0.02, C2: 0.035,
		N0: 120,
		P1: 0.005}}
	d := rich(func(d *syntheticTrace) {
		d.costModel.C1, d.costModel.C2, d.costModel.N0, d.prefill = 0.1, -0.06, 60, 0
	})
	r, _ := fitted(t, d.record(), Options{Resamples: -1, Prior: prior})
	if got := r.CostModel.C1 + r.CostModel.C2 + r.CostModel.P1; math.Abs(got-0.06) > 1e-9 {
		t.Errorf("a prefill token costs %g ms, want the prior's 0.06", got)
	}
}

func TestOrderAndSeed(t *testing.T) {
	for seed := range uint64(2) {
		steps := rich(func(d *syntheticTrace) { d.steps, d.seed = 200, seed }).record()
		shuffled := slices.Clone(steps)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		a, obs := fitted(t, steps, Options{Resamples: 3, Seed: seed})
		b, obs2 := fitted(t, shuffled, Options{Resamples: 3, Seed: seed})
		slices.Reverse(obs2.All)
		c, err := Fit(obs2, Options{Resamples: 3, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%+v", a)
		for _, got := range []Result{b, c} {
			if text := fmt.Sprintf("%+v", got); text != want {
				t.Fatalf("another order, another result:\n%s\n%s", want, text)
			}
		}
		if x, y := fmt.Sprint(CrossValidate(obs, Options{})),
			fmt.Sprint(CrossValidate(obs2, Options{})); x != y {
			t.Fatalf("another order, another judgement:\n%s\n%s", x, y)
		}
	}
}

func TestInsufficientDataIsRefused(t *testing.T) {
	few := rich(func(d *syntheticTrace) { d.steps = 30 }).record()
	alike := rich(func(d *syntheticTrace) { d.most = 2 }).record()
	apart := rich(nil).record()
	for i := range apart {
		apart[i].GapSteps = 0
	}
	for want, steps := range map[string][]Step{
		"26 iterations with a known time can't bear a fit":                few,
		"all iterations decode nearly the same number of requests (2 dif": alike,
		"no row has gap_steps 1":                                          apart,
	} {
		obs, err := Observe(steps, 0, AheadUnknown)
		if err == nil {
			_, err = Fit(obs, Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// Where an iteration's predecessor was not sampled, what it prefilled is not known, and its own is
// of the next.
func TestAheadTakesTheStepBefore(t *testing.T) {
	step := func(number, start, prefill, decode, gap int64) Step {
		return Step{Number: number, Start: start, PrefillTokens: prefill,
			PrefillReqs: min(prefill, 1), DecodeTokens: decode, GapSteps: gap, Gap: 1000 * gap,
			Context: 0}
	}
	steps := []Step{step(1, 0, 500, 3, 1), step(2, 1000, 0, 4, 1), step(3, 2000, 300, 5, 3),
		step(6, 5000, 0, 6, 0)}
	obs, err := Observe(steps, 0, AheadOne)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range obs.All {
		got = append(got, fmt.Sprintf("%d: %d steps, %d+%d", o.Number, o.Steps, o.Work.Decoding,
			o.Work.Prefill))
	}
	if want := "1: 1 steps, 3+0; 2: 1 steps, 3+500; 3: 3 steps, 5+300"; strings.Join(got,
		"; ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPredictIsTheCostModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunk := costmodel.Chunk{Tokens: rapid.IntRange(1, 2048).Draw(t, "chunk"),
			Context: rapid.IntRange(0, 9000).Draw(t, "before")}
		n, s := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(0, 300_000).Draw(t, "context")
		l := known
		l.N0 = float64(rapid.IntRange(0, 400).Draw(t, "n0"))
		o := Observation{Steps: 1, Work: Work{Decoding: n, Context: float64(s), Chunks: 1,
			Prefill: chunk.Tokens, Before: float64(chunk.Context)}}
		if got, want := o.Predict(l), l.Iteration(float64(n+chunk.Tokens), float64(s),
			l.Prefill(chunk)); math.Abs(got-want) > 2e-6 {
			t.Fatalf("%v ms, the cost model says %v", got, want)
		}
	})
}

// asCSV writes steps as a recording.
func asCSV(steps []Step) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write([]string{"experiment", "step", "start_us", "prefill_tokens", "decode_tokens",
		"prefill_reqs", "running", "context_tokens", "prefill_context", "gap_steps", "gap_us"})
	for _, s := range steps {
		gap, us := strconv.FormatInt(s.GapSteps, 10), strconv.FormatInt(s.Gap, 10)
		if s.GapSteps == 0 {
			gap, us = "", ""
		}
		text := []string{s.Run}
		for _, v := range []int64{s.Number, s.Start, s.PrefillTokens, s.DecodeTokens, s.PrefillReqs,
			s.Running, s.Context, s.PrefillContext} {
			text = append(text, strconv.FormatInt(v, 10))
		}
		w.Write(append(text, gap, us))
	}
	w.Flush()
	return b.Bytes()
}
