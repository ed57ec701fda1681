package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// JobsUntil ends a stream of jobs before the first at or after an instant.
func JobsUntil(s Jobs, end time.Duration) Jobs {
	over := false
	return jobs(func() (*Job, bool) {
		if over {
			return nil, false
		}
		j, ok := s.Next()
		if over = !ok || j.At >= end; over {
			return nil, false
		}
		return j, true
	})
}

// MergeJobs merges two streams of jobs in order of time; at the same instant, a goes first.
func MergeJobs(a, b Jobs) Jobs {
	x, moreX := a.Next()
	y, moreY := b.Next()
	return jobs(func() (j *Job, ok bool) {
		switch {
		case moreX && (!moreY || x.At <= y.At):
			j = x
			x, moreX = a.Next()
		case moreY:
			j = y
			y, moreY = b.Next()
		}
		return j, j != nil
	})
}

// JobsConfig configures a stream of jobs.
type JobsConfig struct {
	// PerHour is the mean number of jobs, a Poisson process.
	PerHour float64
	// Shape of that rate over time; nil is constant.
	Shape   *Curve
	Kinds   []Choice[Kind]
	Windows []Choice[time.Duration]
	// Lines of a job are log-normal about Median, cut to Min and Max.
	Median, Sigma float64
	Min, Max      int
	Seed          Seed
	Name          string // begins the names of the jobs
}

// Choice is one of several values, drawn by weight.
type Choice[T any] struct {
	Weight float64
	Value  T
}

// DefaultJobs returns jobs as services report them: a quarter generation, a quarter scoring, half
// balanced; a median of 5,000 lines, none above the 50,000 of the OpenAI API; six in ten due in a
// day, the others in 4 hours or in one.
func DefaultJobs(seed Seed, perHour float64) JobsConfig {
	return JobsConfig{
		PerHour: perHour,
		Kinds: []Choice[Kind]{
			{25, Kind{"gen", []Part{generation}}}, {25, Kind{"score", []Part{scoring}}},
			{50, Kind{"bal", []Part{balanced}}},
		},
		Windows: []Choice[time.Duration]{{60, 24 * time.Hour}, {25, 4 * time.Hour},
			{15, time.Hour}},
		Median: 5000, Sigma: 1.5, Min: 1, Max: 50_000,
		Seed: seed, Name: "job",
	}
}

// Generate yields jobs without end.
func Generate(cfg JobsConfig) (Jobs, error) {
	if cfg.Shape == nil {
		cfg.Shape = flat()
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("jobs %q: %w", cfg.Name, err)
	}
	clock := &cox{
		rate:       func(t time.Duration) float64 { return cfg.PerHour / 3600 * cfg.Shape.At(t) },
		step:       time.Minute,
		multiplier: func() float64 { return 1 },
		rng:        cfg.Seed.Rand("jobs " + cfg.Name + "/arrivals"),
	}
	traits := cfg.Seed.Rand("jobs " + cfg.Name + "/traits")
	size := Length{Median: cfg.Median, Sigma: cfg.Sigma, Max: cfg.Max}
	number := 0
	return jobs(func() (*Job, bool) {
		at, ok := clock.next()
		if !ok {
			return nil, false
		}
		number++
		j := &Job{
			Name:   cfg.Name + "-" + strconv.Itoa(number),
			At:     at,
			Kind:   draw(traits, cfg.Kinds),
			Window: draw(traits, cfg.Windows),
			Lines:  max(size.draw(traits), cfg.Min),
		}
		j.prepare(cfg.Seed)
		return j, true
	}), nil
}

func draw[T any](rng *rand.Rand, choices []Choice[T]) T {
	return choices[choose(rng, len(choices), func(i int) float64 {
		return choices[i].Weight
	})].Value
}

func (cfg JobsConfig) validate() error {
	if !(cfg.PerHour > 0 && cfg.PerHour <= maxRate) {
		return fmt.Errorf("%v an hour, want a finite number above 0", cfg.PerHour)
	}
	if cfg.Min < 1 || cfg.Max < cfg.Min || !(cfg.Median >= 1 && cfg.Median <= maxTokens) ||
		!(cfg.Sigma >= 0 && cfg.Sigma <= 10) {
		return fmt.Errorf(
			"lines about %v with sigma %v from %d to %d: want a median and bounds from 1 on, and "+
				"a sigma from 0 to 10",
			cfg.Median, cfg.Sigma, cfg.Min, cfg.Max)
	}
	kinds, windows := 0.0, 0.0
	for _, k := range cfg.Kinds {
		if err := k.Value.Validate(); err != nil {
			return err
		}
		if !(k.Weight >= 0 && k.Weight <= maxRate) {
			return fmt.Errorf("kind %q has weight %v, want no negative one", k.Value.Name, k.Weight)
		}
		kinds += k.Weight
	}
	for _, w := range cfg.Windows {
		if w.Value < 0 || !(w.Weight >= 0 && w.Weight <= maxRate) {
			return fmt.Errorf("window of %v with weight %v, want neither negative", w.Value,
				w.Weight)
		}
		windows += w.Weight
	}
	if kinds == 0 || windows == 0 {
		return fmt.Errorf("want at least one kind and one window with a weight")
	}
	return nil
}
