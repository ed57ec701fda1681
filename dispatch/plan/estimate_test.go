package plan

import (
	"math"
	"testing"
)

func TestOutputMean(t *testing.T) {
	var o *outputMean
	for _, test := range []struct {
		limit int
		want  float64
	}{{0, 256}, {1000, 256}, {16, 16}} {
		if got := o.expect(256, test.limit); got != test.want {
			t.Errorf("nothing seen, limit %d: %v, want %v", test.limit, got, test.want)
		}
	}
	o = &outputMean{}
	for _, tokens := range []int{10, 20, 60} {
		o.learn(tokens)
	}
	if got := o.expect(256, 0); math.Abs(got-30) > 1e-9 {
		t.Errorf("after 10, 20 and 60: %v, want their mean", got)
	}
	if got := o.expect(256, 16); got != 16 {
		t.Errorf("with a limit of 16: %v", got)
	}
}

func TestOutputMeanFollowsChange(t *testing.T) {
	var o outputMean
	for range 10_000 {
		o.learn(1000)
	}
	for range 3 * outputMemory {
		o.learn(100)
	}
	if o.mean > 150 || o.mean < 100 {
		t.Errorf("long after the answers became short, the mean is %v, want nearly 100", o.mean)
	}
}
