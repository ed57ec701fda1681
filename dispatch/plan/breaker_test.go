package plan

import (
	"math"
	"testing"
	"time"
)

// Each step is at a time in milliseconds. The end of a trial has its number; 0 is a line that was
// in flight before.
func TestBreaker(t *testing.T) {
	type step struct {
		at    int
		do    string // fail, succeed, pass, start, or nothing
		trial uint32
		want  int // lines that may start then
	}
	const any = math.MaxInt
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"opens after three failures in a row", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0}, {499, "", 0, 0},
			{500, "", 0, 1},
		}},
		{"an answer between failures resets the count", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "succeed", 0, any}, {0, "fail", 0, any},
			{0, "fail", 0, any}, {0, "fail", 0, 0},
		}},
		{"admits one trial", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0}, {500, "start", 0, 0},
			{9000, "", 0, 0},
		}},
		{"a successful trial closes it", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0}, {500, "start", 0, 0},
			{600, "succeed", 1, any},
			// and the pause is short again
			{600, "fail", 0, any}, {600, "fail", 0, any}, {600, "fail", 0, 0}, {1100, "", 0, 1},
		}},
		{"each failed trial doubles the pause, up to 2s", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0},
			{500, "start", 0, 0}, {500, "fail", 1, 0}, {1499, "", 0, 0}, {1500, "", 0, 1},
			{1500, "start", 0, 0}, {1500, "fail", 2, 0}, {3499, "", 0, 0}, {3500, "", 0, 1},
			{3500, "start", 0, 0}, {3500, "fail", 3, 0}, {5499, "", 0, 0}, {5500, "", 0, 1},
		}},
		{"lines in flight when it opened do not prolong the pause", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0}, {400, "fail", 0, 0},
			{500, "", 0, 1},
		}},
		{"nor do they count as the trial", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0}, {500, "start", 0, 0},
			{600, "fail", 0, 0}, {600, "pass", 0, 0}, {9000, "", 0, 0}, {9000, "fail", 1, 0},
			{10000, "", 0, 1},
		}},
		{"an answer to one of them closes it, and the trial is an ordinary line then", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0}, {500, "start", 0, 0},
			{600, "succeed", 0, any},
			{700, "fail", 1, any}, {700, "fail", 0, any}, {700, "fail", 0, 0},
			{1200, "start", 0, 0}, {1300, "fail", 1, 0}, {1300, "pass", 1, 0}, {1400, "pass", 2, 1},
		}},
		{"a trial that shows nothing is followed by another", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "fail", 0, 0}, {500, "start", 0, 0},
			{600, "pass", 1, 1},
		}},
		{"the end of a line that shows nothing changes nothing", []step{
			{0, "fail", 0, any}, {0, "fail", 0, any}, {0, "pass", 0, any}, {0, "fail", 0, 0},
			{500, "", 0, 1},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := BreakerConfig{Failures: 3, Base: 500 * time.Millisecond, Max: 2 * time.Second}
			var b breaker
			for i, s := range test.steps {
				now := noon.Add(time.Duration(s.at) * time.Millisecond)
				switch s.do {
				case "fail":
					until, opened := b.fail(now, cfg, s.trial)
					if opened && (!until.Equal(b.until) || b.admits(until) != 1) {
						t.Errorf("step %d: fail returns %v, but admits returns %d then", i,
							until, b.admits(until))
					}
				case "succeed":
					b.succeed(s.trial)
				case "pass":
					b.pass(s.trial)
				case "start":
					b.start()
				}
				if got := b.admits(now); got != s.want {
					t.Errorf("step %d (%s at %dms): admits %d, want %d", i, s.do, s.at, got,
						s.want)
				}
			}
		})
	}
}
