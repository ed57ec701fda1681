package random

import (
	"math"
	"testing"
	"time"
)

// A day brings the stated number of requests, and its busiest time the stated peak.
func TestDaysHaveTheirMeanAndPeak(t *testing.T) {
	family, err := LookupFamily("days")
	if err != nil {
		t.Fatal(err)
	}
	s := Source{Seed: 1, Family: family, Horizon: time.Hour}
	for number := range 100 {
		d := s.draft(number, 0)
		in := d.scenario.Interactive
		mean, peak := in.Rate, in.Rate
		for _, surge := range in.Surges {
			more := in.Rate * (surge.Factor - 1)
			mean += more * surge.For.Hours()
			peak += more
		}
		if math.Abs(mean/d.rate-1) > 0.02 || math.Abs(peak/d.rate/d.peak-1) > 0.02 {
			t.Errorf("day %d: %.3f requests a second and a peak of %.3f, want %.3f and %.3f",
				number, mean, peak/mean, d.rate, d.peak)
		}
	}
}
