package live

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// levels are as many lines in flight for some seconds.
type levels struct {
	seconds int
	lines   float64
}

// traceOf has a level each second.
func traceOf(lines ...levels) Trace {
	t := Trace{}
	for _, l := range lines {
		for range l.seconds {
			t.Levels = append(t.Levels, Level{t.End, l.lines})
			t.End += time.Second
		}
	}
	return t
}

func TestRecoveryIsWhenLinesAreBack(t *testing.T) {
	minute := func(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }
	absent := Fault{"gateway absent", minute(3), minute(4)}
	for name, c := range map[string]struct {
		run      Trace
		faults   []Fault
		recovery float64 // of the first fault; NaN: none
		before   float64
		fewest   float64
		awaited  float64
	}{
		"it never fell": {traceOf(levels{420, 40}), []Fault{absent}, 0, 40, 40, 180},
		"it came back after half a minute": {
			traceOf(levels{180, 40}, levels{90, 4}, levels{150, 40}), []Fault{absent},
			// Two of ten seconds with 4 lines have a mean of 32.8.
			28, 40, 4, 180},
		"it came back to less than four fifths": {
			traceOf(levels{180, 40}, levels{60, 4}, levels{180, 31}), []Fault{absent},
			math.NaN(), 40, 4, 180},
		"a spike is no recovery": {
			traceOf(levels{180, 40}, levels{60, 0}, levels{3, 60}, levels{177, 0}),
			[]Fault{absent}, math.NaN(), 40, 0, 180},
		"the next fault comes first": {
			traceOf(levels{180, 40}, levels{90, 4}, levels{150, 40}),
			[]Fault{absent, {"a reset", minute(4.25), minute(4.25)}}, math.NaN(), 40, 4, 15},
		"there were none before": {traceOf(levels{240, 0}, levels{180, 40}), []Fault{absent},
			math.NaN(), 0, 0, 180},
		"the daemon was gone": {
			Trace{End: minute(7), Levels: slices.DeleteFunc(
				traceOf(levels{240, 40}, levels{20, 0}, levels{160, 40}).Levels,
				func(l Level) bool { return l.At >= minute(4) && l.At < minute(4)+5*time.Second })},
			[]Fault{{"daemon killed", minute(4), minute(4)}}, 18, 40, 0, 180},
	} {
		r := Recoveries(c.faults, c.run, Trace{})[0]
		if r.Before != c.before || r.Fewest != c.fewest || r.Awaited != c.awaited {
			t.Errorf("%s: %+v", name, r)
		}
		switch {
		case r.Seconds == nil != math.IsNaN(c.recovery):
			t.Errorf("%s: recovery %v, want %v", name, r.Text(), c.recovery)
		case r.Seconds != nil && *r.Seconds != c.recovery:
			t.Errorf("%s: recovery %v, want %v s", name, r.Text(), c.recovery)
		}
	}
}

// The two minutes before a fault may hold another one, whose time says nothing.
func TestLinesBeforeAFaultLeaveOutOtherFaults(t *testing.T) {
	run := traceOf(levels{180, 40}, levels{60, 2}, levels{30, 20}, levels{150, 20})
	second := Fault{"reset", 270 * time.Second, 270 * time.Second}
	r := Recoveries([]Fault{{"absent", 180 * time.Second, 240 * time.Second}, second}, run,
		Trace{})[1]
	if want := (30*40 + 30*20) / 60.0; r.Before != want {
		t.Errorf("%v lines before, want %v", r.Before, want)
	}
}

func TestLossOfAFaultIsAgainstTheRunWithoutBatchWork(t *testing.T) {
	run := traceOf(levels{180, 40}, levels{90, 0}, levels{150, 40})
	alone := Trace{End: run.End}
	for at := time.Duration(0); at < run.End; at += 2 * time.Second {
		late := at == 200*time.Second
		alone.Arrivals = append(alone.Arrivals, Arrival{at, late})
		run.Arrivals = append(run.Arrivals, Arrival{at, late || at >= 236*time.Second &&
			at < 250*time.Second || at > 300*time.Second})
	}
	r := Recoveries([]Fault{{"slow", 3 * time.Minute, 4 * time.Minute}}, run, alone)[0]
	// Two of the thirty requests during it are late because of batch work; five of the fourteen
	// until the recovery after 28 s are.
	if r.During.Requests != 30 || math.Abs(r.During.Points-100*2/30.0) > 1e-9 ||
		r.After.Requests != 14 || math.Abs(r.After.Points-100*5/14.0) > 1e-9 {
		t.Errorf("%+v", r)
	}
}

func TestFaultsOfAScenarioAreInOrder(t *testing.T) {
	s := scenario.Scenario{Horizon: 10 * time.Minute,
		Faults: []scenario.Fault{{At: 4 * time.Minute, Kind: scenario.Slow, Factor: 1.8,
			Replicas: []int{2}, For: time.Minute}, {At: 6 * time.Minute, Kind: scenario.Restart}},
		Metrics: scenario.Metrics{Faults: []scenario.MetricsFault{
			{Kind: scenario.Reset, Source: scenario.GatewaySource, From: 3 * time.Minute},
			{Kind: scenario.Absent, From: time.Minute, To: 2 * time.Minute}}},
	}
	s.Interactive.Surges = []scenario.Surge{{At: 9 * time.Minute, For: 2 * time.Minute, Factor: 3}}
	want := []Fault{
		{"all metrics absent", time.Minute, 2 * time.Minute},
		{"gateway reset", 3 * time.Minute, 3 * time.Minute},
		{"slow of runners [2], 1.8 times", 4 * time.Minute, 5 * time.Minute},
		{"daemon killed", 6 * time.Minute, 6 * time.Minute},
		{"3 times the users", 9 * time.Minute, 10 * time.Minute},
	}
	if got := Faults(s); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
