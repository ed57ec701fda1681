package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Of the bucket that the objective lies in, few first tokens are late where hardly any are later,
// and about half where as many come in each bucket after it.
func TestLatePartOfABucket(t *testing.T) {
	for _, test := range []struct {
		name      string
		counts    []float64 // up to 1, 2 and 4 s, and later
		limit     float64
		from, to  float64
		objection string
	}{
		{"none later", []float64{500, 500, 0, 0}, 1.5, 0, 0.05, "spread evenly"},
		{"a thin tail", []float64{900, 90, 9, 1}, 1.5, 0.2, 0.3, "spread evenly"},
		{"a thick tail", []float64{0, 100, 900, 900}, 1.5, 0.45, 0.55, "not spread evenly"},
		{"at the edge", []float64{500, 500, 10, 0}, 1, 0.99, 1, "not all of the bucket"},
		{"nothing seen", nil, 1.5, 1, 1, "taken to be in time"},
	} {
		var recent recentTimes
		recent.add(noon, times(0, 0, 0, 0), times(test.counts...))
		if test.counts == nil {
			recent = recentTimes{}
		}
		if got := recent.lateInBucket(test.limit); got < test.from || got > test.to {
			t.Errorf("%s: %.3f of the bucket is late, want %v to %v: they are %s", test.name, got,
				test.from, test.to, test.objection)
		}
	}
}

// What was seen fades within half an hour, so a part follows the traffic.
func TestLatePartFades(t *testing.T) {
	var recent recentTimes
	recent.add(noon, times(0, 0, 0, 0), times(0, 100, 900, 900))
	before := recent.lateInBucket(1.5)
	for i := range 12 {
		recent.add(noon.Add(time.Duration(i+1)*shareMemory), times(0, 0, 0, 0),
			times(500, 500, 0, 0))
	}
	if after := recent.lateInBucket(1.5); after > before/4 {
		t.Errorf("%.3f of the bucket is late six hours later, %.3f before", after, before)
	}
}

// The requests in the buckets above the limit's are late, and a part of those in its own.
func TestAttainedByAPart(t *testing.T) {
	for part, want := range map[float64]float64{0: 3, 0.25: 3.5, 1: 5} {
		if got := attained(times(4, 2, 2, 1), 1.5, part); got.Late != want || got.Requests != 9 {
			t.Errorf("part %v: %v late of %v, want %v of 9", part, got.Late, got.Requests, want)
		}
	}
}

// First tokens in the bucket of the objective may be late or not, unless it is one of the edges.
func TestHiddenInABucket(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after []float64 // up to 1, 2 and 4 s, and later
		limit, want   float64
	}{
		{"inside", []float64{1, 2, 3, 4}, []float64{11, 22, 33, 44}, 1.5, 20},
		{"at an edge", []float64{1, 2, 3, 4}, []float64{11, 22, 33, 44}, 2, 0},
		{"the last", []float64{0, 0, 0, 0}, []float64{1, 2, 3, 4}, 9, 4},
		{"started again", []float64{9, 9, 9, 9}, []float64{1, 2, 2, 2}, 1.5, 0},
		{"first reading", nil, []float64{1, 2, 3, 4}, 1.5, 0},
	} {
		var before []flowcontrol.Bucket
		if test.before != nil {
			before = times(test.before...)
		}
		if got := hidden(before, times(test.after...), test.limit); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
