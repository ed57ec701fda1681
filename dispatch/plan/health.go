package plan

import (
	"math/bits"
	"slices"
	"time"
)

// A runner that answers quickly and wrongly always has a free slot, so without the rules below it
// would get all lines and all of their attempts:
//
//   - A line that a runner has failed goes to another one, while there is one.
//   - An attempt is charged only if the runner answers other lines well (see judge). Otherwise the
//     runner is the likely cause, and the line waits, for minutes in the end.
//   - A runner that fails nearly all lines is opened by its breaker (see suspected), and closed
//     again when it answers one well.
//
// So a batch whose lines nearly all fail, while nothing shows that they are at fault, waits.

const (
	// judgedAnswers is the number of last answers by which a runner is judged.
	judgedAnswers = 40
	// suspectAfter is the number of answers from which on a runner is suspected. It is also the
	// number of the last answers of which a good one shows that a runner works.
	suspectAfter = 10
	// failingShare of the last answers are bad on a runner that fails nearly all lines.
	failingShare = 0.9
	// fewFailed is the number of lines that a runner fails one after the other from which on it is
	// the probable cause: fewer may be at fault themselves.
	fewFailed = 3
	// recently is the time for which a good answer shows that a runner works.
	recently = time.Minute
	// maxBlamed limits the answers of a line that are the operator's fault, such as 403, while the
	// runner answers other lines well. After these the line is the probable cause.
	maxBlamed = 6
	// patience is the time after which an attempt is charged though nothing shows whether the
	// runner or the line is at fault, if most lines of the job are answered well. The last lines of
	// a job that are at fault themselves have no others to compare with.
	patience = 6 * time.Minute
	// manySheds is the number of pauses of a line after which it goes to another runner than the
	// one that has shed it.
	manySheds = 4
	// longerPauses is the factor by which pauses may exceed those after which an attempt is
	// charged, or those of a runner that can't be reached, where the runner is the likely cause.
	longerPauses = 4
	// longerProbes is the factor by which pauses between trials of a failing runner may exceed
	// those of one that can't be reached: each trial costs its engine an answer.
	longerProbes = 8
)

// lastAnswers are those of a runner to lines that it might have answered well. A line that it has
// failed before, or another one that worked, counts only as a trial: it may be at fault itself.
type lastAnswers struct {
	bad  uint64 // a bit for each of the last n, the newest lowest; 1: it was bad
	n    int    // at most judgedAnswers
	well uint64 // greatest number of a Start that was answered well
	// wellAt is the time of the last good answer. failed are the jobs of which a line was answered
	// badly since a line that was sent after them was answered well, lines the first of these.
	wellAt time.Time
	failed []*job
	lines  []failedLine
	first  uint64        // number of the Start of the first of them
	last   RunnerFailure // bad answer
}

// failedLine identifies a line that was answered badly.
type failedLine struct {
	job *job
	at  lineAt
}

func (a *lastAnswers) add(bad uint64) {
	a.bad = (a.bad<<1 | bad) & (1<<judgedAnswers - 1)
	a.n = min(a.n+1, judgedAnswers)
}

// counts returns the number of the last answers that were bad, and their number in all.
func (a *lastAnswers) counts() (bad, of int) { return bits.OnesCount64(a.bad), a.n }

// working reports whether one of the last answers was good.
func (a *lastAnswers) working() bool {
	n := min(a.n, suspectAfter)
	return bits.OnesCount64(a.bad&(1<<n-1)) < n
}

// maxFailedJobs limits lastAnswers.failed.
const maxFailedJobs = 64

// count counts a bad answer.
func (a *lastAnswers) count(f *Finished) {
	j, t := f.Start.job, f.Start.line.trouble
	if l := f.Start.failedLine(); len(a.lines) < fewFailed && !slices.Contains(a.lines, l) {
		if len(a.lines) == 0 {
			a.first = f.Start.number
		}
		a.lines = append(a.lines, l)
	}
	if f.Start.trial > 0 || t == nil || !t.proven && !t.has(f.Start.runner) {
		a.add(1)
	}
	a.last = RunnerFailure{f.Outcome, f.Status}
	if len(a.failed) < maxFailedJobs && !slices.Contains(a.failed, j) {
		a.failed = append(a.failed, j)
	}
}

func (s *Start) failedLine() failedLine {
	return failedLine{s.job, lineAt{s.line.chunk, s.line.slot}}
}

// few reports whether the runner has worked a moment ago, and has failed no more than some lines
// since, that of the Start included. Any number of lines may fail that have failed while it worked:
// those that are at fault are the last ones of their job, with no others to compare with.
func (a *lastAnswers) few(now time.Time, s *Start) bool {
	n := len(a.lines)
	if !slices.Contains(a.lines, s.failedLine()) {
		n++
	}
	return a.working() && (n < fewFailed || s.line.trouble.proven) &&
		now.Sub(a.wellAt) <= recently
}

// runnerLife is a runner from its coming to its going.
type runnerLife struct {
	runner *runner
	life   uint32
}

// has reports whether the runner has failed the line.
func (t *trouble) has(r *runner) bool {
	return t != nil && slices.Contains(t.on, runnerLife{r, r.life})
}

// trouble is what a line without a result has met. Few lines have one.
type trouble struct {
	on      []runnerLife // that have failed the line
	number  uint64       // of the Start that failed last
	charged time.Time    // of the last attempt that was charged, or of the first failure
	blamed  int          // counted answers that are the operator's fault; see maxBlamed
	// proven says that a runner has answered a line well that was sent after this one had failed.
	proven bool
	// missed is the number of Starts before the first answer that the model is unknown; 0: none.
	// misses are those that were counted since then against the line, the last at missedAt.
	missed   uint64
	misses   int
	missedAt time.Time
	// later has the line start after the first ones that are ready: its runner is the likely cause,
	// and lines that have not failed show sooner whether it is.
	later bool
}

// fault says what the cause of an answer is.
type fault uint8

const (
	none     fault = iota // the answer is good, or says nothing
	ofLine                // the line: an attempt is charged
	likely                // the line, since hardly any other fails: one is charged, after longer
	untested              // the line, unless another runner takes it: this one has answered none
	ofModel               // the runner, for all lines of the job
	doubtful              // probably the runner
	ofRunner              // certainly the runner, or its operator
)

// judge finds the cause of an answer, and counts it for or against its runner. The runner is the
// probable cause of a bad answer unless it answers other lines well: one of the last and, if the
// line has failed before, one that was sent later than that, or all but few. One that was sent
// before shows nothing of a runner that has turned bad since. A refusal (400) counts against a
// runner only if another one has answered lines of the job well meanwhile.
func (p *Planner) judge(now time.Time, f *Finished) fault {
	s := &f.Start
	j, r, t := s.job, s.runner, s.line.trouble
	if f.Unsent || r.pool == nil || s.life != r.life {
		return none
	}
	a := &r.answers
	working := a.working()
	works, few := working, false
	switch {
	case t == nil:
	case a.well > t.number:
		t.proven = true
	default:
		few = a.few(now, s)
		works = few
	}
	switch f.Outcome {
	case Succeeded, CheckFailed:
		j.wells++
		j.wellOn = r
		j.well = max(j.well, s.number)
		j.known(s)
		a.well = max(a.well, s.number)
		if a.wellAt = now; s.number > a.first {
			a.failed, a.lines = nil, nil
		}
		a.add(0)
		return none
	case Refused:
		elsewhere := j.wellOn != nil && j.wellOn != r
		if f.Foreign || elsewhere {
			a.count(f)
		}
		switch {
		case working:
			return ofLine
		case f.Foreign:
			return ofRunner
		case elsewhere:
			return doubtful
		}
		return untested
	case Failed:
		a.count(f)
		switch {
		case few:
			return likely
		case works:
			return ofLine
		}
		return doubtful
	case Denied, Garbled:
		if f.Unknown {
			p.missed(now, f)
			return ofModel
		}
		a.count(f)
		if t != nil && works && f.mayBeOfLine() {
			t.blamed++
		}
		return ofRunner
	default:
		return none
	}
}

// mayBeOfLine reports whether an answer that is the operator's fault may be that of the line after
// all: some servers answer 403 to what a line says, or garbage to what it asks for.
func (f *Finished) mayBeOfLine() bool {
	return f.Status != 401 && f.Status != 407 // as HTTP says that who asks is unknown
}

// suspected reports whether a runner fails nearly all lines while the others of its pool answer
// most of theirs well, or fails all while no other answers. At most half of the runners of a pool
// are opened because they differ from the others.
func (p *pool) suspected(r *runner) bool {
	bad, of := r.answers.counts()
	if of < suspectAfter || float64(bad) < failingShare*float64(of) {
		return false
	}
	good, judged, suspects := 0, 0, 1
	for _, x := range p.runners {
		switch {
		case x == r:
		case !x.breaker.open:
			xBad, xOf := x.answers.counts()
			good, judged = good+xOf-xBad, judged+xOf
		case x.breaker.why == suspicion:
			suspects++
		}
	}
	if 2*good <= judged {
		return bad == of
	}
	return 2*suspects <= len(p.runners)
}

// failedOn notes that a runner has failed the line of a Start.
func (p *Planner) failedOn(now time.Time, s *Start, l *line) *trouble {
	r, t := s.runner, p.troubleOf(now, s.job, l)
	t.number = s.number
	if failed := (runnerLife{r, s.life}); !slices.Contains(t.on, failed) {
		t.on = append(t.on, failed)
	}
	return t
}

// troubleOf returns the trouble of a line, which it has from now on if it had none.
func (p *Planner) troubleOf(now time.Time, j *job, l *line) *trouble {
	if l.trouble == nil {
		l.trouble = &trouble{charged: now}
		j.troubled++
	}
	return l.trouble
}

// overdue reports whether an attempt is to be charged for a line though its runner may be at fault.
func (t *trouble) overdue(now time.Time, j *job) bool {
	return j.wells >= j.troubled && now.Sub(t.charged) >= patience
}

// elsewhere reports whether a runner that has not failed the line may take it, now or when others
// of its lines have ended.
func (p *Planner) elsewhere(l *line, j *job) bool {
	for _, pool := range j.pools {
		if pool.closed || pool.instead != "" {
			continue
		}
		for _, x := range pool.runners {
			if x.takes() && x.granted.Lines > 0 && j.absent(x) == nil && !l.trouble.has(x) {
				return true
			}
		}
	}
	return false
}

// takes reports whether lines may start on the runner, as far as its allowance permits.
func (r *runner) takes() bool {
	return !r.breaker.open && r.stop == Flowing && !r.draining && r.pausedUntil.IsZero()
}

// avoids reports whether the line waits for another runner than this one.
func (p *Planner) avoids(l *line, r *runner, j *job) bool {
	return l.trouble != nil && l.trouble.has(r) && p.elsewhere(l, j)
}

// freeFor returns the runner with the most free slots of those that have not failed the line, and
// may know the model; nil: there is none now.
func (p *pool) freeFor(now time.Time, j *job, t *trouble) *runner {
	var best *runner
	most := 0
	for _, r := range p.runners {
		if free := r.free(now); free > most && !r.failing() &&
			!j.shuns(now, r) && !t.has(r) {
			best, most = r, free
		}
	}
	return best
}

const (
	// maxAside limits the lines aside of a job, and the jobs of a pool, that are looked at for one
	// slot.
	maxAside = 32
	// trialDraws is the number of lines from which the one for a trial is drawn.
	trialDraws = 4
)

// take removes from a job the line that starts next and returns the runner where: r, or another
// with a free slot if r has failed the line or does not know the model. Lines that wait for a slot
// elsewhere are put aside. ok is false if no line of the job can start now.
func (p *Planner) take(now time.Time, pool *pool, r *runner, j *job) (l line, on *runner, ok bool) {
	switch shuns := j.shuns(now, r); {
	case r.failing() && !shuns:
		l, ok = p.takeTrial(r, j)
		return l, r, ok
	case shuns:
		if r = pool.freeFor(now, j, nil); r == nil {
			return line{}, nil, false
		}
	}
	for i := range min(len(j.aside), maxAside) {
		l := j.aside[i]
		on := r
		if p.avoids(&l, r, j) {
			on = pool.freeFor(now, j, l.trouble)
		}
		if on != nil {
			j.aside = slices.Delete(j.aside, i, i+1)
			return l, on, true
		}
	}
	for j.ready.len() > 0 {
		l := j.ready.pop()
		if l.trouble == nil || !p.avoids(&l, r, j) {
			return l, r, true
		}
		if on := pool.freeFor(now, j, l.trouble); on != nil {
			return l, on, true
		}
		j.aside = append(j.aside, l)
	}
	return line{}, nil, false
}

// takeTrial removes the line for a trial of a failing runner, drawn from all that are ready: if
// some of the lines are at fault, those that follow each other are alike. One that has not failed
// yet is preferred, so that lines are not used up one after the other.
func (p *Planner) takeTrial(r *runner, j *job) (l line, ok bool) {
	n := j.ready.len()
	for draw := range min(n, trialDraws) {
		at := 0
		if draw > 0 {
			at = int(p.random.Float64() * float64(n))
		}
		if j.ready.at(at).trouble == nil {
			return j.ready.take(at), true
		}
	}
	for at := range n {
		if l := j.ready.at(at); !p.avoids(&l, r, j) {
			return j.ready.take(at), true
		}
	}
	for at, l := range j.aside {
		if !p.avoids(&l, r, j) {
			j.aside = slices.Delete(j.aside, at, at+1)
			return l, true
		}
	}
	return line{}, false
}

// next takes the line that starts next on a runner with a free slot, or on another one. A trial of
// a failing runner is a line of a job of which it has failed none, if there is one. Jobs that may
// not be used are passed over.
func (p *Planner) next(
	now time.Time, pool *pool, r *runner, may func(*job) bool,
) (j *job, l line, on *runner, ok bool) {
	var parked []string
	var failed []*job
	shunned := 0
	for len(parked)-shunned < maxAside {
		id, offered := pool.starts.Next(now)
		if !offered {
			break
		}
		j = p.jobs[id]
		switch usable := may(j); {
		case usable && r.failing() && slices.Contains(r.answers.failed, j):
			failed = append(failed, j)
		case usable:
			l, on, ok = p.take(now, pool, r, j)
		}
		if ok {
			break
		}
		if j.shuns(now, r) {
			shunned++
		}
		pool.starts.Park(id)
		parked = append(parked, id)
	}
	for _, id := range parked {
		pool.starts.Unpark(id)
	}
	for len(failed) > 0 && !ok {
		j, failed = failed[0], failed[1:]
		l, on, ok = p.take(now, pool, r, j)
	}
	return j, l, on, ok
}

// anyJob is for [Planner.next] where every job may be used.
func anyJob(*job) bool { return true }

// try starts trials on the failing runners of a pool. It returns the number of those that could
// start.
func (p *Planner) try(now time.Time, pool *pool) (slots int) {
	for _, r := range pool.runners {
		if pool.closed || pool.carries() >= pool.ceiling || !r.failing() ||
			r.free(now) <= 0 {
			continue
		}
		slots++
		if j, l, on, ok := p.next(now, pool, r, pool.mayStart(now)); ok {
			p.start(now, pool, on, j, l)
		}
	}
	return slots
}

// failing reports whether lines are only sent to the runner to try whether it answers well again.
func (r *runner) failing() bool { return r.breaker.open && r.breaker.why != unanswered }

// probe lets failing runners be tried at once, because a job has come of which they have failed
// none.
func (p *Planner) probe(now time.Time, j *job) {
	for _, pool := range j.pools {
		for _, r := range pool.runners {
			if r.failing() && r.breaker.until.After(now) {
				r.breaker.until = now
			}
		}
	}
}

// answeredBadly reports whether every runner that takes lines of the job has answered the last ones
// badly.
func (j *job) answeredBadly() bool {
	some := false
	for _, pool := range j.pools {
		for _, r := range pool.runners {
			bad := r.inFlight == 0 && slices.Contains(r.answers.failed, j)
			switch {
			case bad || r.failing() || j.inFlight == 0 && j.absent(r) != nil:
				some = true
			case r.takes():
				return false
			}
		}
	}
	return some
}

// failing returns the first of the runners that answer lines of the job badly, and their number of
// all.
func (j *job) failing() (first RunnerStatus, n, of int) {
	for _, pool := range j.pools {
		of += len(pool.runners)
		for _, r := range pool.runners {
			a := j.absent(r)
			if a == nil && !r.failing() && !slices.Contains(r.answers.failed, j) {
				continue
			}
			if n++; n == 1 {
				first = r.status()
				if first.Failed = r.answers.last; a != nil {
					first.Failed, first.Bad, first.Judged = a.answer, 0, 0
				}
			}
		}
	}
	return first, n, of
}
