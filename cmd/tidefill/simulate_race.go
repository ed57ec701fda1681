package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/report"
)

// race runs policies side by side: every story on every seed, once without batch work and once with
// each contestant. Runs go in parallel, and what comes of them stands where it would if they had
// not.
type race struct {
	stories []story
	seeds   []uint64
	field   []contestant
	oracles bool
	// oracleRuns is how many times each oracle may tell a story of an hour.
	oracleRuns int
	// shelf is where what they find is kept; nil: nowhere.
	shelf *shelf
	// watch is what to record of a run, besides its figures.
	watch func(s *story, c contestant, seed uint64) simulator.Outputs
	// stderr shows how far it has come.
	stderr io.Writer
}

// run returns the report, not judged.
func (r *race) run(ctx context.Context) (report.Report, error) {
	begun := time.Now()
	progress := newTally(r.stderr, r.hours())
	defer progress.stop()
	told := report.Report{Scenarios: make([]report.Scenario, len(r.stories))}
	quiet, jobs := r.quietJobs(progress)
	for i := range r.stories {
		s, into := &r.stories[i], &told.Scenarios[i]
		*into = s.empty(r.seeds)
		var err error
		if into.Traffic, err = s.traffic(r.seeds[0]); err != nil {
			return report.Report{}, err
		}
		for _, c := range r.field {
			if !c.actsIn(s) {
				continue
			}
			runs := make([]simulator.Result, len(r.seeds))
			into.Policies = append(into.Policies, report.Policy{Name: c.name, Flow: c.law,
				Settings: c.settings, Baseline: c.baseline, Runs: runs})
			for n, seed := range r.seeds {
				jobs = append(jobs, func(ctx context.Context) (err error) {
					if quiet.hopeless.Load() {
						return nil
					}
					setup := s.on(seed, c.policy)
					setup.Outputs = r.watch(s, c, seed)
					runs[n], err = simulator.RunBatch(setup, progress.of(ctx, s, c.name))
					return err
				})
			}
		}
	}
	if err := parallel(ctx, jobs); err != nil {
		return report.Report{}, err
	}
	if err := quiet.fault(); err != nil {
		return report.Report{}, err
	}
	for i := range told.Scenarios {
		for n := range r.seeds {
			told.Scenarios[i].Seeds[n].NoBatch = quiet.days[i][n].Interactive
			for _, p := range told.Scenarios[i].Policies {
				p.Runs[n].Compare(quiet.days[i][n])
			}
		}
	}
	if err := r.ask(ctx, quiet.days, told.Scenarios, progress); err != nil {
		return report.Report{}, err
	}
	progress.stop()
	took, hours := time.Since(begun), progress.done.hours()
	_, err := fmt.Fprintf(r.stderr, "%.3g simulated hours in %s, %.2g hours a second\n", hours,
		took.Round(10*time.Millisecond), hours/took.Seconds())
	return told, err
}

// hours is how long all runs are together, if every search takes all that it may.
func (r *race) hours() float64 {
	sum := 0.0
	for _, s := range r.stories {
		sum += s.Scenario.Horizon.Hours() * float64(len(r.seeds))
		for _, c := range r.field {
			if c.actsIn(&s) {
				sum += s.Scenario.Horizon.Hours() * float64(len(r.seeds))
			}
		}
		if r.oracles {
			sum += s.Scenario.Horizon.Hours() * float64(len(r.seeds)*len(searched)*r.searches(&s))
		}
	}
	return sum
}

// quietDays are all stories without batch work, on all seeds.
type quietDays struct {
	days     [][]simulator.NoBatch // by story and seed
	unfit    [][]error
	hopeless atomic.Bool // one of them is unfit, so nothing need be run beside them
}

// fault says which pools miss their promise without batch work, all of them.
func (q *quietDays) fault() error {
	return errors.Join(slices.Concat(q.unfit...)...)
}

// quietJobs tell all stories without batch work. A pool that misses its promise is told of when all
// are done, with all others.
func (r *race) quietJobs(progress *tally) (*quietDays, []func(context.Context) error) {
	q := &quietDays{days: make([][]simulator.NoBatch, len(r.stories)),
		unfit: make([][]error, len(r.stories))}
	var jobs []func(context.Context) error
	for i := range r.stories {
		s := &r.stories[i]
		q.days[i], q.unfit[i] = make([]simulator.NoBatch, len(r.seeds)), make([]error, len(r.seeds))
		for n, seed := range r.seeds {
			jobs = append(jobs, func(ctx context.Context) (err error) {
				q.days[i][n], err = simulator.RunNoBatch(s.on(seed, r.field[0].policy), progress.of(
					ctx, s, "no batch"))
				if fault := (*simulator.UnfitError)(nil); errors.As(err, &fault) {
					q.unfit[i][n] = fmt.Errorf("seed %d: %w", seed, err)
					q.hopeless.Store(true)
					return nil
				}
				return err
			})
		}
	}
	return q, jobs
}

// ask lets the oracles say how well anyone could have done; those that must search, only if they
// were asked for.
func (r *race) ask(
	ctx context.Context, quiet [][]simulator.NoBatch, into []report.Scenario, progress *tally,
) error {
	var jobs []func(context.Context) error
	for i := range r.stories {
		s := &r.stories[i]
		for n, seed := range r.seeds {
			var seen []oracle.PriorRun
			for _, p := range into[i].Policies {
				c := slices.IndexFunc(r.field, func(c contestant) bool { return c.name == p.Name })
				seen = append(seen, oracle.PriorRun{Policy: r.field[c].policy, Result: p.Runs[n]})
			}
			jobs = append(jobs, func(ctx context.Context) (err error) {
				var bounds []oracle.Bound
				if r.oracles {
					bounds, err = askOracles(r.question(ctx, s, seed, quiet[i][n], seen, progress))
				} else {
					bounds, err = askFeasible(s.on(seed, r.field[0].policy), quiet[i][n])
				}
				if err != nil {
					return fmt.Errorf("seed %d: %w", seed, err)
				}
				into[i].Seeds[n].Oracles = bounds
				return nil
			})
		}
	}
	return parallel(ctx, jobs)
}

// fewestSearches is how many runs an oracle needs to be worth asking.
const fewestSearches = 12

// searches is how many times an oracle may tell a story: fewer the longer it is.
func (r *race) searches(s *story) int {
	return min(r.oracleRuns, max(fewestSearches,
		int(float64(r.oracleRuns)/s.Scenario.Horizon.Hours())))
}

// parallel runs jobs on all processors, and ends at the first error.
func parallel(ctx context.Context, jobs []func(context.Context) error) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, job := range jobs {
		if within.Err() != nil {
			break
		}
		group.Go(func() error { return job(within) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// tally adds up how far all runs have come, and shows it.
type tally struct {
	begun time.Time
	bar   *runBar
	all   float64 // hours
	done  nanohours
	saved nanohours    // that searches could have taken and did not
	name  atomic.Value // of what was run last
	ended chan struct{}
	once  sync.Once
	wait  sync.WaitGroup
}

// nanohours of simulated time, added to by many.
type nanohours struct{ atomic.Int64 }

func (n *nanohours) add(hours float64) { n.Add(int64(hours * 1e9)) }

func (n *nanohours) hours() float64 { return float64(n.Load()) / 1e9 }

func newTally(out io.Writer, hours float64) *tally {
	t := &tally{begun: time.Now(), bar: newRunBar(out), all: hours, ended: make(chan struct{})}
	t.name.Store("")
	t.wait.Go(func() {
		tick := time.NewTicker(t.bar.every)
		defer tick.Stop()
		for {
			select {
			case <-t.ended:
				return
			case <-tick.C:
				t.bar.show((t.done.hours()+t.saved.hours())/t.all, t.name.Load().(string), time.Since(t.begun))
			}
		}
	})
	return t
}

// stop wipes the bar.
func (t *tally) stop() {
	t.once.Do(func() {
		close(t.ended)
		t.wait.Wait()
		t.bar.wipe()
	})
}

// of follows one run.
func (t *tally) of(ctx context.Context, s *story, name string) simulator.Progress {
	told := 0.0
	hours := s.Scenario.Horizon.Hours()
	t.name.Store(s.Scenario.Name + ", " + name)
	return func(share float64) error {
		t.done.add((share - told) * hours)
		told = share
		return ctx.Err()
	}
}

// search follows one that may tell the story a number of times and says so each time; what it has
// not told when it is over, it has saved.
func (t *tally) search(
	ctx context.Context, s *story, name string, most int,
) (run simulator.Progress, over func()) {
	hours := s.Scenario.Horizon.Hours()
	t.name.Store(s.Scenario.Name + ", " + name)
	run = func(float64) error {
		most--
		t.done.add(hours)
		return ctx.Err()
	}
	return run, func() { t.saved.add(float64(most) * hours) }
}
