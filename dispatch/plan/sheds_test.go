package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// The ways to turn a line away.
var (
	byShedding = Finished{Outcome: Shed, Status: 503}
	byGateway  = Finished{Outcome: Unreachable, Status: 502}
)

// shedding runs lines on two runners in virtual time until none is left, or a day has passed.
// sheds decides which lines are turned away, and how says with what answer; the others take half a
// second to one and a half. It returns how many lines were answered and how many were given up.
func shedding(
	t *testing.T, lines int, how Finished, sheds func(slot int, runner string) bool,
) (answered, gaveUp int) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 8})
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow,
		Random: rand.New(rand.NewPCG(1, 2))})
	latency := rand.New(rand.NewPCG(5, 6))
	type flight struct {
		Finished
		at time.Time
	}
	now := noon
	var flights []flight
	step := func(ev Event) Verdict {
		actions := p.Step(now, ev)
		for _, s := range actions.Start {
			f := flight{Finished{Start: s, Outcome: Succeeded, Status: 200,
				Latency: time.Second, OutputTokens: 5},
				now.Add(time.Second/2 + time.Duration(latency.Int64N(int64(time.Second))))}
			if sheds(s.Slot, s.Runner) {
				f.Outcome, f.Status = how.Outcome, how.Status
				f.at = now.Add(5 * time.Millisecond)
			}
			flights = append(flights, f)
		}
		return actions.Verdict
	}
	for _, r := range []string{"r1", "r2"} {
		step(RunnerUp{Runner: r, Models: []string{"m"}})
	}
	step(BatchPut{Batch{ID: "b", Tenant: "t", Created: now,
		Models: []ModelLines{{Model: "m", Lines: lines}}}})
	all := make([]Line, lines)
	for i := range all {
		all[i].Slot = i
	}
	step(Loaded{Key: JobKey{"b", "m"}, Lines: all})
	for answered+gaveUp < lines && now.Before(noon.Add(24*time.Hour)) {
		next := -1
		for i := range flights {
			if next < 0 || flights[i].at.Before(flights[next].at) {
				next = i
			}
		}
		wake := p.out.Wake
		if next < 0 || !wake.IsZero() && wake.Before(flights[next].at) {
			now = wake
			step(Tick{})
			continue
		}
		f := flights[next]
		flights = append(flights[:next], flights[next+1:]...)
		now = f.at
		if verdict := step(&f.Finished); verdict == Record {
			if f.Outcome != Succeeded {
				gaveUp++
			} else {
				answered++
			}
		}
	}
	return answered, gaveUp
}

// tries returns a function that turns all lines away from one try until another.
func tries(from, until int) func(int, string) bool {
	n := 0
	return func(int, string) bool {
		n++
		return n > from && n <= until
	}
}

func TestShedsAreBoundedForTheLineAtFaultOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	type shedBy func(slot int, runner string) bool
	of := func(line int) shedBy { return func(slot int, _ string) bool { return slot == line } }
	for name, c := range map[string]struct {
		lines  int
		how    Finished
		sheds  shedBy
		gaveUp int
	}{
		"a line that all shed":         {500, byShedding, of(7), 1},
		"the last line, that all shed": {500, byShedding, of(499), 1},
		"three lines that all shed": {500, byShedding, func(slot int, _ string) bool {
			return slot%200 == 7
		}, 3},
		"a line that all shed, between few others": {4, byShedding, of(2), 1},
		"a pool that sheds four of five": {5000, byShedding, func(int, string) bool {
			return random.IntN(5) < 4
		}, 0},
		"a runner that sheds all lines": {5000, byShedding, func(_ int, r string) bool {
			return r == "r2"
		}, 0},
		"a pool that sheds two of five": {20_000, byShedding, func(int, string) bool {
			return random.IntN(5) < 2
		}, 0},
		"a runner that sheds four of five": {5000, byShedding, func(_ int, r string) bool {
			return r == "r2" && random.IntN(5) < 4
		}, 0},
		"a line for which gateways find no engine":         {500, byGateway, of(7), 1},
		"the last line, for which gateways find no engine": {500, byGateway, of(499), 1},
		"gateways that have lost one of three engines": {5000, byGateway, func(int, string) bool {
			return random.IntN(3) == 0
		}, 0},
		"an outage while many lines are left": {500, byShedding, tries(200, 2000), 0},
		"an outage while eight are left":      {500, byShedding, tries(492, 1000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			answered, gaveUp := shedding(t, c.lines, c.how, c.sheds)
			if gaveUp != c.gaveUp || answered != c.lines-c.gaveUp {
				t.Errorf("%d of %d lines were answered and %d given up, want %d", answered,
					c.lines, gaveUp, c.gaveUp)
			}
		})
	}
}

// A pool that sheds everything is an outage, however long.
func TestAnOutageOfShedsGivesUpNoLine(t *testing.T) {
	if answered, gaveUp := shedding(t, 50, byShedding, func(int, string) bool {
		return true
	}); answered+gaveUp > 0 {
		t.Errorf("%d lines were answered and %d given up in an outage", answered, gaveUp)
	}
}
