package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Job is a batch that a user submits.
type Job struct {
	Name   string
	Tenant string        // that submits it
	At     time.Duration // since the beginning
	Window time.Duration // from then to its deadline; 0: no deadline
	Lines  int           // Backlog: without end
	Kind   Kind

	key    uint64
	shared [][]uint64 // name of the shared prefix, by part of the kind
}

// Backlog is the number of lines of a job without end.
const Backlog = math.MaxInt

// Line returns line i, from 0. It depends only on the job and i.
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

// Deadline returns when the job's window ends; false: it has none.
func (j *Job) Deadline() (time.Duration, bool) { return j.At + j.Window, j.Window > 0 }

// prepare derives the job's randomness from its name.
func (j *Job) prepare(seed Seed) {
	j.key = seed.derive("job " + j.Name)
	j.shared = make([][]uint64, len(j.Kind.Parts))
	for i := range j.shared {
		j.shared[i] = []uint64{mix(j.key + uint64(i))}
	}
}

// Jobs yields jobs in order of time until Next returns false.
type Jobs interface {
	Next() (*Job, bool)
}

type jobs func() (*Job, bool)

func (f jobs) Next() (*Job, bool) { return f() }

// List validates jobs and yields them in order of time. The content of a job's lines depends on the
// seed and the job's name, so names must differ.
func List(seed Seed, list ...Job) (Jobs, error) {
	list = slices.Clone(list)
	names := map[string]bool{}
	for i := range list {
		j := &list[i]
		switch {
		case j.Name == "":
			return nil, fmt.Errorf("job %d has no name", i+1)
		case names[j.Name]:
			return nil, fmt.Errorf("two jobs are named %q", j.Name)
		case j.At < 0 || j.Window < 0 || j.At+j.Window < j.At:
			return nil, fmt.Errorf("job %q: at %v with a window of %v, want 0 or more",
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
