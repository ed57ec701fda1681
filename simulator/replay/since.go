package replay

import (
	"maps"
	"slices"

	"github.com/tidefill/tidefill/internal/recording"
)

// Since passes the entries of a recording from a time on, after what was there at that time: the
// runners, and the jobs with the lines that they had left.
type Since struct {
	// From is the time of the first entry that is passed, as Entry.At. 0: all are.
	From float64
	Pass func(recording.Entry)

	passing bool
	runners map[int]recording.Runner
	jobs    map[int]*earlierJob
}

// earlierJob is a job that came before the entries that are passed.
type earlierJob struct {
	recording.Job
	at float64
}

// Restart begins the entries of the daemon's next start.
func (s *Since) Restart() { s.runners, s.jobs = nil, nil }

// Add takes the next entry.
func (s *Since) Add(e recording.Entry) {
	if !s.passing && e.At >= s.From {
		s.passing = true
		s.passState()
	}
	if s.passing {
		s.Pass(e)
		return
	}
	if s.runners == nil {
		s.runners, s.jobs = map[int]recording.Runner{}, map[int]*earlierJob{}
	}
	switch {
	case e.Runner != nil:
		s.runners[e.Runner.ID] = *e.Runner
	case e.Job != nil:
		s.jobs[e.Job.ID] = &earlierJob{*e.Job, e.At}
	case e.Line != nil && e.Line.End == "succeeded":
		if j := s.jobs[e.Line.Job]; j != nil {
			j.Lines--
		}
	}
}

func (s *Since) passState() {
	for _, id := range slices.Sorted(maps.Keys(s.runners)) {
		if r := s.runners[id]; len(r.Models) > 0 {
			s.Pass(recording.Entry{At: s.From, Runner: &r})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		ended := j.Deadline > 0 && j.Deadline <= s.From-j.at
		if j.Lines <= 0 || ended {
			continue
		}
		if j.Deadline > 0 {
			j.Deadline -= s.From - j.at
		}
		s.Pass(recording.Entry{At: s.From, Job: &j.Job})
	}
}
