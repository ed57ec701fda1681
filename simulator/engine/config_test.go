package engine

import (
	"math"
	"testing"
	"time"
)

func TestLegacyHostCostsMore(t *testing.T) {
	for requests, want := range map[int]float64{0: 7.7, 128: 12.7, 500: 12.7} {
		if got := HostLegacy.extra(requests); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d requests: %v ms, want %v", requests, got, want)
		}
	}
}

func TestServerDelay(t *testing.T) {
	if got, want := ServerDelay(100), 21*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
