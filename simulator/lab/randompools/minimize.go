package randompools

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/random"
)

// Minimize simplifies a pool on which the policy is not safe, as long as it stays unsafe and the
// pool attains its objectives without batch work. It writes the scenario as a file.
func (s *Study) Minimize(ctx context.Context, number int, out io.Writer) error {
	if err := s.open(); err != nil {
		return err
	}
	pool, err := s.draw(ctx, number)
	if err != nil {
		return err
	}
	loss, unsafe, err := s.unsafe(ctx, pool)
	if err != nil {
		return err
	}
	if !unsafe {
		return fmt.Errorf("pool %d: the loss is %.2f points; only a loss above %d is minimized",
			number, loss, safeLoss)
	}
	var done []string
	for {
		simpler, name, now, err := s.simplify(ctx, pool)
		if err != nil {
			return err
		}
		if name == "" {
			break
		}
		s.logf("%s: loss %.2f points\n", name, now)
		pool, loss, done = simpler, now, append(done, name)
	}
	pool.Scenario.Name += "-minimized"
	pool.Scenario.About = "minimized: " + strings.Join(done, ", ")
	text, err := scenarioYAML(pool.Scenario)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "# %s loses %.2f points here.\n"+
		"# tidefill simulate FILE --seed %d%s\n%s",
		s.Candidate.Name, loss, pool.Seed, s.Flags, text)
	return err
}

// simplify returns the first simplification on which the policy remains unsafe. Its name is empty
// if there is none.
func (s *Study) simplify(
	ctx context.Context, pool random.Pool,
) (simpler random.Pool, name string, loss float64, err error) {
	for _, simplification := range random.Simplify(pool.Scenario) {
		simpler = pool
		if simpler.Scenario = simplification.Scenario; simpler.Scenario.Interactive.Trace == "" {
			simpler.Trace = nil
		}
		if simpler.Setup().Check() != nil {
			continue // such as a budget below the number of sequences
		}
		loss, unsafe, err := s.unsafe(ctx, simpler)
		if err != nil {
			return pool, "", 0, err
		}
		if unsafe {
			return simpler, simplification.Name, loss, nil
		}
	}
	return pool, "", 0, nil
}

// minRequests is the least number of interactive requests of a minimized scenario, so that its
// loss is not that of one or two.
const minRequests = 200

// unsafe runs the policy. A pool with too few requests, or none, or one that misses its objectives
// without batch work, is not unsafe.
func (s *Study) unsafe(ctx context.Context, pool random.Pool) (loss float64, unsafe bool,
	err error) {
	setup := pool.Setup()
	setup.Policy = s.Candidate.Policy
	r, err := simulator.Run(setup, until(ctx))
	if unfit(err) {
		return 0, false, nil
	}
	enough := r.NoBatch.Requests >= minRequests
	return r.Loss, err == nil && enough && r.Loss > safeLoss, err
}

func (s *Study) logf(format string, args ...any) {
	if s.Log != nil {
		fmt.Fprintf(s.Log, format, args...)
	}
}
