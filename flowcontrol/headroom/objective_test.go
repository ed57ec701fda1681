package headroom_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// warnings returns the codes of what the controller warns of.
func (s *engine) warnings() (codes []string) {
	for _, w := range s.Controller.(flowcontrol.Warner).Warnings(s.now) {
		codes = append(codes, w.Code)
	}
	return codes
}

// alone is what an iteration of the engine takes without batch lines, in milliseconds.
func alone(t *testing.T) float64 {
	s := newEngine(t, config())
	s.step()
	return s.mean
}

// Without absolute objectives, iterations take at most slo.slowdown times as long as without batch
// lines.
func TestRelativeObjective(t *testing.T) {
	for name, size := range map[string][2]int{"prompts": {1000, 30}, "long lines": {20, 1000},
		"both": {500, 200}} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.SLO.TTFT, cfg.SLO.TPOT = 0, 0
			s := newEngine(t, cfg)
			s.prompt, s.output = size[0], size[1]
			s.run(20 * time.Minute)
			got, _ := s.average(t, 5*time.Minute)
			if most := cfg.SLO.Slowdown * alone(t); got > 1.03*most || got < 1.03*alone(t) {
				t.Errorf("iterations take %.1f ms, %.1f ms alone, want up to %.1f ms", got,
					alone(t), most)
			}
			if got := s.warnings(); len(got) > 0 {
				t.Errorf("warned of %q", got)
			}
		})
	}
}

// That holds for lines that cost several times what the assumed cost model says: what they cost
// must not count as what iterations take without them.
func TestRelativeObjectiveWithDearLines(t *testing.T) {
	cfg := config()
	cfg.SLO.TTFT, cfg.SLO.TPOT, cfg.Engine = 0, 0, flowcontrol.Engine{}
	s := newEngine(t, cfg)
	s.prompt, s.output, s.dearer = 20, 1000, 1
	s.run(40 * time.Minute)
	got, _ := s.average(t, 5*time.Minute)
	if most := cfg.SLO.Slowdown * alone(t); got > 1.03*most || got < 1.03*alone(t) {
		t.Errorf("iterations take %.1f ms, %.1f ms alone, want up to %.1f ms", got, alone(t), most)
	}
}

// First tokens have an objective in milliseconds if one is configured, and else only a slowdown.
func TestTheObjectiveOfFirstTokensIsExplained(t *testing.T) {
	for ttft, want := range map[time.Duration]float64{0: 0, 3 * time.Second: 3000} {
		cfg := config()
		cfg.SLO.TTFT, cfg.SLO.TPOT = ttft, 0
		s := newEngine(t, cfg)
		s.step()
		if got := s.term(t, flowcontrol.TermFirstObjective); got != want {
			t.Errorf("with slo.ttft %v it is %v ms, want %v", ttft, got, want)
		}
	}
}

// An objective that does not fit the engine is warned of. If it is far too long, iterations take
// at most four times as long as without batch lines.
func TestImplausibleObjective(t *testing.T) {
	for _, test := range []struct {
		tpot  time.Duration
		warns bool
	}{{2 * time.Second, true}, {100 * time.Millisecond, false}, {20 * time.Millisecond, true}} {
		t.Run(test.tpot.String(), func(t *testing.T) {
			cfg := config()
			cfg.SLO.TPOT = test.tpot
			s := newEngine(t, cfg)
			if s.run(time.Minute); len(s.warnings()) > 0 {
				t.Error("warned before the pool is known")
			}
			s.run(30 * time.Minute)
			if got := s.warnings(); (len(got) > 0) != test.warns ||
				test.warns && got[0] != flowcontrol.WarnObjective {
				t.Errorf("warned of %q", got)
			}
			most := min(4*alone(t), max(float64(test.tpot.Milliseconds()), alone(t)))
			// While prompts are computed all the time, what iterations take alone is an estimate.
			estimated := s.term(t, "alone")
			if got := s.term(t, "target iteration"); got > 1.05*most*estimated/alone(t) ||
				estimated > 1.5*alone(t) {
				t.Errorf("the target is %.1f ms, want at most %.1f ms; alone %.1f ms", got, most,
					estimated)
			}
			if got, _ := s.average(t, 2*time.Minute); got > 1.05*most {
				t.Errorf("iterations take %.1f ms, want at most %.1f ms", got, most)
			}
		})
	}
}
