package report

import (
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/simulator"
)

// collectWarnings collects what a reader must not miss.
func (s *Scenario) collectWarnings() {
	s.Warnings = nil
	say := func(format string, args ...any) {
		s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
	}
	for _, seed := range s.Seeds {
		s.overloaded(fmt.Sprintf("without batch work, seed %d", seed.Seed), seed.NoBatch)
	}
	for _, p := range s.Policies {
		for _, run := range p.Runs {
			if !p.Baseline {
				s.overloaded(fmt.Sprintf("%s, seed %d", p.Name, run.Seed), run.Interactive)
				for _, w := range run.Warnings {
					say("POLICY WARNING, %s, seed %d, %s: in pool %s, from %s: %s", p.Name,
						run.Seed, w.Code, w.Pool, moment(w.From), w.Text)
				}
				for _, j := range run.Jobs {
					if j.Flagged > 0 && j.Outcome == simulator.Finished {
						say(
							"FALSE ALARM: %s reported %s infeasible at %s and finished it in "+
								"time, on seed %d", p.Name, j.Name, moment(j.Flagged), run.Seed)
					}
				}
			}
		}
	}
}

// maxOverloads is the number of spans of overload of a run that are listed; all are in result.json.
const maxOverloads = 4

// overloaded warns of spans in which requests waited ever longer, because means over them depend on
// the length of the run.
func (s *Scenario) overloaded(name string, in simulator.Interactive) {
	if len(in.Overload) == 0 {
		return
	}
	var spans []string
	for i, o := range in.Overload {
		if i == maxOverloads {
			spans = append(spans, fmt.Sprintf("and %d more spans", len(in.Overload)-i))
			break
		}
		spans = append(spans, fmt.Sprintf("%s from minute %s to %s", o.Replica, fixed(o.From/60, 1),
			fixed(o.To/60, 1)))
	}
	s.Warnings = append(s.Warnings, fmt.Sprintf(
		"OVERLOAD, %s: %s; means over such times depend on the length of the run", name,
		strings.Join(spans, ", ")))
}
