package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Prompts take their share of the time, in whatever pieces.
func TestPromptBudgetKeepsTheRate(t *testing.T) {
	const share, seconds = 0.1, 1000
	for _, prompt := range []float64{20, 150, 3000} {
		var b promptBudget
		spent := 0.0
		for range seconds {
			for b.pass(1000, share, prompt); b > 0; b -= promptBudget(prompt) {
				spent += prompt
			}
		}
		if want := share * seconds * 1000; spent < want-prompt || spent > want+2*prompt {
			t.Errorf("prompts of %v ms take %v ms, want %v", prompt, spent, want)
		}
	}
}

// Idle time is not saved for more than a prompt.
func TestPromptBudgetSavesOnePrompt(t *testing.T) {
	var b promptBudget
	for range 1000 {
		b.pass(1000, 0.1, 400)
	}
	if b != 400 {
		t.Errorf("%v ms are saved, want those of a prompt, 400", b)
	}
}

// A prompt that was far longer than the others keeps them waiting for minutes, not hours.
func TestPauseAfterALongPromptIsBounded(t *testing.T) {
	const share = 0.01
	b := promptBudget(-3.6e6)
	seconds := 0
	for ; b <= 0 && seconds < 10_000; seconds++ {
		b.pass(1000, share, 100)
	}
	if most := int(maxPromptPause/1000) + 2; seconds > most || seconds < most-3 {
		t.Errorf("the next prompt waits %d s, want %d", seconds, most)
	}
}

// What is in a prefix cache costs nothing.
func TestCachedPromptsAreCheap(t *testing.T) {
	cost := func(cached int) (budget, prompt float64, waiting int) {
		c, runners := newPool(t, nil, "r")
		c.Observe(noon, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 1,
			Prefilling: 1000 - cached}, PromptTokens: 1000, CachedTokens: cached})
		return -float64(runners[0].budget), c.promptCost(), runners[0].own.prefilling
	}
	budget, prompt, _ := cost(0)
	cheapBudget, cheapPrompt, waiting := cost(900)
	if !near(cheapBudget, budget/10) || !near(cheapPrompt, prompt/10) || waiting != 100 {
		t.Errorf("with a tenth to compute, a prompt takes %v of %v ms, the mean one %v of %v ms, "+
			"%d tokens wait", cheapBudget, budget, cheapPrompt, prompt, waiting)
	}
}

// Where most first tokens have time to spare, prompts take more of the runners' time than where
// they are near the objective.
func TestPromptShareFollowsFirstTokens(t *testing.T) {
	share := func(near float64) float64 {
		c, _ := newPool(t, nil, "r")
		c.tokenForecast.allowed = 1
		c.outcomes.at = noon
		c.sizes.start(1000, 0, 100, 100)
		c.first.alone.fade(noon)
		c.first.alone.add(0.2, 1000-near)
		c.first.alone.add(0.97, near)
		c.updatePromptShare()
		return c.promptShare
	}
	if idle, tight := share(0), share(300); idle != maxPromptShare || tight > 0.1 {
		t.Errorf("prompts may take %v of the time, %v if many first tokens are nearly late", idle,
			tight)
	}
}

// A user who arrives while a prompt is computed waits for what is left of it. Users are more likely
// to meet long prompts than short ones.
func TestUsersWaitForTheRestOfAPrompt(t *testing.T) {
	harm := func(alone float64, prompts ...float64) float64 {
		c, _ := newPool(t, nil, "r")
		c.first.alone.fade(noon)
		c.first.alone.add(alone+0.01, 1000)
		objective := milliseconds(c.firstObjective()) / c.promptTime() // tokens
		for range sizesWindow {
			for _, part := range prompts {
				c.sizes.start(int(part*objective), 0, 10, 10)
			}
		}
		return c.promptHarm()
	}
	for _, test := range []struct {
		alone   float64 // of the objective, as the prompts
		prompts []float64
		want    float64
	}{
		{0.3, []float64{0.5}, 0},
		{0.3, []float64{0.9}, 1.0 / 3},
		{0.7, []float64{0.9}, 2.0 / 3},
		{0.96, []float64{0.9}, 1},
		{0.2, []float64{0.1, 0.9}, 0}, // 0.82 is what is met on average
		{0.3, []float64{0.01, 0.01, 0.9}, 1.0 / 3},
	} {
		if got := harm(test.alone, test.prompts...); !near(got, test.want) {
			t.Errorf("users at %v of the objective, prompts of %v: %v are late, want %v",
				test.alone, test.prompts, got, test.want)
		}
	}
}

// Prompts that are computed at once delay a first token by all of them.
func TestPromptsAtOnceDelayFirstTokens(t *testing.T) {
	harm := func(lines int) float64 {
		c, runners := newPool(t, nil, "r")
		c.first.alone.fade(noon)
		c.first.alone.add(0.9, 1000)
		c.sizes.start(50, 0, 5, 5)
		runners[0].own.prefilling = 50 * lines
		for s := range 60 {
			c.Advance(noon.Add(time.Duration(s+1) * time.Second))
		}
		return c.promptHarm()
	}
	one, chunk, more := harm(1), harm(41), harm(1000)
	if one > 0.01 || chunk < 0.3 || more != chunk {
		t.Errorf("harm %v by one prompt, %v by a chunk of them, %v by many chunks", one, chunk,
			more)
	}
}

// Where nothing shows what is left of the objective, prompts take no more of the time than with the
// relative one.
func TestPromptsOfBlindPools(t *testing.T) {
	for _, blind := range []bool{false, true} {
		c, runners := newPool(t, nil, "r")
		if c.tokenForecast.allowed = 1; !blind {
			runners[0].iterations.seenAt = noon
		}
		c.sizes.start(1000, 0, 100, 100)
		if c.updatePromptShare(); (c.promptShare <= blindPromptShare) != blind {
			t.Errorf("blind: %v; prompts may take %v of the time", blind, c.promptShare)
		}
	}
}

// A runner whose prompts have used up their time starts no more.
func TestNoPromptBeyondTheBudget(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	c.began, runners[0].iterations.seenAt = noon.Add(-time.Hour), noon.Add(-time.Minute)
	c.sizes.start(1000, 0, 100, 100)
	c.promptShare = 0.1
	for _, test := range []struct {
		budget promptBudget
		starts bool
	}{{-50, false}, {50, true}} {
		runners[0].budget, runners[0].changed = test.budget, true
		if g := c.Allowance(noon).Runners[0]; (g.Prompt > 0) != test.starts || g.Lines == 0 {
			t.Errorf("%+v with %v ms left for prompts", g, test.budget)
		}
	}
}

// Where no part of the time is harmless, a prompt starts now and then, not any number.
func TestPromptsAreLimitedMostWhereTheyHarmMost(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	c.began, runners[0].iterations.seenAt = noon.Add(-time.Hour), noon
	c.sizes.start(1000, 0, 100, 100)
	c.tuning.FirstTokens, c.firstForecast.allowed = 0, 0
	if c.updatePromptShare(); !c.limitsPrompts() || c.promptShare > 1e-4 {
		t.Errorf("limited: %v, to %v of the time", c.limitsPrompts(), c.promptShare)
	}
}

// Without objectives, long prompts take less of the time: a user who arrives while one is computed
// waits for half of it, which may be several times what a first token takes.
func TestLongPromptsTakeLessTimeWithoutObjectives(t *testing.T) {
	share := func(prompt int) float64 {
		c, _ := newPool(t, func(cfg *flowcontrol.Config) {
			cfg.SLO.TTFT, cfg.SLO.TPOT = 0, 0
		}, "r")
		c.Observe(noon, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 1,
			Prefilling: prompt}, PromptTokens: prompt})
		c.updatePromptShare()
		if prompt > 1000 {
			// A prompt's half, met in this part of the time, comes to what lines that decode do.
			_, slowdown := c.poolSlowdown()
			slowdown += c.promptShare * c.longPrompt() / 2 / c.poolFirstAlone()
			if !near(slowdown, c.slo.Slowdown) {
				t.Errorf("first tokens take %.3f times as long, want %.3f", slowdown,
					c.slo.Slowdown)
			}
		}
		return c.promptShare
	}
	short, long := share(200), share(20_000)
	if !near(short, 0.15) {
		t.Errorf("short prompts take %.3f of the time, want 0.15", short)
	}
	if long > short/4 {
		t.Errorf("prompts a hundred times as long take %.3f of the time, short ones %.3f", long,
			short)
	}
}
