package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// fewSequences is a pool of engines that run two requests at once, so that a line on each of its
// runners takes half of the room.
func fewSequences(t *testing.T, change func(*scenario.Scenario)) simulator.Setup {
	t.Helper()
	s := smallPool(t, "gen", func(s *scenario.Scenario) {
		s.Horizon, s.Pool.Replicas, s.Interactive.Rate = 20*time.Minute, 4, 0.2
		s.Pool.MaxSeqs, s.Pool.ShedAbove = 2, 0
		s.Interactive.SLO.TTFT = 2500 * time.Millisecond
		s.Interactive.SLO.Attainment = 0.97
		if change != nil {
			change(s)
		}
	})
	s.Policy = defaultPolicy()
	return s
}

// Where a line on two runners is too much already, a line on one is found, whatever the prior run
// did.
func TestGatewayFindsTheOnlySafeSetting(t *testing.T) {
	s := fewSequences(t, nil)
	noBatch := runNoBatch(t, s)
	loss := func(lines, runners int) float64 {
		return policyRun(t, s, noBatch, func(p *simulator.Policy) {
			*p = StaticSetting{Lines: lines, Runners: runners}.Policy(*p)
		}).Loss
	}
	for _, unsafe := range []StaticSetting{{1, 4}, {2, 4}, {1, 2}, {2, 2}, {2, 1}} {
		if got := loss(unsafe.Lines, unsafe.Runners); got <= MaxLoss {
			t.Fatalf("%v lose %.2f points, so this pool tests nothing", unsafe, got)
		}
	}
	if got := loss(1, 1); got > MaxLoss {
		t.Fatalf("one line on one runner loses %.2f points, so this pool tests nothing", got)
	}
	prior := watched(t, s, noBatch, func(p *simulator.Policy) {
		p.Flow = p.Flow.Select(fixed.Name, fixed.Config{PerRunner: 2})
	})
	for _, budget := range []int{8, 20} {
		found, err := Gateway(s, noBatch, []PriorRun{prior}, Budget{Runs: budget})
		if err != nil {
			t.Fatal(err)
		}
		if found.Bound.Useful == 0 || found.Bound.Loss > MaxLoss || found.Policy == nil {
			t.Fatalf("with %d runs: %+v", budget, found.Bound)
		}
		if same, err := found.Reproduces(s, noBatch); err != nil || !same {
			t.Errorf("with %d runs: the best does not reproduce: %v", budget, err)
		}
		if budget > 8 {
			continue
		}
		if own, is := found.Policy.Flow.Selected().(fixed.Config); !is || own.PerRunner != 1 ||
			own.Runners != 1 || !strings.Contains(found.Bound.Note, "1 line on one runner") {
			t.Errorf("found %+v, %s", found.Policy.Flow.Selected(), found.Bound.Note)
		}
	}
}

// Where one line is too much at some times of the run, there are others.
func TestGatewayPausesWhereNothingIsSafeAllTheTime(t *testing.T) {
	s := fewSequences(t, func(s *scenario.Scenario) {
		s.Pool.Replicas, s.Pool.MaxSeqs, s.Interactive.Rate = 1, 1, 0.005
		s.Interactive.SLO.TTFT = 60 * time.Second
		s.Interactive.Surges = []scenario.Surge{{At: 8 * time.Minute, For: 5 * time.Minute,
			Factor: 7}}
	})
	noBatch := runNoBatch(t, s)
	found, err := Gateway(s, noBatch, nil, Budget{Runs: 30})
	if err != nil || found.Bound.Useful == 0 || found.Bound.Loss > MaxLoss {
		t.Errorf("%+v, %v", found.Bound, err)
	}
}

// G is never below the best static setting, for pools of several kinds.
func TestGatewayIsAtLeastTheBestStaticSetting(t *testing.T) {
	for name, s := range map[string]simulator.Setup{
		"few sequences": fewSequences(t, func(s *scenario.Scenario) {
			s.Horizon, s.Interactive.Rate = 12*time.Minute, 0.1
		}),
		"short prompts, mostly idle": smallPool(t, "score", func(s *scenario.Scenario) {
			s.Horizon, s.Pool.Replicas, s.Interactive.Rate = 3*time.Minute, 5, 0.6
			s.Pool.MaxBatchedTokens, s.Pool.MaxSeqs = 512, 32
			s.Interactive.SLO.TPOT, s.Interactive.SLOWithheld = 70*time.Millisecond, true
		}),
		"bursts": smallPool(t, "mix", func(s *scenario.Scenario) {
			s.Horizon, s.Pool.Replicas, s.Interactive.Rate = 3*time.Minute, 3, 0.9
			s.Pool.MaxSeqs = 64
			s.Interactive.Dispersion = scenario.Dispersion{VarMean: 4, Window: 20 * time.Second}
		}),
	} {
		s.Policy = defaultPolicy()
		noBatch := runNoBatch(t, s)
		best, err := BestStatic(s.Scenario.Pool.Replicas, s.Engine().Profile.MaxSeqs,
			func(setting StaticSetting) (simulator.Result, error) {
				return policyRun(t, s, noBatch, func(p *simulator.Policy) {
					*p = setting.Policy(*p)
				}), nil
			})
		if err != nil || best.Setting.Lines == 0 {
			t.Fatalf("%s: no static setting is safe, %v", name, err)
		}
		prior := watched(t, s, noBatch, func(p *simulator.Policy) { p.Flow.Policy = "headroom" })
		for _, seen := range [][]PriorRun{nil, {prior}} {
			found, err := Gateway(s, noBatch, seen, Budget{Runs: 14})
			if err != nil {
				t.Fatal(err)
			}
			if b := found.Bound; b.Loss > MaxLoss || b.Useful < float64(best.Result.Batch.Useful) {
				t.Errorf("%s, %d prior runs: G harvests %.0f at %.2f points (%s), and %v %d", name,
					len(seen), b.Useful, b.Loss, b.Note, best.Setting, best.Result.Batch.Useful)
			}
			if same, err := found.Reproduces(s, noBatch); err != nil || !same {
				t.Errorf("%s, %d prior runs: the best does not reproduce: %v", name, len(seen), err)
			}
		}
	}
}
