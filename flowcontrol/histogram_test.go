package flowcontrol

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var infinite = math.Inf(1)

func TestAttained(t *testing.T) {
	some := []Bucket{{1, 10}, {2, 30}, {4, 40}, {infinite, 44}}
	for _, test := range []struct {
		name           string
		buckets        []Bucket
		limit          float64
		requests, late float64
	}{
		{"at an edge", some, 2, 44, 14},
		{"within a bucket", some, 1.5, 44, 34},
		{"just below an edge", some, 3.999, 44, 14},
		{"within the first", some, 0.5, 44, 44},
		{"at the last edge", some, 4, 44, 4},
		{"beyond the edges", some, 100, 44, 4},
		{"at nothing", some, 0, 44, 44},
		{"empty", []Bucket{{1, 0}, {infinite, 0}}, 1, 0, 0},
		{"one bucket", []Bucket{{infinite, 7}}, 1, 7, 7},
		{"counts that shrink", []Bucket{{1, 10}, {2, 9.5}, {infinite, 12}}, 2, 12, 2},
		{"two of one edge", []Bucket{{1, 10}, {1, 10}, {infinite, 12}}, 1, 12, 2},
	} {
		got := Attained(test.buckets, test.limit)
		if got.Requests != test.requests || got.Late != test.late {
			t.Errorf("%s: %+v, want %v requests, %v late", test.name, got, test.requests, test.late)
		}
	}
}

// An estimate spreads observations evenly within the bucket of the limit.
func TestEstimated(t *testing.T) {
	some := []Bucket{{Upper: 1, Count: 10}, {Upper: 2, Count: 30},
		{Upper: math.Inf(1), Count: 34}}
	for _, test := range []struct{ limit, late float64 }{
		{0.5, 29}, {1, 24}, {1.5, 14}, {2, 4}, {5, 4},
	} {
		got := Estimated(some, test.limit)
		if got.Requests != 34 || got.Late != test.late {
			t.Errorf("%v: got %+v, want %v late", test.limit, got, test.late)
		}
	}
}

func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	nan := math.NaN()
	for name, buckets := range map[string][]Bucket{
		"none":          nil,
		"no infinite":   {{1, 10}, {2, 12}},
		"out of order":  {{2, 12}, {1, 10}, {infinite, 12}},
		"no edge":       {{nan, 12}, {infinite, 12}},
		"no count":      {{1, nan}, {infinite, 12}},
		"negative":      {{1, -1}, {infinite, 12}},
		"without bound": {{1, infinite}, {infinite, infinite}},
	} {
		if got := Attained(buckets, 1); !math.IsNaN(got.Requests) || !math.IsNaN(got.Late) {
			t.Errorf("%s: %+v, want unknown", name, got)
		}
	}
	for _, limit := range []float64{nan, -1} {
		if got := Attained([]Bucket{{infinite, 1}}, limit); !math.IsNaN(got.Late) {
			t.Errorf("limit %v: %+v, want unknown", limit, got)
		}
	}
}

// All requests that may be late are, and neither they nor all requests get fewer as more are
// observed.
func TestAttainedIsSafeAndGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := rapid.SliceOfNDistinct(rapid.Float64Range(0, 10), 1, 8, rapid.ID).Draw(t, "edges")
		slices.Sort(edges)
		edges = append(edges, infinite)
		limit := rapid.Float64Range(0, 12).Draw(t, "limit")
		buckets := make([]Bucket, len(edges))
		for i, e := range edges {
			buckets[i].Upper = e
		}
		var last Attainment
		perhaps := 0.0
		for range rapid.IntRange(1, 40).Draw(t, "observations") {
			x := rapid.Float64Range(0, 14).Draw(t, "x")
			for i := range buckets {
				if x <= buckets[i].Upper {
					buckets[i].Count++
				}
			}
			if i, _ := slices.BinarySearch(edges, x); edges[i] > limit || i == len(edges)-1 {
				perhaps++
			}
			got := Attained(buckets, limit)
			if got.Requests != last.Requests+1 || got.Late < last.Late || got.Late != perhaps {
				t.Fatalf("%+v after %+v; %v of them are perhaps late", got, last, perhaps)
			}
			last = got
		}
	})
}
