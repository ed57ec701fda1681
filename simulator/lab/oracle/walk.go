package oracle

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/internal/portable"
)

// walker is a random walk over schedules with steps of adapting size, which keeps what is better.
type walker struct {
	at   schedule
	size float64
}

// walk continues two walkers in turn: one from the best schedule, and one from the best settings of
// the policy headroom. A walker with a much lower value than the other makes only every fourth
// step.
func (g *gatewaySearch) walk() error {
	var walkers []*walker
	for _, of := range [][]family{{byTime, byLines}, {byLate}} {
		if at, some := g.bestOf(of...); some {
			walkers = append(walkers, &walker{at: at, size: 0.08})
		}
	}
	if len(walkers) == 0 {
		return nil
	}
	const behind = 0.97
	for turn := 0; ; turn++ {
		w := walkers[turn%len(walkers)]
		if other := walkers[(turn+1)%len(walkers)]; turn%4 != 0 &&
			w.at.value() < behind*other.at.value() {
			w = other
		}
		t := g.step(w.at, w.size)
		if err := g.try(&t); err != nil {
			return err
		}
		if t.value() >= w.at.value() {
			w.at = t.clone()
			w.size = min(w.size*1.4, 0.2)
		} else {
			w.size = max(w.size*0.93, 0.004)
		}
	}
}

// bestOf returns the best starting point among schedules of some families.
func (g *gatewaySearch) bestOf(families ...family) (best schedule, some bool) {
	for _, t := range g.tried {
		if slices.Contains(families, t.family) && t.useful > 0 && t.value() > best.value() {
			best, some = t, true
		}
	}
	return best, some
}

// step returns a changed schedule; size is the size of the change.
func (g *gatewaySearch) step(at schedule, size float64) schedule {
	t := at.clone()
	up := 1 + size*(0.5+g.rng.Float64())
	sign := float64(2*g.rng.IntN(2) - 1)
	kind := g.rng.IntN(10)
	if t.family == byLate {
		kind = [...]int{2, 5, 5, 5}[g.rng.IntN(4)]
	}
	switch kind {
	case 0: // a little everywhere
		for w := range t.level {
			t.level[w] *= 1 + size*(g.rng.Float64()-0.5)
		}
	case 1, 6, 7: // lower where more were late than at other times, higher where fewer were
		mean := 0.0
		for w := range t.level {
			mean += t.lateIn(w, g.window) / float64(len(t.level))
		}
		for w := range t.level {
			more := t.lateIn(w, g.window)/max(mean, 0.01) - 1
			t.level[w] *= 1 - min(max(more, -1), 2)*size*(0.5+
				g.rng.Float64())
		}
	case 2: // all of them
		by := sign * size / 4
		if t.family == byLate {
			by = sign * min(0.5, 4*size)
		}
		for w := range t.level {
			t.level[w] *= 1 + by
		}
	case 3: // the number of prompts that may wait, for a while
		from, to := g.randomSpan()
		for w := from; w < to; w++ {
			t.prompt[w] *= 1 + sign*min(0.7, 8*size)
		}
	case 4: // one while higher, another lower
		for _, factor := range []float64{up, 1 / up} {
			from, to := g.randomSpan()
			for w := from; w < to; w++ {
				t.level[w] *= factor
			}
		}
	case 8: // a pause, or the end of one
		from, to := g.randomSpan()
		level := 0.0
		if slices.Max(t.level[from:to]) == 0 {
			level = t.meanLevel()
		}
		for w := from; w < to; w++ {
			t.level[w] = level
		}
	case 9: // fewer runners for a while, or more
		from, to := g.randomSpan()
		for w := from; w < to; w++ {
			t.runners[w] = g.otherRunners(t.runners[w], sign > 0)
		}
	default: // the constants of the control loops for lines and prompts
		g.perturb(&t.base.Flow, t.family == byLate, 1+sign*min(0.4, 8*size))
	}
	if t.sameLines(at) { // the change was less than a line
		from, to := g.randomSpan()
		for w := from; w < to; w++ {
			t.level[w] = max(0, math.Round(t.level[w])+sign)
		}
	}
	for w := range t.level {
		t.clamp(w)
	}
	return t
}

// otherRunners returns twice as many runners, or half as many; 0 is all.
func (g *gatewaySearch) otherRunners(used int, more bool) int {
	used = cmp.Or(used, g.runners)
	if !more {
		return max(1, used/2)
	}
	if used *= 2; used >= g.runners {
		return 0
	}
	return used
}

// perturb multiplies one of the constants of the policy headroom by a factor that leaves a valid
// configuration. The constants of its loops over late requests have no effect under a schedule.
func (g *gatewaySearch) perturb(flow *flowcontrol.Config, loops bool, factor float64) {
	for range 10 {
		own := flowcontrol.OwnConfig[headroom.Config](*flow, headroom.Name)
		t := &own.Tuning
		times := []*time.Duration{&t.Pace.Window, &t.Pace.MaxCredit, &t.Pace.MaxDebt,
			&t.Brake.Hold}
		shares := []*float64{&t.Pace.Gain, &t.Pace.MaxGrowth, &t.Pace.MaxLineRatio,
			&t.Reserve.KVUsed, &t.Reserve.KVDeviations, &t.Brake.PoolAbove}
		if loops {
			target, prompt := &t.TargetShare, &t.PromptTokens
			shares = append(shares, &target.Gain, &target.MaxFall, &target.Max,
				&target.BudgetShare, &prompt.Gain, &t.FirstTokens, &t.TokenTimes)
		}
		if i := g.rng.IntN(len(times) + len(shares)); i < len(times) {
			*times[i] = max(time.Millisecond, time.Duration(float64(*times[i])*factor).Round(
				time.Millisecond))
		} else {
			*shares[i-len(times)] *= factor
		}
		if turned := flow.With(headroom.Name, own); turned.Validate() == nil {
			*flow = turned
			return
		}
	}
}

// randomSpan returns some consecutive windows.
func (g *gatewaySearch) randomSpan() (from, to int) {
	length := 1 + int(portable.Exponential(g.rng)*float64(g.windows)/8)
	from = g.rng.IntN(g.windows)
	return from, min(g.windows, from+length)
}

// value orders the steps of a walk: the harvest if the loss is allowed, and less the further the
// loss exceeds that, so that the walk finds its way back.
func (t trial) value() float64 {
	if over := t.loss - MaxLoss; over > 0 {
		return t.useful * max(0, 0.98-over)
	}
	return t.useful
}
