package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestLateFirstTokensAreAttributed(t *testing.T) {
	before := []flowcontrol.Bucket{{Upper: 1, Count: 100}, {Upper: 2, Count: 100},
		{Upper: 3, Count: 100}, {Upper: math.Inf(1), Count: 100}}
	counted := []flowcontrol.Bucket{{Upper: 1, Count: 150}, {Upper: 2, Count: 160},
		{Upper: 3, Count: 170}, {Upper: math.Inf(1), Count: 180}}
	for _, test := range []struct {
		name          string
		slowdown      float64
		wait          float64 // seconds
		before        []flowcontrol.Bucket
		late, want    float64
		age           time.Duration
		countedIsNone bool
		full          time.Duration // how long before a runner was full; 0: never
	}{
		{name: "no batch work", slowdown: 1, before: before, late: 15, want: 5.25},
		{name: "a little slower", slowdown: 1.1, before: before, late: 8, want: 4.2},
		{name: "a prompt of half a second", slowdown: 1, wait: 0.5, before: before, late: 8,
			want: 5},
		{name: "half as slow again", slowdown: 1.5, before: before, late: 20, want: 15},
		{name: "never more than late", slowdown: 2, before: before, late: 1, want: 1},
		{name: "long ago", slowdown: 2, before: before, late: 15, want: 5.25, age: time.Minute},
		{name: "the first reading", slowdown: 1, late: 20, want: 20},
		{name: "the counters have started again", slowdown: 1, late: 20, want: 20,
			before: []flowcontrol.Bucket{{Upper: 1, Count: 900}, {Upper: 2, Count: 900},
				{Upper: 3, Count: 900}, {Upper: math.Inf(1), Count: 900}}},
		{name: "no histogram", slowdown: 1, late: 20, want: 20, countedIsNone: true},
		{name: "full", slowdown: 1, before: before, late: 15, want: 15, full: 10 * time.Second},
		{name: "full a minute ago", slowdown: 1, before: before, late: 15, want: 5.25,
			full: time.Minute},
	} {
		a := newAttribution()
		a.see(noon, test.slowdown, test.wait)
		if test.full > 0 {
			a.seeFull(noon.Add(test.age - test.full))
		}
		now := counted
		if test.countedIsNone {
			now = nil
		}
		got := a.caused(noon.Add(test.age), test.before, now, 2*time.Second, test.late)
		if math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A burst of users makes many first tokens late by itself. It spends little of the budget.
func TestBurstsOfUsersSpendLittleBudget(t *testing.T) {
	for _, slow := range []bool{false, true} {
		c, _ := newPool(t, func(cfg *flowcontrol.Config) { cfg.SLO.TTFT = 2 * time.Second }, "r")
		c.ownShare.mean = 0.5
		c.attribution.slowdowns.add(noon, 1.02)
		if slow {
			c.attribution.slowdowns.add(noon.Add(3*time.Second), 2)
		}
		for i, late := range []float64{0, 3} {
			at := noon.Add(time.Duration(i+1) * 5 * time.Second)
			r := flowcontrol.NoReading(flowcontrol.Gateway, at)
			r.FirstTokenTimes = []flowcontrol.Bucket{{Upper: 2, Count: float64(100 * i)},
				{Upper: 4, Count: float64(100*i) + late},
				{Upper: math.Inf(1), Count: float64(100*i) + late}}
			r.TTFT = flowcontrol.Attained(r.FirstTokenTimes, 2)
			c.readGateway(at, &r)
		}
		if stops := c.budget.left() < 1; stops != slow {
			t.Errorf("lines twice as slow: %v; %v of the budget is left", slow, c.budget.left())
		}
	}
}

// All late first tokens count while lines run on a runner that is full, for whichever reason, or
// may be because of them.
func TestFullRunnersAreCharged(t *testing.T) {
	until := noon.Add(time.Minute)
	for _, test := range []struct {
		name    string
		lines   int
		context float64
		seen    bool // metrics show the runner
		kv      kvPressure
		slots   slotPressure
		full    bool
	}{
		{"room for all", 2, 0, true, kvPressure{}, slotPressure{}, false},
		{"the KV cache is full", 2, 0, true, kvPressure{until: until}, slotPressure{}, true},
		{"all sequences are taken", 2, 0, true, kvPressure{}, slotPressure{until: until}, true},
		{"that was before", 2, 0, true, kvPressure{until: noon}, slotPressure{until: noon}, false},
		{"without lines", 0, 0, true, kvPressure{until: until}, slotPressure{until: until}, false},
		{"many lines", 50, 50_000, true, kvPressure{}, slotPressure{}, false},
		{"many lines on a runner that nobody sees", 50, 0, false, kvPressure{}, slotPressure{},
			true},
		{"long ones", 2, 50_000, false, kvPressure{}, slotPressure{}, true},
		{"few lines", 2, 0, false, kvPressure{}, slotPressure{}, false},
	} {
		c, r := knownPool(t)
		r.own.lines, r.kvPressure, r.slotPressure = test.lines, test.kv, test.slots
		if r.own.context = test.context; test.seen {
			r.interactive.seenAt = noon
		} else {
			r.interactive = interactive{}
		}
		c.Advance(noon.Add(time.Second))
		if full := !c.attribution.full.IsZero(); full != test.full {
			t.Errorf("%s: full: %v", test.name, full)
		}
	}
}
