package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

// conclude says in a sentence what each policy that was asked for harvests and costs, and which of
// all policies is the best that costs users no more than is allowed.
func (s *Scenario) conclude() {
	s.Conclusion = nil
	asked := s.asked()
	for _, p := range asked {
		s.Conclusion = append(s.Conclusion, s.sentence(p))
	}
	best, cheapest := s.bestAllowed(), s.cheapest()
	switch {
	case len(asked) == 0 || cheapest == nil:
	case best == nil && len(s.Policies) == 1:
		s.Conclusion = append(s.Conclusion, "That is more than is allowed.")
	case best == nil:
		s.Conclusion = append(s.Conclusion, fmt.Sprintf("No policy stays within what is allowed; "+
			"%s costs users the least, %s points.", cheapest.Name, points(cheapest.Loss.Worst)))
	case len(s.Policies) == 1:
		s.Conclusion = append(s.Conclusion, "That is within what is allowed.")
	default:
		s.Conclusion = append(s.Conclusion, fmt.Sprintf("The best within what is allowed is %s.",
			best.Name))
	}
}

// sentence says what a policy harvests and what it costs users.
func (s *Scenario) sentence(p *Policy) string {
	text := fmt.Sprintf("%s harvests %s useful batch tokens an hour", p.Name,
		tokens(float64(p.Useful.Mean)/s.Hours))
	if p.Feasible > 0 {
		text += fmt.Sprintf(" and meets %d of %s", p.Met, humanize.Count(p.Feasible, "deadline"))
	}
	text += "; " + s.lossText(p)
	for _, g := range p.Goals {
		if g.users && g.Figure.Known() && !g.Met && g.Name != lossGoal {
			text += fmt.Sprintf("; %s: %s (asked: %s)", g.Name, fixed(float64(g.Figure), 2),
				g.BoundText())
		}
	}
	return text + "."
}

// lossText says what users lose, and how much they may.
func (s *Scenario) lossText(p *Policy) string {
	if !s.users() {
		return "there are no interactive users"
	}
	allowed := strconv.FormatFloat(s.allowedLoss(), 'g', 4, 64) + " points"
	if s.allowedLoss() == 1 {
		allowed = "1 point"
	}
	mean, worst := points(p.Loss.Mean), points(p.Loss.Worst)
	seeds := ""
	if mean != worst {
		seeds = fmt.Sprintf(", %s on the worst of %s,", worst,
			humanize.Count(len(p.Runs), "seed"))
	}
	switch {
	case p.Loss.Worst <= 0 || worst == "0.00":
		return fmt.Sprintf("users lose none of the %s allowed", allowed)
	case float64(p.Loss.Worst) > s.allowedLoss()+rounding:
		return fmt.Sprintf("users lose %s points%s more than the %s allowed", mean,
			cmp.Or(seeds, ","), allowed)
	case seeds != "":
		return fmt.Sprintf("users lose %s points%s of the %s allowed", mean, seeds, allowed)
	}
	return fmt.Sprintf("users lose %s of the %s allowed", mean, allowed)
}

// users reports whether interactive requests came.
func (s *Scenario) users() bool {
	for _, seed := range s.Seeds {
		if seed.NoBatch.Requests > 0 {
			return true
		}
	}
	return false
}

// allowedLoss is the scenario's goal for the loss, in points; without one, that of scores.
func (s *Scenario) allowedLoss() float64 {
	if s.goals.Loss > 0 {
		return s.goals.Loss
	}
	return simulator.MaxLoss
}

// allowed reports whether a policy costs users no more than is allowed on all seeds.
func (s *Scenario) allowed(p *Policy) bool {
	for _, g := range p.Goals {
		if g.users && g.Figure.Known() && !g.Met {
			return false
		}
	}
	return float64(p.Loss.Worst) <= s.allowedLoss()+rounding
}

// bestAllowed returns the policy that meets most deadlines of those that cost users no more than is
// allowed, and harvests most of these; nil: there is none.
func (s *Scenario) bestAllowed() *Policy {
	return s.first(func(p, best *Policy) bool {
		switch {
		case p.Met != best.Met:
			return p.Met > best.Met
		case p.Useful.Mean != best.Useful.Mean:
			return p.Useful.Mean > best.Useful.Mean
		}
		return p.Loss.Worst < best.Loss.Worst
	}, s.allowed)
}

// cheapest returns the policy that costs users the least.
func (s *Scenario) cheapest() *Policy {
	return s.first(func(p, best *Policy) bool { return p.Loss.Worst < best.Loss.Worst },
		func(*Policy) bool { return true })
}

// first returns the first of the policies that ran with all seeds and are among those that count.
func (s *Scenario) first(before func(p, best *Policy) bool, counts func(*Policy) bool) *Policy {
	var best *Policy
	for i := range s.Policies {
		p := &s.Policies[i]
		if len(p.Runs) == len(s.Seeds) && len(p.Runs) > 0 && counts(p) &&
			(best == nil || before(p, best)) {
			best = p
		}
	}
	return best
}

// points formats a loss.
func points(n Number) string { return fixed(float64(n), 2) }

// tokens formats a number of tokens.
func tokens(n float64) string {
	if n >= 1e6 {
		return fixed(n/1e6, 2) + " M"
	}
	return humanize.Thousands(int64(math.Round(n)))
}
