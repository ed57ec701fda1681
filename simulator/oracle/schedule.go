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
	// byTime sets how long iterations may take; the number of lines follows by feedback.
	byTime family = "iteration time"
	// byLines sets the number of lines.
	byLines family = "lines"
	// byLate is no schedule but the policy headroom, with its target share of late requests and its
	// constants, set for all of the run.
	byLate family = "late share"
)

// schedule is a candidate and its result.
type schedule struct {
	family family
	// base is the policy that it changes.
	base   simulator.Policy
	from   string    // its origin, for the note
	level  []float64 // by window: share of the TPOT objective, or lines; for byLate the share, once
	prompt []float64 // by window: tokens
	trial
	late []int // interactive requests that missed an objective, by minute of their arrival
}

func (t schedule) clone() schedule {
	t.level, t.prompt = slices.Clone(t.level), slices.Clone(t.prompt)
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

// clamp moves a window's settings into their bounds.
func (t schedule) clamp(w int) {
	least, most := minShare, maxShare
	switch t.family {
	case byLines:
		least, most = 0, maxLines
	case byLate:
		least, most = minLate, maxLate
	}
	t.level[w] = min(max(t.level[w], least), most)
	t.prompt[w] = min(max(t.prompt[w], minPrompt), maxPrompt)
}

// policy returns the policy that follows the schedule.
func (t schedule) policy(window time.Duration) simulator.Policy {
	p := t.base
	if t.family == byLate {
		p.Flow.Policy, p.Flow.SLO.Late = headroom.Name, t.level[0]
		return p
	}
	p.Flow = p.Flow.Select(timetable.Name, timetable.Config{Begin: simulator.Epoch(),
		Rows: t.rows(window)})
	return p
}

func (t schedule) rows(window time.Duration) []timetable.Row {
	rows := make([]timetable.Row, len(t.level))
	for i, level := range t.level {
		rows[i] = timetable.Row{At: time.Duration(i) * window,
			PromptTokens: int(math.Round(t.prompt[i]))}
		if t.family == byTime {
			rows[i].TargetShare, rows[i].Lines = math.Round(level*1e4)/1e4, maxLines
		} else {
			rows[i].Lines = int(math.Round(level))
		}
	}
	return rows
}

// scheduleOf returns the schedule of what a policy did in a run: how long it let iterations take in
// each window and how many prompt tokens it let wait; for a policy that steers by neither, how many
// lines were in flight. false: the timeline does not have it.
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
	return t, true
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
