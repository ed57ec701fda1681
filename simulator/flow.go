package simulator

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/scheduler/flows"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Flow has the figures of a class of traffic whose requests passed through Tidefill.
type Flow struct {
	Class  string  `json:"class"` // of flows, such as critical
	Weight float64 `json:"weight,omitempty"`
	// Refused got no place. They count as missed.
	Refused int `json:"refused"`
	// Objective is the longest average time per output token, in milliseconds; 0: none. Attainment
	// is the share of the requests within it, of those judged; those without an answer miss it.
	Objective  float64 `json:"objective_ms,omitempty"`
	Attainment float64 `json:"objective_attainment,omitempty"`
	// PerTokenP95 is the 95th percentile of the answers' times from arrival to the last byte by
	// output token, in milliseconds.
	PerTokenP95 float64 `json:"per_token_p95_ms"`
	// Waited is the time for which admitted requests had waited.
	Waited Quantiles `json:"waited_ms"`
	// Work is the cost of the answers, in seconds of engine iterations.
	Work float64 `json:"work_s"`
}

// flowStats counts the requests of a class of traffic that pass through the daemon.
type flowStats struct {
	waited, perToken sketch
	within           int
	refused          int
	work             float64 // milliseconds
}

// answered counts an answer.
func (f *flowStats) answered(perToken, objective time.Duration, work float64) {
	f.perToken.add(perToken)
	f.work += work
	if perToken <= objective {
		f.within++
	}
}

// flowReport returns how the requests of the class fared as those of a flow; nil: they are not.
func (c *class) flowReport(inline bool, judged int) *Flow {
	if !inline {
		return nil
	}
	f := &Flow{Class: flowClass(c.flow), Weight: c.flow.Weight, Refused: c.through.refused,
		PerTokenP95: c.through.perToken.quantile(0.95), Waited: c.through.waited.quantiles(),
		Work: c.through.work / 1000}
	if c.flow.Objective > 0 {
		f.Objective = float64(c.flow.Objective) / float64(time.Millisecond)
		f.Attainment = share(c.through.within, judged)
	}
	return f
}

// flowClass returns the class of a flow, also where none is given.
func flowClass(f scenario.Flow) string { return cmp.Or(f.Class, flows.Standard) }

// inlineConfig returns the configuration of requests that pass through the daemon: the policy's, or
// the default where it has none.
func (s Setup) inlineConfig() plan.InlineConfig {
	cfg := s.Policy.Plan.Inline
	if len(cfg.Flows.Classes) == 0 {
		cfg = plan.DefaultInline()
	}
	cfg.Enabled = s.Scenario.Inline()
	return cfg
}

// checkFlows reports classes of flows that the policy's configuration does not list.
func (s Setup) checkFlows() error {
	if !s.Scenario.Inline() {
		return nil
	}
	known := s.inlineConfig().Flows
	if err := known.Validate(); err != nil {
		return fmt.Errorf("inline.%w", err)
	}
	for _, c := range s.Scenario.Interactive.All() {
		if !known.Lists(flowClass(c.Flow)) {
			return fmt.Errorf("interactive: flow.class is %q, which inline.flows.classes of the "+
				"configuration does not list", flowClass(c.Flow))
		}
	}
	return nil
}

// firstFlows reports which classes of traffic are of the most important class of flows, and whether
// there are others. Only those that bring requests count.
func (s Setup) firstFlows() (first []bool, others bool) {
	all, known := s.Scenario.Interactive.All(), s.inlineConfig().Flows
	first = make([]bool, len(all))
	rank := func(c scenario.Class) int {
		return known.Index(flowClass(c.Flow))
	}
	best := -1
	for i, c := range all {
		if i == 0 && c.Generator == scenario.None {
			continue
		}
		if r := rank(c); best < 0 || r < best {
			best = r
		}
	}
	for i, c := range all {
		first[i] = rank(c) == best
		others = others || !first[i] && (i > 0 || c.Generator != scenario.None)
	}
	return first, others
}

// ofAlone returns the attainment of the classes of traffic that come alone, as a share of what they
// attain then: the smaller one of that of their SLOs and that of their objectives.
func ofAlone(with, alone Interactive) float64 {
	var slo, objective [2]float64 // the requests that attained theirs, with others and alone
	for i, c := range alone.Classes {
		if c.Requests == 0 {
			continue
		}
		for k, of := range []Interactive{with.Classes[i].Interactive, c.Interactive} {
			slo[k] += of.Attainment * float64(of.Requests)
			objective[k] += of.Flow.Attainment * float64(of.Requests)
		}
	}
	least := slo[0] / max(slo[1], 1)
	if objective[1] > 0 {
		least = min(least, objective[0]/objective[1])
	}
	return least
}
