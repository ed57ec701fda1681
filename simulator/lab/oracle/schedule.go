package oracle

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol/headroom"
	timetable "github.com/tidefill/tidefill/flowcontrol/schedule"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// family is what a schedule sets for each window.
type family string

const (
	// byTime sets the longest time of iterations; the number of lines follows by feedback.
	byTime family = "iteration time"
	// byLines sets the number of lines.
	byLines family = "lines"
	// byLate is no schedule but the policy headroom, with its target share of late requests and its
	// constants, set for all of the run.
	byLate family = "late share"
	// byStatic is no schedule but the policy fixed: a cap on the lines of some runners.
	byStatic family = "static setting"
)

// schedule is a candidate and its result.
type schedule struct {
	family family
	// base is the policy that it changes.
	base simulator.Policy
	from string // its origin, for the note
	// level is, by window, a share of the TPOT objective, or lines; 0: no lines. For byLate the
	// share and for byStatic the lines, once.
	level   []float64
	prompt  []float64 // by window: tokens
	runners []int     // by window: the number that carry lines; 0: all
	trial
	late []int // interactive requests that missed an objective, by minute of their arrival
}

func (t schedule) clone() schedule {
	t.level, t.prompt = slices.Clone(t.level), slices.Clone(t.prompt)
	t.runners = slices.Clone(t.runners)
	return t
}

// on returns the schedule on so many runners; 0: all.
func (t schedule) on(runners int) schedule {
	t.runners = slices.Repeat([]int{runners}, len(t.level))
	return t
}

// scaled returns the schedule with all levels multiplied.
func (t schedule) scaled(factor float64) schedule {
	t = t.clone()
	for w := range t.level {
		t.level[w] *= factor
		t.clamp(w)
	}
	return t
}

// Bounds of what a schedule may set.
const (
	minShare, maxShare   = 0.2, 1.5
	minPrompt, maxPrompt = 1, 1 << 16
	maxLines             = 512
	minLate, maxLate     = 0.0005, 0.1
)

// clamp moves a window's settings into their bounds. A pause remains one.
func (t schedule) clamp(w int) {
	t.prompt[w] = min(max(t.prompt[w], minPrompt), maxPrompt)
	if t.level[w] == 0 {
		return
	}
	least, most := minShare, maxShare
	switch t.family {
	case byLines:
		least, most = 0, maxLines
	case byLate:
		least, most = minLate, maxLate
	}
	t.level[w] = min(max(t.level[w], least), most)
}

// meanLevel returns the mean level of the windows with lines; the lowest one if there are none.
func (t schedule) meanLevel() float64 {
	sum, n := 0.0, 0
	for _, level := range t.level {
		if level > 0 {
			sum += level
			n++
		}
	}
	switch {
	case n > 0:
		return sum / float64(n)
	case t.family == byTime:
		return minShare
	}
	return 1
}

// policy returns the policy that follows the schedule.
func (t schedule) policy(window time.Duration) simulator.Policy {
	p := t.base
	switch t.family {
	case byLate:
		p.Flow.Policy, p.Flow.SLO.Late = headroom.Name, t.level[0]
		return p
	case byStatic:
		return t.setting().Policy(p)
	}
	p.Flow = p.Flow.Select(timetable.Name, timetable.Config{Begin: simulator.Epoch(),
		Rows: t.rows(window)})
	return p
}

// sameLines reports whether the schedule sets the same numbers of lines as another, and all else is
// the same too.
func (t schedule) sameLines(other schedule) bool {
	return t.family == byLines && slices.Equal(t.runners, other.runners) &&
		slices.Equal(t.prompt, other.prompt) &&
		slices.EqualFunc(t.level, other.level, func(a, b float64) bool {
			return math.Round(a) == math.Round(b)
		})
}

// setting returns the setting of a schedule of the family byStatic.
func (t schedule) setting() StaticSetting {
	return StaticSetting{Lines: int(t.level[0]), Runners: t.runners[0]}
}

func (t schedule) rows(window time.Duration) []timetable.Row {
	rows := make([]timetable.Row, len(t.level))
	for i, level := range t.level {
		rows[i] = timetable.Row{At: time.Duration(i) * window,
			PromptTokens: int(math.Round(t.prompt[i])), Runners: t.runners[i]}
		switch {
		case level == 0: // no lines
		case t.family == byTime:
			rows[i].TargetShare, rows[i].Lines = math.Round(level*1e4)/1e4, maxLines
		default:
			rows[i].Lines = int(math.Round(level))
		}
	}
	return rows
}

// scheduleOf returns the schedule of what a policy did in a run. It has, for each window, the
// iteration time that the policy allowed and the number of prompt tokens that it let wait. For a
// policy that steers by neither, it has the number of lines in flight. false: the timeline does not
// have it.
func scheduleOf(
	timeline *simulator.Timeline, base simulator.Policy, window time.Duration, windows int,
) (schedule, bool) {
	t := schedule{family: byTime, base: base}
	known := func(v float64) bool { return !math.IsNaN(v) }
	if !slices.ContainsFunc(timeline.TargetShare, known) {
		t.family = byLines
	}
	level, prompt := math.NaN(), float64(maxPrompt)
	for w := range windows {
		from, to := time.Duration(w)*window, time.Duration(w+1)*window
		mean := timeline.Mean(timeline.TargetShare, from, to)
		if t.family == byLines {
			mean = timeline.Mean(timeline.InFlight, from, to) / max(1,
				timeline.Mean(timeline.Ready, from,
					to))
		}
		if known(mean) {
			level = mean
		}
		if tokens := timeline.Mean(timeline.PromptAllowance, from, to); known(tokens) {
			prompt = tokens
		}
		if !known(level) {
			return t, false
		}
		t.level, t.prompt = append(t.level, level), append(t.prompt, prompt)
		t.clamp(w)
	}
	return t.on(0), true
}

// lateIn returns the late requests per minute at the time of a window, including a minute before
// and after it.
func (t schedule) lateIn(w int, window time.Duration) float64 {
	from := max(0, int((time.Duration(w)*window-scenario.Edge)/time.Minute)-1)
	to := min(len(t.late), int(
		(time.Duration(w+1)*window-scenario.Edge+time.Minute-1)/time.Minute)+1)
	sum := 0
	for m := from; m < to; m++ {
		sum += t.late[m]
	}
	return float64(sum) / float64(max(1, to-from))
}
