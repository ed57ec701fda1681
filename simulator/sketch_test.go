package simulator

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A sketch gives the same quantiles as a sorted list, to a part in two thousand, however
// the times were split before.
func TestSketchIsAsGoodAsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 1<<44), func(n int64) time.Duration {
			return time.Duration(n)
		}), 1, 200).Draw(t, "times")
		var parts [2]sketch
		for i, x := range times {
			parts[i%2].add(x)
		}
		var all sketch
		all.merge(&parts[0])
		all.merge(&parts[1])
		slices.Sort(times)
		got, want := all.quantiles(), quantiles(times)
		for _, pair := range [][2]float64{{got.P50, want.P50}, {got.P99, want.P99}} {
			if math.Abs(pair[0]-pair[1]) > pair[1]/(1<<(indexBits-1))+1e-9 {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	})
}

func TestSketchIsExactForTheLikeOfOne(t *testing.T) {
	var s sketch
	for range 7 {
		s.add(90_050 * time.Microsecond)
	}
	if got := s.quantiles(); got.P50 != 90.05 || got.P99 != 90.05 {
		t.Errorf("got %+v, want 90.05", got)
	}
	if got := new(sketch).quantiles(); got != (Quantiles{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestBucketsAreInOrder(t *testing.T) {
	last := -1
	for _, x := range []time.Duration{0, 1, 1<<indexBits - 1, 1 << indexBits, 1<<indexBits + 1,
		1<<indexBits + 2, 1 << 20, 1<<20 + 1<<10, 1 << 40} {
		if i := bucketIndex(x); i < last || i > last && i-last > 1<<22 {
			t.Errorf("bucket %d of %d follows %d", i, x, last)
		} else {
			last = i
		}
	}
}
