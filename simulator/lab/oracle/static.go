package oracle

import (
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

// StaticSetting is a setting of the flow-control policy fixed, which an operator could have chosen.
type StaticSetting struct {
	// Lines is the number of lines that a runner carries. 0: none, no work is done.
	Lines int
	// Runners is the number of runners that carry lines, the first by name; the others stay free.
	Runners int
}

// Policy returns base with the setting as its flow control.
func (s StaticSetting) Policy(base simulator.Policy) simulator.Policy {
	if s.Lines == 0 {
		base.Flow.Policy = "none"
		return base
	}
	base.Flow = base.Flow.Select(fixed.Name, fixed.Config{PerRunner: s.Lines, Runners: s.Runners})
	return base
}

func (s StaticSetting) String() string {
	lines := humanize.Count(s.Lines, "line")
	if s.Runners == 1 {
		return lines + " on one runner"
	}
	return fmt.Sprintf("%s on each of %d runners", lines, s.Runners)
}

// StaticRun is a setting and the result of its run.
type StaticRun struct {
	Setting StaticSetting
	Result  simulator.Result
}

// safe reports whether the run costs no more than a policy may.
func (r StaticRun) safe() bool { return r.Result.Loss <= MaxLoss }

// BestStatic searches for the static setting with the largest harvest at an allowed loss, for a
// pool of some runners whose engines run up to maxSeqs requests at once. It calls run for each
// setting that it tries. The zero StaticRun means that no setting harvests anything safely. An
// error of run ends the search; the best so far is returned with it.
//
// It relies on more lines on as many runners harvesting more and costing more, likewise as many
// lines on more runners, and on no more lines in all harvesting no more on fewer runners. It needs
// about five runs for all runners, and one to seven for each of a half, a quarter and an eighth of
// them and a single one: about 13 in all.
func BestStatic(
	runners, maxSeqs int, run func(StaticSetting) (simulator.Result, error),
) (StaticRun, error) {
	return bestStaticAbove(0, runners, maxSeqs, run)
}

// bestStaticAbove is BestStatic for settings that harvest more than a number of tokens.
func bestStaticAbove(
	floor int64, runners, maxSeqs int, run func(StaticSetting) (simulator.Result, error),
) (StaticRun, error) {
	s := staticSearch{caps: staticCaps(maxSeqs), floor: floor, run: run}
	for n, used := range staticRunners(runners) {
		if err := s.onRunners(used, n == 0); err != nil || s.done {
			return s.best, err
		}
	}
	return s.best, nil
}

// staticRunners returns the numbers of runners to try, from most to least.
func staticRunners(all int) []int {
	var tried []int
	for _, part := range []int{1, 2, 4, 8} {
		tried = append(tried, max(1, all/part))
	}
	return slices.Compact(append(tried, 1))
}

// staticCaps returns the numbers of lines of a runner to try. They grow in steps of about 1.4: 1,
// 2, 3, 4, 6, 8, 12 and so on to most.
func staticCaps(most int) []int {
	caps := []int{1}
	for step := 2; step < most; step *= 2 {
		caps = append(caps, step)
		if between := step + step/2; between < most {
			caps = append(caps, between)
		}
	}
	return slices.Compact(append(caps, max(1, most)))
}

type staticSearch struct {
	caps  []int
	floor int64 // tokens that a setting must exceed
	run   func(StaticSetting) (simulator.Result, error)
	best  StaticRun
	safe  int  // so many of the caps are safe on the runners tried last, and so on fewer
	done  bool // what remains can't harvest more
}

// gains reports whether a run harvests more than the best.
func (s *staticSearch) gains(r StaticRun) bool {
	return r.Result.Batch.Useful > max(s.floor, s.best.Result.Batch.Useful)
}

// onRunners searches for the largest safe cap on some runners, by bisection. A cap that harvests no
// more than the best is too low, safe or not.
func (s *staticSearch) onRunners(used int, all bool) error {
	low, high := s.safe, len(s.caps) // caps below low are too low, those from high on are not safe
	next := (low + high) / 2
	if !all {
		if s.floor > 0 || s.best.Setting.Lines > 0 {
			// What the most lines harvest bounds all settings with as many runners or fewer.
			high--
			top, err := s.try(used, high)
			if err != nil || s.done {
				return err
			}
			if s.done = top.safe() || !s.gains(top); s.done {
				return nil
			}
		}
		// Often the cost depends on the lines in all, and the first cap that can gain anything is
		// not safe.
		for low < high && used*s.caps[low] <= s.best.Setting.Lines*s.best.Setting.Runners {
			low++
		}
		next = low
	}
	for low < high && !s.done {
		tried, err := s.try(used, next)
		if err != nil {
			return err
		}
		switch {
		case tried.safe():
			low, s.safe = next+1, next+1
		case !s.gains(tried):
			low = next + 1
		default:
			high = next
		}
		next = (low + high) / 2
	}
	s.done = s.done || s.safe == len(s.caps)
	return nil
}

// try runs a setting and keeps it if it is the best.
func (s *staticSearch) try(used, index int) (StaticRun, error) {
	tried := StaticRun{Setting: StaticSetting{Lines: s.caps[index], Runners: used}}
	var err error
	if tried.Result, err = s.run(tried.Setting); err != nil {
		return tried, err
	}
	if tried.safe() && s.gains(tried) {
		s.best = tried
		s.done = trialOf(tried.Result).exhausted
	}
	return tried, nil
}
