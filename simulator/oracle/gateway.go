package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/portable"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Gateway is oracle G: the best that is known to be reached from outside the engines, with our own actuators, by someone who may tell
// the day again and again. It searches for the timetable (flowcontrol's policy schedule) that harvests most at an allowed loss: how
// long iterations may take, or how many lines a runner carries, and how many prompt tokens may wait, from each window of time to the
// next. No run counts for less than it was: the floor is the best of those that were seen before.
//
// The configuration is that of the best timetable, to be told again, even where a run seen before was better.
func Gateway(s simulator.Setup, quiet simulator.Quiet, seen []simulator.Result, budget Budget) (Bound, flowcontrol.Config, error) {
	g := newGatewaySearch(s, quiet, budget)
	if err := g.run(); err != nil {
		return Bound{}, flowcontrol.Config{}, fmt.Errorf("oracle G of %s: %w", s.Scenario.Name, err)
	}
	b := Bound{
		Name: "G", Useful: g.best.useful, Work: g.best.work, Loss: g.best.loss,
		Note: fmt.Sprintf("%s set over %d windows of %v, best of %d runs", g.best.family, len(g.best.level), g.window, g.runs),
	}
	for _, r := range seen {
		if r.Loss <= MostLoss && float64(r.Batch.Useful) > b.Useful {
			b.Useful, b.Work, b.Loss = float64(r.Batch.Useful), r.Batch.Work, r.Loss
			b.Note = fmt.Sprintf("the run of policy %s, which none of %d timetables beat", r.Flow, g.runs)
		}
	}
	return b, g.config(g.best), nil
}

// family is what a timetable sets for each window.
type family string

const (
	// byTime sets how long iterations may take; the lines follow by feedback.
	byTime family = "iteration time"
	// byLines sets the number of lines, whatever comes of it.
	byLines family = "lines"
	// byLate is no timetable but the policy probe, with the share of late requests that it aims at set for the whole day.
	byLate family = "late share"
)

// timetable is a candidate and what it brought.
type timetable struct {
	family family
	level  []float64 // by window: share of the TPOT, or lines; of byLate the share, once
	prompt []float64 // by window: tokens
	pace   flowcontrol.PaceConfig
	trial
	late []int // interactive requests that missed a promise, by minute of their arrival
}

func (g *gatewaySearch) same(f family, level, prompt float64) timetable {
	times := g.windows
	if f == byLate {
		times = 1
	}
	return timetable{
		family: f, pace: g.setup.Policy.Flow.Probe.Pace,
		level: slices.Repeat([]float64{level}, times), prompt: slices.Repeat([]float64{prompt}, times),
	}
}

func (t timetable) clone() timetable {
	t.level, t.prompt = slices.Clone(t.level), slices.Clone(t.prompt)
	return t
}

// Bounds of what a timetable may set.
const (
	leastShare, mostShare   = 0.2, 1.5
	leastPrompt, mostPrompt = 1, 1 << 16
	mostLines               = 512
	leastLate, mostLate     = 0.0005, 0.1
)

func (t timetable) rows(window time.Duration) []flowcontrol.ScheduleRow {
	rows := make([]flowcontrol.ScheduleRow, len(t.level))
	for i, level := range t.level {
		rows[i] = flowcontrol.ScheduleRow{At: time.Duration(i) * window, Prompt: int(math.Round(t.prompt[i]))}
		if t.family == byTime {
			rows[i].Theta, rows[i].Lines = math.Round(level*1e4)/1e4, mostLines
		} else {
			rows[i].Lines = int(math.Round(level))
		}
	}
	return rows
}

// keep brings a window's settings back into their bounds.
func (t timetable) keep(i int) {
	least, most := leastShare, mostShare
	switch t.family {
	case byLines:
		least, most = 0, mostLines
	case byLate:
		least, most = leastLate, mostLate
	}
	t.level[i] = min(max(t.level[i], least), most)
	t.prompt[i] = min(max(t.prompt[i], leastPrompt), mostPrompt)
}

// gatewaySearch looks for a timetable.
type gatewaySearch struct {
	setup   simulator.Setup
	quiet   simulator.Quiet
	budget  Budget
	random  *rand.Rand
	window  time.Duration
	windows int
	runs    int
	best    timetable // of those allowed; its useful is 0 as long as there is none
	tables  []timetable
}

// mostWindows is how many windows a timetable has at most: with more of them, each is told too seldom to learn anything of it.
const mostWindows = 60

func newGatewaySearch(s simulator.Setup, quiet simulator.Quiet, budget Budget) *gatewaySearch {
	window := max(20*time.Second, (s.Scenario.Horizon / mostWindows).Round(time.Second))
	return &gatewaySearch{
		setup: s, quiet: quiet, budget: budget, window: window, windows: int((s.Scenario.Horizon + window - 1) / window),
		random: rand.New(rand.NewPCG(s.Seed, 0x6a7e)),
	}
}

func (g *gatewaySearch) left() int { return g.budget.Runs - g.runs }

// config is the policy that follows a timetable.
func (g *gatewaySearch) config(t timetable) flowcontrol.Config {
	cfg := g.setup.Policy.Flow
	cfg.Probe.Pace = t.pace
	if t.family == byLate {
		cfg.Policy, cfg.SLO.Late = "probe", t.level[0]
		return cfg
	}
	cfg.Policy = "schedule"
	cfg.Schedule = flowcontrol.ScheduleConfig{Begin: simulator.Epoch(), Rows: t.rows(g.window)}
	return cfg
}

// tell runs a timetable, unless the budget is spent or nothing is left to be had.
func (g *gatewaySearch) tell(t *timetable) error {
	if g.left() <= 0 || g.best.dry {
		return errSpent
	}
	s := g.setup
	s.Watch = simulator.Watch{}
	s.Policy.Flow = g.config(*t)
	r, err := simulator.RunBeside(g.quiet, s, func(float64) error { return nil })
	if err != nil {
		return err
	}
	g.runs++
	t.trial = trial{useful: float64(r.Batch.Useful), work: r.Batch.Work, loss: r.Loss}
	t.late = r.LateByMinute()
	g.tables = append(g.tables, *t)
	if t.allowed() && t.useful > g.best.useful {
		g.best = t.clone()
		g.best.dry = !slices.ContainsFunc(r.Jobs, func(j simulator.Job) bool { return j.Fate != simulator.Finished })
	}
	return g.budget.spent(g.runs)
}

// errSpent ends a search, since there is no more to tell or to gain; it is no fault.
var errSpent = fmt.Errorf("the budget is spent")

func (g *gatewaySearch) run() error {
	for _, step := range []func() error{g.uniform, g.byMinute, g.walk} {
		if err := step(); err == errSpent {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// uniform looks for the level at which the loss is just allowed, the same all day, in both families and with several bounds on prompts.
func (g *gatewaySearch) uniform() error {
	for _, try := range []struct {
		family    family
		low, high float64
		prompt    float64
		times     int
	}{
		{byTime, 0.4, 1.2, 1024, 5},
		{byLate, leastLate, mostLate, mostPrompt, 6},
		{byLines, 1, 256, mostPrompt, 6},
		{byTime, 0.4, 1.2, 4096, 5},
		{byLines, 1, 256, 512, 6},
	} {
		times := try.times
		for low, high := try.low, try.high; times > 0; times-- {
			level := (low + high) / 2
			switch try.family {
			case byLines:
				level = math.Round(math.Sqrt(low * high))
			case byLate:
				level = math.Sqrt(low * high)
			}
			t := g.same(try.family, level, try.prompt)
			if err := g.tell(&t); err != nil {
				return err
			}
			if t.allowed() {
				low = level
			} else {
				high = level
			}
		}
	}
	return nil
}

// byMinute sets each window as high as what was late at its time in the runs so far lets hope for, then shifts the whole to where the
// loss is just allowed.
func (g *gatewaySearch) byMinute() error {
	told := g.like()
	if len(told) < 3 || g.best.family == byLate {
		return nil
	}
	allowed := float64(g.quiet.Interactive.Requests) * (MostLoss/100 + 1 - g.quiet.Interactive.Attainment)
	t := g.best.clone()
	choose := func(price float64) (late float64) {
		for w := range t.level {
			value := math.Inf(-1)
			for _, run := range told {
				n := run.lateIn(w, g.window)
				if v := run.level[w]/told[len(told)-1].level[w] - float64(price*n); v > value {
					value, t.level[w] = v, run.level[w]
				}
			}
			for _, run := range told {
				if run.level[w] == t.level[w] {
					late += run.lateIn(w, g.window)
					break
				}
			}
		}
		return late
	}
	for low, high, i := 0.0, 1.0, 0; i < 30; i++ {
		price := (low + high) / 2
		if choose(price) > allowed {
			low = price
		} else {
			high = price
		}
	}
	const believed = 0.3 // what was late at a time was chance too
	for w := range t.level {
		t.level[w] = float64((1-believed)*g.best.level[w]) + float64(believed*t.level[w])
		t.prompt[w] = g.best.prompt[w]
	}
	for low, high, i := 0.9, 1.2, 0; i < 4; i++ {
		factor := (low + high) / 2
		shifted := t.clone()
		for w := range shifted.level {
			shifted.level[w] *= factor
			shifted.keep(w)
		}
		if err := g.tell(&shifted); err != nil {
			return err
		}
		if shifted.allowed() {
			low = factor
		} else {
			high = factor
		}
	}
	return nil
}

// like are the uniform timetables of the best one's family and prompts, by level.
func (g *gatewaySearch) like() []timetable {
	var alike []timetable
	for _, t := range g.tables {
		if t.family == g.best.family && len(g.best.prompt) > 0 && t.prompt[0] == g.best.prompt[0] && slices.Min(t.level) == slices.Max(t.level) {
			alike = append(alike, t)
		}
	}
	slices.SortFunc(alike, func(a, b timetable) int { return int(math.Copysign(1, a.level[0]-b.level[0])) })
	return alike
}

// lateIn is what was late at the time of a window, a minute before and after it counted in, per minute.
func (t timetable) lateIn(w int, window time.Duration) float64 {
	from := max(0, int((time.Duration(w)*window-scenario.Edge)/time.Minute)-1)
	to := min(len(t.late), int((time.Duration(w+1)*window-scenario.Edge+time.Minute-1)/time.Minute)+1)
	sum := 0
	for m := from; m < to; m++ {
		sum += t.late[m]
	}
	return float64(sum) / float64(max(1, to-from))
}

// walk goes from the best timetable in random steps of adapting size, and keeps what is better.
func (g *gatewaySearch) walk() error {
	if g.best.useful == 0 {
		return nil
	}
	at := g.best.clone()
	for size := 0.04; ; size = min(max(size, 0.004), 0.2) {
		t := at.clone()
		g.step(t, &t.pace, size)
		for w := range t.level {
			t.keep(w)
		}
		if err := g.tell(&t); err != nil {
			return err
		}
		if t.value() >= at.value() {
			at = t.clone()
			size *= 1.4
		} else {
			size *= 0.96
		}
	}
}

// step changes a timetable by about a size.
func (g *gatewaySearch) step(t timetable, pace *flowcontrol.PaceConfig, size float64) {
	up := 1 + float64(size*(0.5+float64(g.random.Float64())))
	sign := float64(2*g.random.IntN(2) - 1)
	kind := g.random.IntN(6)
	if t.family == byLate {
		kind = 2 + 3*g.random.IntN(2)
	}
	switch kind {
	case 0: // a little everywhere
		for w := range t.level {
			t.level[w] *= 1 + float64(size*(float64(g.random.Float64())-0.5))
		}
	case 1: // lower where many were late, higher where none were
		for w := range t.level {
			if late := t.lateIn(w, g.window); late > 1+float64(2*portable.Exponential(g.random)) {
				t.level[w] /= up
			} else if late == 0 {
				t.level[w] *= up
			}
		}
	case 2: // all of them
		for w := range t.level {
			t.level[w] *= 1 + float64(sign*size/4)
		}
	case 3: // how many prompts may wait, for a while
		from, to := g.stretch()
		for w := from; w < to; w++ {
			t.prompt[w] *= 1 + float64(sign*min(0.7, 8*size))
		}
	case 4: // one while higher, another lower
		for _, factor := range []float64{up, 1 / up} {
			from, to := g.stretch()
			for w := from; w < to; w++ {
				t.level[w] *= factor
			}
		}
	default: // how lines and prompts are led to where they shall be
		factor := 1 + float64(sign*min(0.4, 8*size))
		switch g.random.IntN(4) {
		case 0:
			pace.Gain = min(pace.Gain*factor, 1)
		case 1:
			pace.Memory = scaled(pace.Memory, factor)
		case 2:
			pace.Save = scaled(pace.Save, factor)
		default:
			pace.Debt = scaled(pace.Debt, factor)
		}
	}
}

func scaled(d time.Duration, factor float64) time.Duration {
	return max(time.Millisecond, time.Duration(float64(d)*factor).Round(time.Millisecond))
}

// stretch is some windows on end.
func (g *gatewaySearch) stretch() (from, to int) {
	length := 1 + int(portable.Exponential(g.random)*float64(g.windows)/8)
	from = g.random.IntN(g.windows)
	return from, min(g.windows, from+length)
}

// value orders the steps of a walk: what is harvested within the loss that is allowed, and less the further it is exceeded, so that the
// walk finds its way back.
func (t trial) value() float64 {
	if over := t.loss - MostLoss; over > 0 {
		return t.useful * max(0, 0.98-over)
	}
	return t.useful
}
