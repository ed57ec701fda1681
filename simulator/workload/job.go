package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
