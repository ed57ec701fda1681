package autoscale

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds of what is believed of saved values.
const (
	maxRate     = 1e9  // requests per second
	maxWork     = 1e18 // milliseconds
	maxReplicas = 1e6
)

// validate reports the first fault. A state is damaged as a whole or not at all.
func (l *PoolLearned) validate() error {
	if l.Age < 0 || l.Age > maxAge {
		return fmt.Errorf("it is %v old, want at most %v", l.Age, maxAge)
	}
	checks := []error{
		l.Traffic.validate(),
		inRange("starts", l.Starts, 0, maxAge.Seconds(), maxLearned),
		inRange("harvest.share", []float64{l.Harvest.Share}, 0, maxMeasured, 1),
		inRange("harvest", []float64{l.Harvest.Achieved, l.Harvest.Predicted, l.Harvest.Harvested,
			l.Harvest.Waiting}, 0, maxWork, 4),
		short("pending", len(l.Pending), maxLearned), short("wanted", len(l.Wanted), maxLearned),
		short("infeasible", len(l.Infeasible), maxLearned),
		short("harvest.misses", len(l.Harvest.Misses), len(missAhead)),
		ago("since", l.Since), ago("reduced", l.Reduced),
	}
	for _, ratios := range l.Harvest.Misses {
		checks = append(checks, inRange("harvest.misses", ratios, -maxMiss, maxMiss, missesKept))
	}
	for _, p := range l.Pending {
		checks = append(checks, ago("pending", &p.Since))
	}
	for i, w := range l.Wanted {
		checks = append(checks, ago("wanted", &w.Ago),
			inRange("wanted", []float64{float64(w.Replicas)}, 0, maxReplicas, 1))
		if i > 0 && (w.Ago > l.Wanted[i-1].Ago || w.Replicas >= l.Wanted[i-1].Replicas) {
			checks = append(checks, errors.New("wanted is not in order"))
		}
	}
	for _, err := range checks {
		if err != nil {
			return fmt.Errorf("it is damaged: %w", err)
		}
	}
	return nil
}

func (l *TrafficLearned) validate() error {
	if n := len(l.Usual); n != 0 && n != slots {
		return fmt.Errorf("traffic.usual has %d values, want %d", n, slots)
	}
	for _, err := range []error{
		inRange("traffic", []float64{l.Level, l.Sum / slot.Seconds()}, 0, maxRate, 2),
		inRange("traffic.seconds", []float64{l.Seconds}, 0, slot.Seconds(), 1),
		inRange("traffic.usual", l.Usual, -1, maxRate, slots),
		inRange("traffic.recent", l.Recent, 0, maxRate, slots),
		inRange("traffic.overruns", l.Overruns, -1, maxRate, slots),
		short("traffic.errors", len(l.Errors), slots),
		predictions("traffic.near", l.Near), predictions("traffic.far", l.Far),
	} {
		if err != nil {
			return err
		}
	}
	for _, e := range l.Errors {
		if err := inRange("traffic.errors", []float64{e.Seasonal, e.Current}, 0, maxRate,
			2); err != nil {
			return err
		}
	}
	return nil
}

func predictions(name string, list []PredictionLearned) error {
	if err := short(name, len(list), 2*compareAhead); err != nil {
		return err
	}
	for i, p := range list {
		if err := inRange(name, []float64{p.Seasonal, p.Current}, 0, maxRate, 2); err != nil {
			return err
		}
		if p.Slot < 0 || p.Slot > compareAhead || i > 0 && p.Slot <= list[i-1].Slot {
			return fmt.Errorf("%s is not in order", name)
		}
	}
	return nil
}

func inRange(name string, list []float64, least, most float64, length int) error {
	if err := short(name, len(list), length); err != nil {
		return err
	}
	for _, x := range list {
		if !(x >= least && x <= most) {
			return fmt.Errorf("%s is %v, want %v to %v", name, x, least, most)
		}
	}
	return nil
}

func short(name string, length, most int) error {
	if length > most {
		return fmt.Errorf("%s has %d values, want at most %d", name, length, most)
	}
	return nil
}

func ago(name string, d *time.Duration) error {
	if d != nil && (*d < 0 || *d > math.MaxInt64/4) {
		return fmt.Errorf("%s was %v ago", name, *d)
	}
	return nil
}
