package simulator

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// Progress is called with the share of a run that is done, from 0 to 1. An error that it returns
// ends the run.
type Progress func(share float64) error

// Run simulates the scenario twice, without batch work and with the policy's, and compares the
// results.
func Run(s Setup, progress Progress) (Result, error) {
	noBatch, err := RunNoBatch(s, func(done float64) error { return progress(done / 2) })
	if err != nil {
		return Result{}, err
	}
	return RunAgainst(noBatch, s, func(done float64) error { return progress((1 + done) / 2) })
}

// NoBatch is the result of a scenario without batch work, which every policy is compared with. It
// is the same for all policies, so it needs to be simulated only once for each seed.
type NoBatch struct {
	Interactive Interactive
	GPUHours    float64
	// Paid is the mean number of replicas of the first pool that were paid for in each PaidSlot.
	Paid []float64
	// Alone is the run without the classes of flows after the most important one; nil: there are
	// none.
	Alone *Interactive
	// Timeline is nil unless Setup.Outputs asked for it.
	Timeline *Timeline
	minutes  []minute
}

// ErrNoRequests is the error of a run in which no interactive request is judged.
var ErrNoRequests = errors.New("no interactive request arrives between the first and last " +
	"minute, so there is nothing to measure; raise horizon or interactive.rate")

// RunNoBatch simulates the scenario without batch work. It returns an UnfitError if a pool misses
// its SLO even so, and ErrNoRequests if nobody comes.
func RunNoBatch(s Setup, progress Progress) (NoBatch, error) {
	if err := s.Check(); err != nil {
		return NoBatch{}, err
	}
	others := false
	if s.Scenario.Inline() {
		_, others = s.firstFlows()
	}
	parts := 1.0
	if others {
		parts = 2
	}
	sim, timeline, err := simulate(s, false, func(done float64) error {
		return progress(done / parts)
	})
	if err != nil {
		return NoBatch{}, err
	}
	q := NoBatch{Interactive: sim.interactive.report(), GPUHours: sim.gpuHours(),
		Paid:     sim.pools[0].paidBySlot(),
		Timeline: timeline, minutes: sim.interactive.all().minutes}
	if q.Interactive.Requests == 0 && s.Scenario.Interactive.Generator != scenario.None {
		return NoBatch{}, fmt.Errorf("%s: %w", s.Scenario.Name, ErrNoRequests)
	}
	if others {
		s.alone, s.Outputs.Timeline = true, false
		sim, _, err = simulate(s, false, func(done float64) error {
			return progress((1 + done) / parts)
		})
		if err != nil {
			return NoBatch{}, err
		}
		alone := sim.interactive.report()
		q.Alone = &alone
	}
	return q, s.checkFit(q)
}

// checkFit returns an UnfitError if the requests that must attain their SLO without batch work miss
// it: all, or those of the most important class of flows without the others, which may be refused.
func (s Setup) checkFit(q NoBatch) error {
	got := q.Interactive
	if q.Alone != nil {
		got = *q.Alone
	}
	if slo := s.Scenario.Interactive.SLO; got.Attainment < slo.Attainment {
		return s.unfit("", slo.Attainment, slo.TPOT, got)
	}
	for i, c := range s.Scenario.Interactive.All()[1:] {
		if got := got.Classes[i+1].Interactive; got.Attainment < c.SLO.Attainment {
			return s.unfit(c.Name, c.SLO.Attainment, c.SLO.TPOT, got)
		}
	}
	return nil
}

// unfit says that a class of traffic misses its SLO.
func (s Setup) unfit(class string, wanted float64, tpot time.Duration, got Interactive) error {
	alone := s.Profile.CostModel.Iteration(1, 0, 0)
	return &UnfitError{Scenario: s.Scenario.Name, Class: class,
		Replicas: s.Scenario.Pool.Replicas, Wanted: wanted, Got: got, Objective: tpot,
		Alone: time.Duration(alone * float64(time.Millisecond))}
}

// RunAgainst simulates the scenario with the policy's batch work and compares it with the run
// without batch work of the same scenario and seed.
func RunAgainst(noBatch NoBatch, s Setup, progress Progress) (Result, error) {
	r, err := RunBatch(s, progress)
	if err == nil {
		r.Compare(noBatch)
	}
	return r, err
}

// RunBatch simulates the scenario with the policy's batch work. The result is complete after a call
// of Compare.
func RunBatch(s Setup, progress Progress) (Result, error) {
	if err := s.Check(); err != nil {
		return Result{}, err
	}
	busy, timeline, err := simulate(s, true, progress)
	if err != nil {
		return Result{}, err
	}
	if err := busy.dispatcher.observers.err(); err != nil {
		return Result{}, err
	}
	r := Result{
		Scenario: s.Scenario.Name, Seed: s.Seed, Hours: s.Scenario.Horizon.Hours(),
		Replicas: s.Scenario.Pool.Replicas,
		Flow:     s.Policy.Flow.Policy, Order: s.Policy.Scheduler.Policy,
		Interactive: busy.interactive.report(), GPUHours: busy.gpuHours(), Pools: busy.uses(),
		Timeline: timeline, minutes: busy.interactive.all().minutes,
	}
	r.Batch, r.Jobs = busy.dispatcher.report()
	r.Warnings = busy.dispatcher.warnings
	return r, nil
}

// Compare fills in what batch work costs, from the run without it of the same scenario and seed.
func (r *Result) Compare(noBatch NoBatch) {
	r.NoBatch, r.NoBatchGPUHours, r.Alone = noBatch.Interactive, noBatch.GPUHours, noBatch.Alone
	if r.Alone != nil {
		r.OfAlone = ofAlone(r.Interactive, *r.Alone)
	}
	r.Loss = Loss(r.NoBatch.Attainment, r.Interactive.Attainment)
	worst, at := worstLoss(noBatch.minutes, r.minutes)
	r.WorstLoss, r.WorstLossAt = worst, at.Seconds()
}

// UnfitError reports that a scenario can't measure a policy, because the pool misses its SLO
// without any batch work.
type UnfitError struct {
	Scenario string
	Class    string // of traffic; empty: all classes together
	Replicas int
	Wanted   float64
	Got      Interactive
	// Alone is the time per token of a request that an engine computes alone, and Objective the
	// longest that is allowed.
	Alone, Objective time.Duration
}

func (e *UnfitError) Error() string {
	of := "interactive requests"
	if e.Class != "" {
		of = fmt.Sprintf("requests of class %q", e.Class)
	}
	remedy := fmt.Sprintf("raise pool.replicas (now %d), bring less traffic (interactive.rate, or "+
		"another trace), loosen interactive.slo, or accept less than its attainment by "+
		"interactive.slo.attainment", e.Replicas)
	if e.Alone > e.Objective {
		remedy = fmt.Sprintf("a request that is alone on an engine takes %v per token, so no "+
			"number of replicas attains slo.tpot %v: loosen it, or take a faster pool.profile",
			e.Alone.Round(100*time.Microsecond), e.Objective)
	}
	return fmt.Sprintf(
		"%s: without batch work %.2f%% of %d %s attain the SLO, and %.2f%% must (%d missed ttft, "+
			"%d tpot, %d are too long); %s",
		e.Scenario, 100*e.Got.Attainment, e.Got.Requests, of, 100*e.Wanted, e.Got.MissedTTFT,
		e.Got.MissedTPOT, e.Got.Refused, remedy)
}

// simulate runs a simulation to its end.
func simulate(s Setup, withBatch bool, progress Progress) (*simulation, *Timeline, error) {
	sim, err := newSimulation(s, withBatch)
	if err != nil {
		return nil, nil, err
	}
	var timeline *Timeline
	var rec *sampler
	part := max(time.Second, s.Scenario.Horizon/200)
	if s.Outputs.Timeline {
		rec = newSampler(sim)
		part, timeline = rec.step, rec.timeline
	}
	for sim.now.Before(sim.end) {
		to := sim.now.Add(part)
		if to.After(sim.end) {
			to = sim.end
		}
		sim.run(to)
		if rec != nil {
			rec.sample()
		}
		if err := progress(float64(sim.now.Sub(epoch)) / float64(s.Scenario.Horizon)); err != nil {
			return nil, nil, err
		}
	}
	for _, req := range sim.unfinished() {
		sim.interactive.endOfRun(req, sim.end)
	}
	return sim, timeline, nil
}

// Epoch returns the time at which every scenario begins.
func Epoch() time.Time { return epoch }

// LateByMinute returns the number of interactive requests that missed an objective or were refused,
// by the minute of their arrival after the first edge.
func (q NoBatch) LateByMinute() []int { return lateByMinute(q.minutes) }

// RequestsByMinute returns the number of interactive requests that were judged, by the minute of
// their arrival after the first edge.
func (q NoBatch) RequestsByMinute() []int {
	judged := make([]int, len(q.minutes))
	for i, m := range q.minutes {
		judged[i] = m.judged
	}
	return judged
}

// epoch is the time at which every scenario begins.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
