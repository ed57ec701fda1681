package decision

import (
	"math"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// histogramOf returns buckets up to 0.1 s, 0.2 s, 1 s and beyond, with so many requests in each.
func histogramOf(counts ...float64) []flowcontrol.Bucket {
	edges, sum := []float64{0.1, 0.2, 1, math.Inf(1)}, 0.0
	buckets := make([]flowcontrol.Bucket, len(counts))
	for i, n := range counts {
		sum += n
		buckets[i] = flowcontrol.Bucket{Upper: edges[i], Count: sum}
	}
	return buckets
}

// readFirstTokens gives a recorder a reading of a runner, or of a gateway if runner is empty.
func readFirstTokens(r *Recorder, runner string, at time.Time, times []flowcontrol.Bucket) {
	source := flowcontrol.Metrics
	if runner == "" {
		source = flowcontrol.Gateway
	}
	read := flowcontrol.NoReading(source, at)
	read.FirstTokenTimes = times
	r.Step(at, plan.Reading{Runner: runner, Reading: &read}, &plan.Actions{})
}

func near(got Number, want float64) bool { return math.Abs(float64(got)-want) < 0.01 }

func TestFirstTokensAreThoseOfTheLastMinute(t *testing.T) {
	fake := newFake(2)
	fake.terms = append(fake.terms,
		flowcontrol.Term{Name: flowcontrol.TermFirstObjective, Value: 500, Unit: "ms"},
		flowcontrol.Term{Name: flowcontrol.TermSlowdown, Value: 1.25})
	r, h := newRecorder(fake)
	now := start
	readFirstTokens(r, "gpu-0", now, histogramOf(0, 0, 0, 1000)) // long ago: none counts
	for s := 1; s <= 80; s++ {
		now = start.Add(time.Duration(s) * time.Second)
		slow := 5.0
		if s <= 5 { // more than a minute ago at the end
			slow = 500
		}
		readFirstTokens(r, "gpu-0", now,
			histogramOf(float64(5*s), float64(5*s), 0, 1000+slow))
		r.Tick(now)
	}
	d := h.Pools()[0].Last
	first := d.Runners[0].FirstTokens
	if first == nil || first.Source != "metrics" || first.Requests < 600 ||
		first.Requests > 700 || !near(first.Median, 100) || !near(first.P95, 190) {
		t.Fatalf("the first tokens of the runner are %+v", first)
	}
	if d.Runners[1].FirstTokens != nil {
		t.Errorf("a runner that was never read has %+v", d.Runners[1].FirstTokens)
	}
	if *d.FirstTokens != *first || !near(d.FirstObjective, 500) || !near(d.FirstAlone, 152) {
		t.Errorf("the pool has %+v, objective %v, alone %v", d.FirstTokens, d.FirstObjective,
			d.FirstAlone)
	}

	// No request for a minute, and then no reading.
	last := r.inputs["gpu-0"].first.latest.times
	for range 80 {
		now = now.Add(time.Second)
		readFirstTokens(r, "gpu-0", now, last)
	}
	r.Tick(now)
	if d := h.Pools()[0].Last; d.FirstTokens != nil || d.FirstAlone.Known() {
		t.Errorf("without requests the pool has %+v", d.FirstTokens)
	}
	readFirstTokens(r, "gpu-0", now.Add(time.Second), histogramOf(2000, 2000, 2000, 2000))
	r.Tick(now.Add(50 * time.Second))
	if h.Pools()[0].Last.FirstTokens == nil {
		t.Error("first tokens are unknown after 50 s without a reading")
	}
	r.Tick(now.Add(62 * time.Second))
	if got := h.Pools()[0].Last.FirstTokens; got != nil {
		t.Errorf("after more than a minute without a reading the pool has %+v", got)
	}
}

// An engine that restarts begins at zero, and another version of it may have other edges.
func TestFirstTokensAfterARestart(t *testing.T) {
	var f firstTokens
	f.read(start, histogramOf(100, 0, 0, 0))
	f.read(start.Add(time.Second), histogramOf(0, 0, 3, 0))
	f.read(start.Add(2*time.Second), histogramOf(0, 4, 3, 0))
	times, known := f.recent(start.Add(2 * time.Second))
	if !known || times[3].Count != 4 {
		t.Errorf("after a restart there are %v", times)
	}
	other := []flowcontrol.Bucket{{Upper: 5, Count: 9}, {Upper: math.Inf(1), Count: 99}}
	f.read(start.Add(3*time.Second), other)
	if times, _ := f.recent(start.Add(3 * time.Second)); len(times) != 2 || times[1].Count != 0 {
		t.Errorf("with other edges there are %v", times)
	}
}

// A gateway counts interactive requests alone, so what it shows is preferred to engines, also if
// there were none.
func TestFirstTokensOfAGateway(t *testing.T) {
	r, h := newRecorder(newFake(1))
	for s := range 3 {
		now := start.Add(time.Duration(s) * time.Second)
		readFirstTokens(r, "gpu-0", now, histogramOf(0, 0, float64(100*s), 0))
		readFirstTokens(r, "", now, histogramOf(float64(10*s), 0, 0, 0))
		r.Tick(now)
	}
	all := decisionsOf(t, h, Query{})
	if all[0].FirstTokens != nil {
		t.Errorf("before any request the pool has %+v", all[0].FirstTokens)
	}
	got := all[2].FirstTokens
	if got == nil || got.Source != "gateway" || got.Requests != 20 || !near(got.P95, 95) {
		t.Errorf("the pool has %+v", got)
	}
	if all[2].Runners[0].FirstTokens.Requests != 200 {
		t.Errorf("the runner has %+v", all[2].Runners[0].FirstTokens)
	}
}

// With a relative objective first tokens may take so many times as long as without batch work.
func TestARelativeObjectiveOfFirstTokens(t *testing.T) {
	fake := newFake(1)
	fake.terms = append(fake.terms, flowcontrol.Term{Name: flowcontrol.TermFirstObjective},
		flowcontrol.Term{Name: flowcontrol.TermSlowdown, Value: 1.9},
		flowcontrol.Term{Name: flowcontrol.TermSlowdownAllowed, Value: 1.15})
	r, h := newRecorder(fake)
	readFirstTokens(r, "gpu-0", start, histogramOf(0, 0, 0, 0))
	readFirstTokens(r, "gpu-0", start.Add(time.Second), histogramOf(0, 10, 0, 0))
	r.Tick(start.Add(time.Second))
	d := h.Pools()[0].Last
	if !near(d.FirstAlone, 195/1.9) || !near(d.FirstObjective, 195/1.9*1.15) {
		t.Errorf("%v without batch work, objective %v", d.FirstAlone, d.FirstObjective)
	}
}

func TestHistogramsWithOtherEdgesAreAdded(t *testing.T) {
	other := []flowcontrol.Bucket{{Upper: 0.2, Count: 10}, {Upper: 2, Count: 20},
		{Upper: math.Inf(1), Count: 30}}
	got := sum([][]flowcontrol.Bucket{histogramOf(1, 1, 1, 1), histogramOf(1, 0, 0, 0), other})
	// Of the other, half of the first bucket, and four ninths of what is up to 2 s.
	for i, want := range []float64{2 + 5, 3 + 10, 4 + 10 + 10*0.8/1.8, 5 + 30} {
		if math.Abs(got[i].Count-want) > 1e-9 {
			t.Errorf("bucket %d has %v, want %v", i, got[i].Count, want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	for _, test := range []struct {
		times []flowcontrol.Bucket
		share float64
		want  float64
	}{
		{histogramOf(10, 0, 0, 0), 0.5, 50},
		{histogramOf(0, 0, 10, 0), 0.5, 600},
		{histogramOf(1, 0, 1, 0), 0.5, 100}, // and not the beginning of the next one
		{histogramOf(0, 0, 0, 10), 0.5, 1000},
		{histogramOf(0, 0, 0, 0), 0.5, math.NaN()},
		{nil, 0.5, math.NaN()},
	} {
		got := quantile(test.times, test.share)
		if got.Known() != !math.IsNaN(test.want) || got.Known() && !near(got, test.want) {
			t.Errorf("%v of %v is %v, want %v", test.share, test.times, got, test.want)
		}
	}
}

// A source that is read often, or has many buckets, takes no more memory.
func TestMarksAreBounded(t *testing.T) {
	var f firstTokens
	for i := range 2000 {
		f.read(start.Add(time.Duration(i)*250*time.Millisecond), histogramOf(float64(i), 0, 0, 0))
		if len(f.marks) > 8 || cap(f.marks) > 16 {
			t.Fatalf("%d marks are kept, room for %d", len(f.marks), cap(f.marks))
		}
	}
	var g firstTokens
	g.read(start, make([]flowcontrol.Bucket, maxBuckets+1))
	if len(g.marks) > 0 {
		t.Error("a histogram with too many buckets is kept")
	}
	// One that is read seldom shows what has come since the reading before.
	var h firstTokens
	h.read(start, histogramOf(1, 0, 0, 0))
	h.read(start.Add(2*time.Minute), histogramOf(3, 0, 0, 0))
	if times, known := h.recent(start.Add(2 * time.Minute)); !known || times[3].Count != 2 {
		t.Errorf("after two minutes there are %v", times)
	}
}
