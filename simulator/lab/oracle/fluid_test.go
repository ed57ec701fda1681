package oracle

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

func a100(t *testing.T) engine.Config {
	t.Helper()
	p, ok := engine.ProfileNamed("llama-70b-a100")
	if !ok {
		t.Fatal("no such profile")
	}
	return engine.DefaultConfig(p)
}

func TestFluidFillsAnIteration(t *testing.T) {
	cfg := a100(t)
	model := cfg.Profile.CostModel
	mix := meanLine{input: 700, output: 200, computed: 700, context: 800}
	f := fluid{cfg: cfg, mix: mix, tpot: 100}
	l := load{requests: 1, computed: 1000, output: 200, held: 200 * 1100}
	lines := f.running(l, 100)
	tokens := 20 + lines + 100 + lines*3.5
	took := model.C0 + model.C1*tokens + model.C2*(tokens-model.N0) + model.KV*(22_000+800*lines) +
		(model.P1+model.P2*350)*3.5*lines + model.P1*100
	if math.Abs(took-100) > 0.01 {
		t.Errorf("%.2f lines take %.3f ms, want 100", lines, took)
	}
	if rate, want := f.maxRate(l, 100), lines/200/0.1; math.Abs(rate/want-1) > 1e-6 {
		t.Errorf("%.3f lines a second, want %.3f: the longest iteration wastes least on weights",
			rate, want)
	}
}

func TestFluidIsBoundedBySlotsMemoryAndBudget(t *testing.T) {
	long := meanLine{input: 50, output: 2000, computed: 50, context: 1000}
	short := meanLine{input: 700, output: 5, computed: 700, context: 700}
	for name, test := range map[string]struct {
		mix   meanLine
		limit func(*engine.Profile)
		most  func(lines float64) bool
	}{
		"slots": {long, func(p *engine.Profile) { p.MaxSeqs = 30 }, func(lines float64) bool {
			return math.Abs(lines-20) < 1e-6
		}},
		"memory": {long, func(p *engine.Profile) { p.KVTokens = 41_000 }, func(lines float64) bool {
			return math.Abs(lines-30) < 1e-6
		}},
		"budget": {short, func(p *engine.Profile) {
			p.MaxBatchedTokens = 152
		}, func(lines float64) bool { return math.Abs(lines*141-142) < 1e-3 }},
	} {
		cfg := a100(t)
		test.limit(&cfg.Profile)
		f := fluid{cfg: cfg, mix: test.mix, tpot: 100}
		if lines := f.running(load{output: 100, held: 110_000}, 100); !test.most(lines) {
			t.Errorf("%s: %v lines", name, lines)
		}
	}
}

// Nobody from inside the engines gets beyond what flows, but for the margin.
func TestFluidBoundsTheEngine(t *testing.T) {
	for _, kind := range []string{"bal", "gen", "score", "score-shared", "mix"} {
		s := smallPool(t, kind, nil)
		found, err := Engine(s, runNoBatch(t, s), Budget{Runs: 8})
		if err != nil {
			t.Fatal(err)
		}
		inside := found.Bound
		bound, err := Fluid(s)
		if err != nil {
			t.Fatal(err)
		}
		if bound.Name != "F" || bound.Margin != 0.05 || bound.BeatenBy(inside.Useful, inside.Loss) {
			t.Errorf("%s: F is %+v, E %+v", kind, bound, inside)
		}
		if bound.Useful > 3*inside.Useful {
			t.Errorf("%s: F is %.0f, three times E, %.0f: no bound worth the name", kind,
				bound.Useful, inside.Useful)
		}
	}
}

func TestFluidIsBoundedByTheLines(t *testing.T) {
	s := smallPool(t, "score", func(s *scenario.Scenario) {
		s.Jobs = []scenario.Job{{Name: "few", Kind: "score", Lines: 20},
			{Name: "after", Kind: "bal", At: time.Hour, Lines: 1000}}
	})
	bound, err := Fluid(s)
	if err != nil || math.Abs(bound.Useful-20*712) > 1e-6 {
		t.Errorf("%+v, %v, want %d tokens", bound, err, 20*712)
	}
	s.Scenario.Jobs = nil
	if bound, err := Fluid(s); err != nil || bound.Useful != 0 {
		t.Errorf("without jobs: %+v, %v", bound, err)
	}
}
