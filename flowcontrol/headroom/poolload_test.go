package headroom

import (
	"testing"
	"time"
)

// A runner that carries fewer lines than the others starts the next although its iterations are
// long: else a router that considers load sends it ever more interactive requests.
func TestRunnersThatFallBehindCatchUp(t *testing.T) {
	c, runners := newPool(t, nil, "a", "b", "c")
	c.watched, c.lines = true, 6
	prompt := func(r *runner) int {
		c.promptShare = 0.5
		for _, m := range c.roster.Members {
			if m.State == r {
				c.grant(noon, m, c.poolLoad(noon))
			}
		}
		return r.granted.Prompt
	}
	for i, r := range runners {
		r.iterations.seenAt = noon.Add(-time.Minute)
		r.own.lines, r.budget = 6, 100
		if i == 0 {
			r.own.lines, r.budget = 2, -50
		}
	}
	behind := runners[0]
	if prompt(behind) == 0 {
		t.Error("a runner with 2 lines beside 6 starts none")
	}
	if load := c.poolLoad(noon); load.fallsBehind(runners[1], c.tuning.Pace) {
		t.Error("a runner with 6 lines falls behind")
	}
	behind.own.prefilling = 100
	if c.poolLoad(noon).fallsBehind(behind, c.tuning.Pace) {
		t.Error("a runner whose prompt is still computed starts another at once")
	}
	behind.own.prefilling = 0
	for _, r := range runners {
		r.budget = -50
	}
	if prompt(behind) != 0 {
		t.Error("prompts start although the pool has no time for any")
	}
}

// Runners with few lines differ by one at most.
func TestFewLinesStayEqual(t *testing.T) {
	c, runners := newPool(t, nil, "a", "b")
	runners[0].own.lines, runners[1].own.lines = 1, 2
	for _, r := range runners {
		r.staleness.state = fresh
	}
	most := c.poolLoad(noon).bound(runners[1], c.LineMix(), c.tuning.Pace)
	if most < 2 || most >= 3 {
		t.Errorf("beside a runner with one line, another may carry %v", most)
	}
}

// A runner that has no line for a moment, between two prompts, keeps no others from starting. One
// that has none for longer does.
func TestMomentsWithoutLinesLimitNobody(t *testing.T) {
	c, runners := newPool(t, nil, "a", "b")
	now := noon
	most := func(first, seconds int) float64 {
		runners[0].own.lines = first
		for range seconds {
			now = now.Add(time.Second)
			c.Advance(now)
		}
		for _, r := range runners {
			r.staleness.state = fresh
		}
		return c.poolLoad(now).bound(runners[1], c.LineMix(), c.tuning.Pace)
	}
	runners[1].own.lines = 4
	most(4, 120)
	if got := most(0, 2); got < 4 {
		t.Errorf("beside a runner that had 4 lines two seconds ago, another may carry %v", got)
	}
	if got := most(0, 120); got >= 2 {
		t.Errorf("beside a runner without lines for two minutes, another may carry %v", got)
	}
}
