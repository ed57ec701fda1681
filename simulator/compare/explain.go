package compare

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/simulator"
)

// Explain runs the first candidate with the first seed and writes, for each scenario, why it
// decided as it did around a time from the beginning, on request with all terms of the policy.
func (c *Comparison) Explain(
	ctx context.Context, moment time.Duration, terms bool, out io.Writer,
) error {
	for _, s := range c.Scenarios {
		err := CheckMoment(s.Scenario.Name, moment, s.Scenario.Horizon)
		if err != nil {
			return err
		}
	}
	explanations := map[string]*bytes.Buffer{} // by scenario file
	for _, s := range c.Scenarios {
		explanations[s.File] = &bytes.Buffer{}
	}
	one := *c
	one.Candidates, one.Seeds = c.Candidates[:1], c.Seeds[:1]
	if _, err := one.simulate(ctx, func(s *Scenario, _ Candidate, _ uint64) simulator.Outputs {
		return simulator.Outputs{Explain: explanations[s.File], Moment: moment, Terms: terms}
	}); err != nil {
		return err
	}
	for _, s := range c.Scenarios {
		text := explanations[s.File].String()
		if text == "" {
			text = fmt.Sprintf("nothing was decided from %s on\n", moment)
		}
		if _, err := fmt.Fprintf(out, "%s\n%s", s.Scenario.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// CheckMoment refuses to explain a time at which a run is over.
func CheckMoment(name string, moment, horizon time.Duration) error {
	if moment >= horizon {
		return RequestErrorf("explain %s around %s: the run ends before, at %s; "+
			"give an earlier time", name, humanize.Duration(moment), humanize.Duration(horizon))
	}
	return nil
}
