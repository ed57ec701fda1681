package randompools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tidefill/tidefill/internal/shellword"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/random"
)

// WriteScenarios writes the scenarios into a directory, each with the command that runs it.
func (s *Study) WriteScenarios(ctx context.Context, dir string) error {
	if err := s.open(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	failures, err := s.each(ctx, func(_ context.Context, _ int, pool random.Pool) error {
		return s.writeScenario(filepath.Join(dir, pool.Scenario.Name+".yaml"), pool)
	})
	return errors.Join(err, asError(failures))
}

func (s *Study) writeScenario(file string, pool random.Pool) error {
	text, err := scenarioYAML(pool.Scenario)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# tidefill simulate %s --seed %d%s\n", shellword.Of(file),
		pool.Seed, s.Flags)
	return os.WriteFile(file, append([]byte(head), text...), 0o666)
}

// Explain runs the policy on the pools and writes why it decided as it did around a time from the
// beginning.
func (s *Study) Explain(ctx context.Context, moment time.Duration, out io.Writer) error {
	if err := compare.CheckMoment("pools", moment, s.Source.Horizon); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	texts := make([]bytes.Buffer, len(s.Numbers))
	failures, err := s.each(ctx, func(ctx context.Context, i int, pool random.Pool) error {
		setup := pool.Setup()
		setup.Policy = s.Candidate.Policy
		setup.Outputs = simulator.Outputs{Explain: &texts[i], Moment: moment,
			Terms: true}
		fmt.Fprintf(&texts[i], "%s: %s\n", pool.Scenario.Name, pool.Scenario.About)
		_, err := simulator.RunBatch(setup, until(ctx))
		return err
	})
	if err != nil {
		return err
	}
	for i := range texts {
		if _, err := texts[i].WriteTo(out); err != nil {
			return err
		}
	}
	return asError(failures)
}
