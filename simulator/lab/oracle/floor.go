package oracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// staticFloor searches for the best static setting, if it harvests more than what is known to be
// safe. Prior runs with a fixed cap cost nothing.
func (g *gatewaySearch) staticFloor() error {
	_, err := bestStaticAbove(int64(g.safeHarvest()), g.runners, g.setup.Engine().Profile.MaxSeqs,
		func(s StaticSetting) (simulator.Result, error) {
			t := g.static(s)
			r, known := g.priorStatic(s)
			if !known {
				var err error
				if r, err = g.runPolicy(t.policy(g.window), simulator.Outputs{}); err != nil {
					return r, err
				}
			}
			g.record(&t, r)
			return r, nil
		})
	return err
}

// static returns a static setting as a schedule.
func (g *gatewaySearch) static(s StaticSetting) schedule {
	t := g.constant(byStatic, float64(s.Lines), maxPrompt).on(s.Runners)
	t.from = "the best of static settings"
	return t
}

// priorStatic returns the result of a prior run with the setting.
func (g *gatewaySearch) priorStatic(s StaticSetting) (simulator.Result, bool) {
	for _, run := range g.prior {
		if prior, is := g.staticOf(run.Policy); is && prior == s &&
			run.Policy.Scale.Policy == g.setup.Policy.Scale.Policy {
			return run.Result, true
		}
	}
	return simulator.Result{}, false
}

// staticOf returns the static setting of a policy, if it is one.
func (g *gatewaySearch) staticOf(p simulator.Policy) (StaticSetting, bool) {
	own, is := p.Flow.Selected().(fixed.Config)
	used := min(cmp.Or(own.Runners, g.runners), g.runners)
	return StaticSetting{Lines: own.PerRunner, Runners: used}, is && own.PerPool == 0
}

// bestSafeStatic returns the best static setting that is safe.
func (g *gatewaySearch) bestSafeStatic() (setting StaticSetting, some bool) {
	best := 0.0
	for _, t := range g.tried {
		if t.family == byStatic && t.allowed() && t.useful > best {
			setting, some, best = t.setting(), true, t.useful
		}
	}
	return setting, some
}

// safeHarvest returns the largest harvest of a prior run or a try at an allowed loss.
func (g *gatewaySearch) safeHarvest() float64 {
	best := g.best.useful
	for _, run := range g.prior {
		if t := trialOf(run.Result); t.allowed() {
			best = max(best, t.useful)
		}
	}
	return best
}

// pauses searches for times in which one line on one runner is safe, if nothing else is. Each round
// pauses in the minutes in which requests were late, and longer before them, until the loss is
// allowed: what runs in such a minute has begun earlier.
func (g *gatewaySearch) pauses() error {
	if g.safeHarvest() > 0 {
		return nil
	}
	t := g.constant(byLines, 1, maxPrompt).on(1)
	t.from = "one line on one runner, with pauses"
	without := g.noBatch.LateByMinute()
	for before := 1; slices.Max(t.level) > 0; before++ {
		if err := g.try(&t); err != nil || t.allowed() {
			return err
		}
		t = t.clone()
		for minute, late := range t.late {
			if minute < len(without) && late <= without[minute] {
				continue
			}
			at := scenario.Edge + time.Duration(minute)*time.Minute
			from := int(max(0, at-time.Duration(before)*time.Minute) / g.window)
			to := min(g.windows, int((at+time.Minute)/g.window)+1)
			for w := from; w < to; w++ {
				t.level[w] = 0
			}
		}
	}
	return nil
}
