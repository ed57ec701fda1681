package plan

import (
	"slices"
	"time"
)

// Stops reports whether no line may start.
func (r Room) Stops() bool { return r.Reason != Flowing && r.Lines == 0 }

// hasRoom reports whether the answer to another line of the job can be kept.
func (j *job) hasRoom() bool {
	return j.room.Reason == Flowing || j.inFlight < j.room.Lines
}

func (p *Planner) setRoom(now time.Time, ev Room) {
	if j := p.job(ev.Key); j != nil {
		p.limit(j, ev)
		p.offer(now, j)
	}
}

// limit sets the room of a job.
func (p *Planner) limit(j *job, room Room) {
	if j.room.Reason != Flowing {
		p.limited--
	}
	if room.Reason != Flowing {
		p.limited++
	}
	j.room = room
}

// wantsRoom returns why ready lines of the pool do not start, if it is for lack of room alone.
func (p *Planner) wantsRoom(pool *pool) Reason {
	if p.limited == 0 {
		return Flowing
	}
	why := Flowing
	for _, j := range p.jobs {
		if !j.hasRoom() && j.readyLines()+j.retrying > 0 && slices.Contains(j.pools, pool) {
			why = max(why, j.room.Reason) // in whatever order jobs come
		}
	}
	return why
}
