package headroom

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

const slotHold = 30 * time.Second

func TestSlotPressure(t *testing.T) {
	under := func(keep int, evict bool) slotPressure {
		return slotPressure{keep: keep, evict: evict, until: noon.Add(slotHold)}
	}
	for _, test := range []struct {
		name             string
		lines            int
		running, waiting float64
		mayEvict         bool
		want             slotPressure
	}{
		{"a line for each that waits", 20, 100, 3, true, under(17, true)},
		{"a line for each part", 20, 100, 2.5, true, under(17, true)},
		{"metrics are a moment old", 20, 97, 3, true, under(17, true)},
		{"more wait than lines run", 20, 100, 50, true, under(0, true)},
		{"evictions have wasted too much", 20, 100, 3, false, under(20, false)},
		{"sequences are free", 20, 96, 3, true, slotPressure{}},
		{"none waits", 20, 100, 0.9, true, slotPressure{}},
		{"no lines", 0, 100, 3, true, slotPressure{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p slotPressure
			p.update(noon, &ownLoad{lines: test.lines}, test.running, 100, test.waiting,
				test.mayEvict, slotHold)
			if p != test.want {
				t.Errorf("%+v, want %+v", p, test.want)
			}
		})
	}
}

// The limit outlasts the pressure, so that no line takes the sequence of a request that comes next.
// Lines are evicted only while requests wait.
func TestSlotPressureHolds(t *testing.T) {
	var p slotPressure
	own := &ownLoad{lines: 20}
	p.update(noon, own, 100, 100, 3, true, slotHold)
	p.update(noon.Add(slotHold), own, 50, 100, 0, true, slotHold)
	if want := (slotPressure{keep: 17, until: noon.Add(slotHold)}); p != want {
		t.Errorf("%+v while it holds, want %+v", p, want)
	}
	p.update(noon.Add(slotHold+1), own, 50, 100, 0, true, slotHold)
	if p != (slotPressure{}) {
		t.Errorf("%+v after %v", p, slotHold)
	}
	p.update(noon, own, 100, 100, 3, true, slotHold)
	p.update(noon.Add(slotHold/2), own, 100, 100, 1, true, slotHold)
	if want := (slotPressure{19, true, noon.Add(slotHold + slotHold/2)}); p != want {
		t.Errorf("%+v when requests wait again, want %+v", p, want)
	}
}

// The allowance obeys the limit until it ends.
func TestSlotPressureRestrictsTheAllowance(t *testing.T) {
	for _, test := range []struct {
		name  string
		evict bool
		after time.Duration
		want  flowcontrol.RunnerAllowance
	}{
		{"requests wait", true, slotHold - 1,
			flowcontrol.RunnerAllowance{Lines: 17, Evict: true, Reason: ReasonSlots}},
		{"requests no longer wait", false, slotHold - 1,
			flowcontrol.RunnerAllowance{Lines: 17, Reason: ReasonSlots}},
		{"it has ended", true, slotHold, flowcontrol.RunnerAllowance{Lines: 50}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runner{slotPressure: slotPressure{17, test.evict, noon.Add(slotHold)}}
			r.own.lines = 20
			g := flowcontrol.RunnerAllowance{Lines: 50}
			if r.restrict(noon.Add(test.after), &g); g != test.want {
				t.Errorf("%+v, want %+v", g, test.want)
			}
		})
	}
	r := runner{slotPressure: slotPressure{17, true, noon.Add(slotHold)}}
	r.own.lines = 20
	g := flowcontrol.RunnerAllowance{Lines: 10, Reason: ReasonKV}
	if r.restrict(noon, &g); g.Lines != 17 || !g.Evict {
		t.Errorf("%+v, want no more evicted than requests wait", g)
	}
	r.slotPressure.evict = false
	g = flowcontrol.RunnerAllowance{Lines: 5, Reason: ReasonKV}
	if r.restrict(noon, &g); g.Lines != 5 || g.Reason != ReasonKV {
		t.Errorf("%+v, want the lower number of lines with its reason", g)
	}
}

// Absent metrics are no sign of a full runner.
func TestSlotPressureNeedsMetrics(t *testing.T) {
	var p slotPressure
	own := &ownLoad{lines: 20}
	p.update(noon, own, math.NaN(), 100, 3, true, slotHold)
	p.update(noon, own, 100, 100, math.NaN(), true, slotHold)
	if p != (slotPressure{}) {
		t.Errorf("%+v without metrics", p)
	}
}

// Metrics of a full runner evict lines.
func TestMetricsShowSlotPressure(t *testing.T) {
	c, r := knownPool(t)
	r.own.lines, r.interactive.seenAt = 20, time.Time{}
	reading := flowcontrol.NoReading(flowcontrol.Metrics, noon)
	reading.Running, reading.Waiting = 100, 2
	c.readMetrics(noon, r, &reading)
	if want := (slotPressure{18, true, noon.Add(c.tuning.Brake.Hold)}); r.slotPressure != want {
		t.Errorf("%+v, want %+v", r.slotPressure, want)
	}
}
