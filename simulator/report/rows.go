package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

// interactiveRows returns figures of interactive users as text: a name, the value without batch
// work, and each policy's. Details begin with spaces.
func (s *Scenario) interactiveRows(asked []*Policy) [][]string {
	quiet := &Policy{}
	for _, seed := range s.Seeds {
		quiet.Runs = append(quiet.Runs, simulator.Result{Interactive: seed.NoBatch})
	}
	var rows [][]string
	row := func(name string, digits int, worse func(a, b float64) float64,
		value func(in simulator.Interactive) float64) {
		cells := []string{name}
		for _, p := range append([]*Policy{quiet}, asked...) {
			cells = append(cells, p.over(worse, func(i int) float64 {
				return value(p.Runs[i].Interactive)
			}).text(digits, len(s.Seeds)))
		}
		rows = append(rows, cells)
	}
	lower, higher := math.Min, math.Max
	row("interactive requests judged", 0, lower, func(in simulator.Interactive) float64 {
		return float64(in.Requests)
	})
	row("attainment %", 2, lower, func(in simulator.Interactive) float64 {
		return 100 * in.Attainment
	})
	row("attainment in the worst 5 minutes %", 2, lower, func(in simulator.Interactive) float64 {
		return 100 * in.Worst5Minutes
	})
	row("TTFT p50 ms", 0, higher, func(in simulator.Interactive) float64 { return in.TTFT.P50 })
	row("TTFT p99 ms", 0, higher, func(in simulator.Interactive) float64 { return in.TTFT.P99 })
	row("TPOT p50 ms", 1, higher, func(in simulator.Interactive) float64 { return in.TPOT.P50 })
	row("TPOT p99 ms", 1, higher, func(in simulator.Interactive) float64 { return in.TPOT.P99 })
	row("missed TTFT", 0, higher, func(in simulator.Interactive) float64 {
		return float64(in.MissedTTFT)
	})
	row("missed TPOT", 0, higher, func(in simulator.Interactive) float64 {
		return float64(in.MissedTPOT)
	})
	row("too long", 0, higher, func(in simulator.Interactive) float64 {
		return float64(in.Refused)
	})
	row("lost with a replica", 0, higher, func(in simulator.Interactive) float64 {
		return float64(in.Lost)
	})
	row("undecided at the end", 0, higher, func(in simulator.Interactive) float64 {
		return float64(in.Undecided)
	})
	for _, class := range s.classes() {
		of := func(in simulator.Interactive) simulator.Interactive {
			i := slices.IndexFunc(in.Classes, func(c simulator.Class) bool {
				return c.Name == class
			})
			if i < 0 {
				return simulator.Interactive{Attainment: math.NaN()}
			}
			return in.Classes[i].Interactive
		}
		row("attainment % of class "+cmp.Or(class, "without a name"), 2, lower,
			func(in simulator.Interactive) float64 { return 100 * of(in).Attainment })
		row("  TTFT p99 ms", 0, higher, func(in simulator.Interactive) float64 {
			return of(in).TTFT.P99
		})
		row("  TPOT p99 ms", 1, higher, func(in simulator.Interactive) float64 {
			return of(in).TPOT.P99
		})
	}
	return rows
}

// classes lists the classes of interactive traffic, if there are several.
func (s *Scenario) classes() []string {
	var names []string
	if len(s.Seeds) > 0 {
		for _, c := range s.Seeds[0].NoBatch.Classes {
			if c.Requests > 0 {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// batchRows is interactiveRows for batch work.
func (s *Scenario) batchRows(asked []*Policy) [][]string {
	var rows [][]string
	n := len(s.Seeds)
	row := func(name string, value func(p *Policy) string) {
		cells := []string{name, ""}
		for _, p := range asked {
			cells = append(cells, value(p))
		}
		rows = append(rows, cells)
	}
	mean := func(name string, digits int, value func(b *simulator.Result) float64) {
		row(name, func(p *Policy) string {
			return p.over(math.Max, func(i int) float64 {
				return value(&p.Runs[i])
			}).text(digits, 1)
		})
	}
	anHour := 1 / (1e6 * s.Hours)
	row("loss, points", func(p *Policy) string { return p.Loss.text(2, n) })
	row("loss in the worst 5 minutes, points", func(p *Policy) string {
		return p.WorstLoss.text(2, n)
	})
	row("useful batch tokens, M an hour", func(p *Policy) string {
		return p.Useful.times(anHour).text(2, n)
	})
	mean("  of prompts", 2, func(r *simulator.Result) float64 {
		return float64(r.Batch.Input) * anHour
	})
	mean("  of answers", 2, func(r *simulator.Result) float64 {
		return float64(r.Batch.Output) * anHour
	})
	row("work, engine seconds", func(p *Policy) string { return p.Work.text(0, n) })
	if s.scored() {
		row("score", func(p *Policy) string { return p.Score.text(3, n) })
	}
	row("wasted batch tokens, at most %", func(p *Policy) string {
		return p.Wasted.times(100).text(2, n)
	})
	mean("lines answered", 0, func(r *simulator.Result) float64 { return float64(r.Batch.Lines) })
	mean("lines failed", 0, func(r *simulator.Result) float64 { return float64(r.Batch.Failed) })
	mean("sheds", 0, func(r *simulator.Result) float64 { return float64(r.Batch.Sheds) })
	mean("preemptions", 0, func(r *simulator.Result) float64 {
		return float64(r.Batch.Preemptions)
	})
	if slices.ContainsFunc(asked, func(p *Policy) bool { return p.Feasible+p.Infeasible > 0 }) {
		row(s.Additions.deadlines()+" met", (*Policy).deadlinesText)
	}
	row("GPU hours", func(p *Policy) string { return p.GPUHours.text(1, n) })
	return rows
}

// scored reports whether scores say something: they are shares of the best harvest, and the best of
// the policies that were asked for is no measure of them.
func (s *Scenario) scored() bool {
	return len(s.Additions.Best) > 0 ||
		slices.ContainsFunc(s.Policies, func(p Policy) bool { return p.Baseline })
}

func (s *Scenario) baselineRow(p Policy) []string {
	n := len(p.Runs)
	return []string{p.Name, p.Useful.times(1/(1e6*s.Hours)).text(2, n), p.Loss.text(2, n),
		p.Score.text(3, n), p.deadlinesText(), p.GPUHours.text(1, n), p.note(len(s.Seeds))}
}

// note is what to know of a baseline: whether its settings are the best, or ran with some of the
// seeds only.
func (p Policy) note(seeds int) string {
	if len(p.Runs) < seeds {
		return "the first " + humanize.Count(len(p.Runs), "seed")
	}
	return p.BestText()
}

// BestText describes among which settings of its policy this one is the best.
func (p Policy) BestText() string {
	switch {
	case p.BestHere && p.BestOverall:
		return "best here and over all"
	case p.BestHere:
		return "best here"
	case p.BestOverall:
		return "best over all"
	}
	return ""
}

func (p *Policy) deadlinesText() string {
	if p.Feasible == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d", p.Met, p.Feasible)
}
