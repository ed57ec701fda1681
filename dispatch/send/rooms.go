package send

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// Rooms limits the lines in flight of jobs whose answers go to temporary files to those that there
// is space for, so that no answer is computed and then lost. It knows the size of a job's answers
// once one was kept, or was not. Jobs whose answers fit in memory are not limited.
type Rooms struct {
	*work.Session
	spool TempFiles

	mu   sync.Mutex // also held to send limits, so that limits come in their order
	jobs map[plan.JobKey]*largeAnswers
}

// TempFiles makes temporary files, and knows the space for them.
type TempFiles interface {
	Temporary(ctx context.Context) (store.Temporary, error)
	TemporarySpace() (int64, error)
}

// NewRooms returns rooms for the answers of the session's runs.
func NewRooms(s *work.Session, spool TempFiles) *Rooms {
	return &Rooms{Session: s, spool: spool, jobs: map[plan.JobKey]*largeAnswers{}}
}

// largeAnswers is what is known of the answers of a job that go to files.
type largeAnswers struct {
	bytes int64 // of the largest one
	part  bool  // it was not read to its end, so it is larger than bytes
	room  plan.Room
}

// amplyRoom is the number of lines in flight from which on a job needs no limit.
const amplyRoom = 4096

// Run adapts the limits to the space until ctx is done.
func (rs *Rooms) Run(ctx context.Context) {
	tick := time.NewTicker(work.RetryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			rs.adapt(ctx)
		}
	}
}

// kept notes the size of an answer that is in a file.
func (rs *Rooms) kept(key plan.JobKey, bytes int64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if j := rs.job(key); bytes >= j.bytes {
		j.bytes, j.part = bytes, false
	}
}

// notKept stops the lines of a job, an answer of which found no space, until adapt finds some.
func (rs *Rooms) notKept(key plan.JobKey, err *openai.NotKept) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	j := rs.job(key)
	if err.Bytes >= j.bytes {
		j.bytes, j.part = err.Bytes, !err.Whole
	}
	rs.limit(key, j, plan.Room{Key: key, Reason: work.ReasonOf(err)}, err)
}

// job returns what is known of a job. mu is held.
func (rs *Rooms) job(key plan.JobKey) *largeAnswers {
	j := rs.jobs[key]
	if j == nil {
		j = &largeAnswers{room: plan.Room{Key: key}}
		rs.jobs[key] = j
	}
	return j
}

// adapt limits all jobs by the present space.
func (rs *Rooms) adapt(ctx context.Context) {
	if !rs.any() {
		return
	}
	space, err := rs.space(ctx) // not under the lock: the disk may hang
	rs.mu.Lock()
	defer rs.mu.Unlock()
	// All jobs get the same space. If that is too little for each of them, the first one whose
	// answers fit gets a line.
	keys, none := slices.SortedFunc(maps.Keys(rs.jobs), compareJobs), true
	lines := make([]int64, len(keys))
	for i, key := range keys {
		lines[i] = rs.jobs[key].fitting(space / int64(len(keys)))
		none = none && lines[i] == 0
	}
	for i, key := range keys {
		if none && rs.jobs[key].fitting(space) > 0 {
			lines[i], none = 1, false
		}
		room := plan.Room{Key: key}
		if lines[i] < amplyRoom {
			room.Lines, room.Reason = int(lines[i]), plan.DiskFull
			if err != nil {
				room.Reason = work.ReasonOf(err)
			}
		}
		rs.limit(key, rs.jobs[key], room, err)
	}
}

// any forgets the jobs of batches that are gone, and reports whether there are others.
func (rs *Rooms) any() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	maps.DeleteFunc(rs.jobs, func(key plan.JobKey, _ *largeAnswers) bool {
		return rs.Runs.Get(key.Batch) == nil
	})
	return len(rs.jobs) > 0
}

func compareJobs(a, b plan.JobKey) int {
	return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Model, b.Model))
}

// fitting returns the number of answers that there is space for. Of one that was not read to its
// end, it is one with a quarter more than was read; it shows the size.
func (j *largeAnswers) fitting(space int64) int64 {
	if j.part {
		return min(1, space/(j.bytes+j.bytes/4+1))
	}
	return space / max(1, j.bytes)
}

// space returns the space for temporary files. A file is written, too, since more than bytes may be
// missing.
func (rs *Rooms) space(ctx context.Context) (int64, error) {
	probe, err := rs.spool.Temporary(ctx)
	if err != nil {
		return 0, err
	}
	defer probe.Close()
	if _, err := probe.Write([]byte{0}); err != nil {
		return 0, err
	}
	return rs.spool.TemporarySpace()
}

// limit sends a limit to the planner if it is new, and logs when lines stop and go on. mu is held.
func (rs *Rooms) limit(key plan.JobKey, j *largeAnswers, room plan.Room, err error) {
	if room == j.room {
		return
	}
	was := j.room.Stops()
	j.room = room
	rs.Inbox.Event(room)
	switch {
	case room.Stops() && !was:
		rs.Log.Warn("no space for answers in the temporary directory, starting no more lines of "+
			"the batch until there is some; free space, or enlarge the disk of data",
			"batch_id", key.Batch, "model", key.Model, "answer_bytes", j.bytes, "error", err)
	case was && !room.Stops():
		rs.Log.Info("there is space for answers in the temporary directory, starting lines",
			"batch_id", key.Batch, "model", key.Model, "answer_bytes", j.bytes)
	}
}

// Stopped returns why jobs can't start lines for lack of space; Flowing: none is stopped.
func (rs *Rooms) Stopped() plan.Reason {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	why := plan.Flowing
	for _, j := range rs.jobs {
		if j.room.Stops() {
			why = max(why, j.room.Reason)
		}
	}
	return why
}
