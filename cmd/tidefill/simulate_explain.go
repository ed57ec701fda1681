package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/experiment"
)

// moment reads --explain.
func (s *simulation) moment() (time.Duration, error) {
	if s.explain == "" {
		return 0, nil
	}
	moment, err := config.ParseDuration(s.explain)
	if err != nil || moment < 0 {
		return 0, usageErrorf("--explain is %q; write a time from the beginning, such as 20m or 90s",
			s.explain)
	}
	return moment, nil
}

// runExplained prints the decisions of the first policy with the first seed around a moment, for
// each scenario.
func (s *simulation) runExplained(
	ctx context.Context, c *experiment.Comparison, moment time.Duration, out io.Writer,
) error {
	c.Candidates, c.Seeds = c.Candidates[:1], c.Seeds[:1]
	explanations := map[string]*bytes.Buffer{} // by scenario file
	for _, s := range c.Scenarios {
		explanations[s.File] = &bytes.Buffer{}
	}
	c.Watch = func(s *experiment.Scenario, _ experiment.Candidate, _ uint64) simulator.Outputs {
		return simulator.Outputs{Explain: explanations[s.File], Moment: moment}
	}
	if _, err := c.Run(ctx); err != nil {
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
