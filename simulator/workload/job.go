package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Job is a batch that a user hands in.
type Job struct {
	Name   string
	At     time.Duration // since the beginning
	Window time.Duration // from then to its deadline; 0 for no deadline
	Lines  int           // Backlog for more than anyone can do
	Kind   Kind

	key    uint64
	shared [][]uint64 // name of the shared prefix, per part of the kind
}

// Backlog is the number of lines of a job that never ends.
const Backlog = math.MaxInt

// Line is what line i asks, from 0. It depends on nothing but the job and i.
func (j *Job) Line(i int) Request {
	rng := rand.New(rand.NewPCG(mix(j.key+uint64(i)), j.key))
	number := choose(rng, len(j.Kind.Parts), func(i int) float64 { return j.Kind.Parts[i].Weight })
	part := j.Kind.Parts[number]
	r := Request{Input: part.Input.draw(rng), Output: part.Output.draw(rng)}
	if segment := int(part.Shared * float64(r.Input)); segment > 0 {
		r.Prefix, r.Segment = j.shared[number], segment
	}
	return r
}

// Deadline is when the job's window ends; false when it has none.
func (j *Job) Deadline() (time.Duration, bool) { return j.At + j.Window, j.Window > 0 }

// prepare gives the job the randomness of its name.
func (j *Job) prepare(seed Seed) {
	j.key = seed.derive("job " + j.Name)
	j.shared = make([][]uint64, len(j.Kind.Parts))
	for i := range j.shared {
		j.shared[i] = []uint64{mix(j.key + uint64(i))}
	}
}

// Jobs gives jobs in order of time, until it says false.
type Jobs interface {
	Next() (*Job, bool)
}

type jobs func() (*Job, bool)

func (f jobs) Next() (*Job, bool) { return f() }

// List checks jobs that are named one by one and gives them in order of time. What
// a job's lines hold depends on the seed and the job's name, so names differ.
func List(seed Seed, list ...Job) (Jobs, error) {
	list = slices.Clone(list)
	names := map[string]bool{}
	for i := range list {
		j := &list[i]
		switch {
		case j.Name == "":
			return nil, fmt.Errorf("job %d has no name", i+1)
		case names[j.Name]:
			return nil, fmt.Errorf("job %q stands twice", j.Name)
		case j.At < 0 || j.Window < 0 || j.At+j.Window < j.At:
			return nil, fmt.Errorf("job %q: at %v with a window of %v: want neither negative",
				j.Name, j.At, j.Window)
		case j.Lines < 1:
			return nil, fmt.Errorf("job %q: %d lines, want at least 1", j.Name, j.Lines)
		}
		if err := j.Kind.Validate(); err != nil {
			return nil, fmt.Errorf("job %q: %w", j.Name, err)
		}
		names[j.Name] = true
		j.prepare(seed)
	}
	slices.SortStableFunc(list, func(a, b Job) int {
		return cmp.Compare(a.At, b.At)
	})
	i := 0
	return jobs(func() (*Job, bool) {
		if i == len(list) {
			return nil, false
		}
		i++
		return &list[i-1], true
	}), nil
}

// JobsUntil ends a stream of jobs with the last before an instant.
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

// MergeJobs joins two streams of jobs in order of time; at the same instant, the
// first goes first.
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

// JobsConfig says what jobs come by themselves.
type JobsConfig struct {
	// PerHour is the mean number of jobs, at times without memory.
	PerHour float64
	// Shape of that rate over time; nil is flat.
	Shape   *Curve
	Kinds   []Choice[Kind]
	Windows []Choice[time.Duration]
	// Lines of a job: log-normal about Median, cut to the bounds.
	Median, Sigma float64
	Least, Most   int
	Seed          Seed
	Name          string // begins the names of the jobs
}

// Choice is one of several, drawn by weight.
type Choice[T any] struct {
	Weight float64
	Value  T
}

// DefaultJobs are jobs as services report them: a quarter generation, a quarter
// scoring, half balanced; a median of 5,000 lines, none above the 50,000 of the
// OpenAI API; six in ten due in a day, the others in 4 hours or in one.
func DefaultJobs(seed Seed, perHour float64) JobsConfig {
	return JobsConfig{
		PerHour: perHour,
		Kinds: []Choice[Kind]{
			{25, Kind{"gen", []Part{generation}}}, {25, Kind{"score", []Part{scoring}}},
			{50, Kind{"bal", []Part{balanced}}},
		},
		Windows: []Choice[time.Duration]{{60, 24 * time.Hour}, {25, 4 * time.Hour},
			{15, time.Hour}},
		Median: 5000, Sigma: 1.5, Least: 1, Most: 50_000,
		Seed: seed, Name: "job",
	}
}

// Generate gives jobs without end.
func Generate(cfg JobsConfig) (Jobs, error) {
	if cfg.Shape == nil {
		cfg.Shape = Flat()
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("jobs %q: %w", cfg.Name, err)
	}
	clock := &cox{
		rate: func(t time.Duration) float64 { return cfg.PerHour / 3600 * cfg.Shape.At(t) },
		step: time.Minute,
		pace: func() float64 { return 1 },
		rng:  cfg.Seed.Cause("jobs " + cfg.Name + "/arrivals"),
	}
	traits := cfg.Seed.Cause("jobs " + cfg.Name + "/traits")
	size := Length{Median: cfg.Median, Sigma: cfg.Sigma, Max: cfg.Most}
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
			Lines:  max(size.draw(traits), cfg.Least),
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
	if cfg.Least < 1 || cfg.Most < cfg.Least || !(cfg.Median >= 1 && cfg.Median <= maxTokens) ||
		!(cfg.Sigma >= 0 && cfg.Sigma <= 10) {
		return fmt.Errorf(
			"lines about %v with sigma %v from %d to %d: want a median and bounds from 1 on, and a sigma from 0 to 10",
			cfg.Median, cfg.Sigma, cfg.Least, cfg.Most)
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
