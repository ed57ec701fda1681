package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newPlanner(t failer, cfg Config, deps Deps) *Planner {
	t.Helper()
	p, err := New(cfg, deps)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

// world drives a planner as the dispatcher does, knows what it may do, and checks after every step
// that it did no other.
type world struct {
	t    failer
	cfg  Config
	deps Deps
	now  time.Time

	planner *Planner
	// is told the same and must answer the same, though its maps are iterated in another order
	twin *Planner

	batches  map[string]*fakeBatch
	runners  map[string]*fakeRunner
	claims   []JobKey // not answered
	flights  []*flight
	lines    map[lineID]*fakeLine // of living batches
	wake     time.Time
	hold     Reason
	draining bool
	// the policy is fifo without urgency and all batches are one tenant's: the next job is known
	fifo     bool
	recorded int
}

type lineID struct {
	key         JobKey
	chunk, slot int
}

func (id lineID) String() string {
	return fmt.Sprintf("%s/%s:%d.%d", id.key.Batch, id.key.Model, id.chunk, id.slot)
}

type fakeBatch struct {
	Batch
	unclaimed map[string][]int // by model, the sizes of the chunks
	chunks    int
	gone      bool
}

type fakeRunner struct {
	models []string // nil: gone
	life   int
	// What a breaker should know.
	failures, openings int
	open               bool
	until              time.Time
	trial              *flight
	heldUntil          time.Time // Retry-After
	sheds              int       // since an answer
}

type fakeLine struct {
	flying    bool
	recorded  bool
	tries     int
	notBefore time.Time
	prompt    int
}

type flight struct {
	Start
	twin     Start
	life     int
	prompt   int
	computed bool // a token of it, or of one started there later, has been seen
	evicted  bool
}

func (f *flight) id() lineID { return lineID{f.Key, f.Chunk, f.Slot} }

func newWorld(t failer, cfg Config, sched scheduler.Config, flow flowcontrol.Config) *world {
	deps := func() Deps {
		return Deps{Scheduler: sched, Flow: flow, Random: rand.New(rand.NewPCG(1, 2))}
	}
	return &world{
		t: t, cfg: cfg, deps: deps(), now: noon, planner: newPlanner(t, cfg, deps()),
		twin:    newPlanner(t, cfg, deps()),
		batches: map[string]*fakeBatch{}, runners: map[string]*fakeRunner{},
		lines: map[lineID]*fakeLine{},
	}
}

// step feeds an event and checks what comes of it.
func (w *world) step(ev Event) Verdict {
	w.t.Helper()
	got := w.planner.Step(w.now, ev)
	twinEvent := ev
	switch ev := ev.(type) {
	case *FirstToken:
		copied, f := *ev, w.flight(ev.Start)
		copied.Start = f.twin
		twinEvent = &copied
		if w.runners[f.Runner].models != nil && w.runners[f.Runner].life == f.life {
			w.computed(f)
		}
	case *Finished:
		copied, f := *ev, w.flight(ev.Start)
		copied.Start = f.twin
		twinEvent = &copied
		if ev.Outcome == Succeeded {
			w.computed(f)
		}
		w.flights = slices.DeleteFunc(w.flights, func(x *flight) bool { return x == f })
	}
	twin := w.twin.Step(w.now, twinEvent)
	if diff := cmp.Diff(plain(got), plain(twin)); diff != "" {
		w.t.Fatalf("the same events brought other actions (-one +other):\n%s", diff)
	}
	if f, ok := ev.(*Finished); ok && got.Verdict == Record {
		if line := w.lines[lineID{f.Start.Key, f.Start.Chunk, f.Start.Slot}]; line != nil {
			line.recorded = true
			w.recorded++
		}
	}
	w.evicted(got.Evict)
	w.started(got.Start, twin.Start)
	for _, c := range got.Claim {
		w.claims = append(w.claims, c.Key)
	}
	if !got.Wake.IsZero() && !got.Wake.After(w.now) {
		w.t.Fatalf("after %T: Wake is %v, now is %v already", ev, got.Wake, w.now)
	}
	w.wake = got.Wake
	w.checkAccounts()
	return got.Verdict
}

// plain is what a driver sees of actions.
func plain(a Actions) []string {
	all := []string{fmt.Sprint(a.Verdict, a.Wake.UTC())}
	for _, s := range a.Start {
		all = append(all, fmt.Sprintf("start %v on %s, attempt %d, stream %v",
			lineID{s.Key, s.Chunk, s.Slot}, s.Runner, s.Attempt, s.Stream))
	}
	for _, s := range a.Evict {
		all = append(all, fmt.Sprintf("recall %v from %s", lineID{s.Key, s.Chunk, s.Slot},
			s.Runner))
	}
	for _, c := range a.Claim {
		all = append(all, fmt.Sprint("claim ", c.Key))
	}
	return all
}

// flight finds what a start has become.
func (w *world) flight(s Start) *flight {
	i := slices.IndexFunc(w.flights, func(f *flight) bool {
		return f.id() == lineID{s.Key, s.Chunk, s.Slot}
	})
	return w.flights[i]
}

// computed notes that a line has brought a token: engines compute the prompts of a runner in the
// order of their starts.
func (w *world) computed(f *flight) {
	for _, x := range w.flights {
		if x.Runner == f.Runner && x.number <= f.number {
			x.computed = true
		}
	}
}

// recalled checks that lines under way are recalled once each, the youngest first, as many as are
// too many and no more.
func (w *world) evicted(starts []Start) {
	w.t.Helper()
	for _, s := range starts {
		i := slices.IndexFunc(w.flights, func(f *flight) bool {
			return f.id() == lineID{s.Key, s.Chunk, s.Slot}
		})
		switch {
		case i < 0:
			w.t.Fatalf("%s %d.%d was recalled and is not under way", s.Key, s.Chunk, s.Slot)
		case w.flights[i].evicted:
			w.t.Fatalf("%v was recalled twice", w.flights[i].id())
		case w.flights[i].Runner != s.Runner:
			w.t.Fatalf("%v was recalled from %s, it is on %s", w.flights[i].id(), s.Runner,
				w.flights[i].Runner)
		}
		w.flights[i].evicted = true
		for _, f := range w.flights {
			if f.Runner == s.Runner && f.number > s.number && !f.evicted {
				w.t.Fatalf("%v was recalled before %v, which is younger", w.flights[i].id(), f.id())
			}
		}
	}
	if w.draining {
		return
	}
	for _, id := range sortedKeys(w.runners) {
		if w.runners[id].models == nil {
			continue
		}
		left := 0
		for _, f := range w.flights {
			if f.Runner == id && !f.evicted {
				left++
			}
		}
		granted := w.grantedTo(id)
		recalledHere := slices.ContainsFunc(starts, func(s Start) bool { return s.Runner == id })
		if granted.Evict && left > granted.Lines || recalledHere && left != granted.Lines {
			w.t.Fatalf("%s is left with %d lines, granted %+v", id, left, granted)
		}
	}
}

// started checks the starts of one step one by one, against the state that each one met, and that
// nothing was left undone.
func (w *world) started(starts, twins []Start) {
	w.t.Helper()
	ready := map[JobKey]int{}
	for _, j := range w.planner.byID {
		key := j.key
		ready[key] = j.ready.len()
	}
	for _, s := range starts {
		ready[s.Key]++
	}
	for i, s := range starts {
		f := &flight{Start: s, twin: twins[i]}
		line := w.lines[f.id()]
		streamed := 0
		for _, x := range w.flights {
			if x.Runner == s.Runner && x.Stream {
				streamed++
			}
		}
		b, r := w.batches[s.Key.Batch], w.runners[s.Runner]
		switch {
		case line == nil || b.gone:
			w.t.Fatalf("%v was started, but is none of a living batch's loaded lines", f.id())
		case line.flying || line.recorded:
			w.t.Fatalf("%v was started though it is under way or done", f.id())
		case w.now.Before(line.notBefore):
			w.t.Fatalf("%v was started at %v, its pause ends at %v", f.id(), w.now, line.notBefore)
		case s.Attempt != line.tries+1:
			w.t.Fatalf("%v: attempt %d, want %d", f.id(), s.Attempt, line.tries+1)
		case w.draining || w.hold != Flowing:
			w.t.Fatalf("%v was started in spite of hold %q, draining %v", f.id(), w.hold,
				w.draining)
		case b.Paused:
			w.t.Fatalf("%v was started though its batch is paused", f.id())
		case !slices.Contains(r.models, s.Key.Model):
			w.t.Fatalf("%v was started on %s, which serves %v", f.id(), s.Runner, r.models)
		case s.Stream != (streamed < w.granted(s.Runner).Streams):
			w.t.Fatalf("%v: streamed is %v beside %d others, wished are %d", f.id(), s.Stream,
				streamed, w.granted(s.Runner).Streams)
		case w.prefilling(s.Runner) >= w.grantedTo(s.Runner).Prompt:
			w.t.Fatalf("%v was started on %s, where %d prompt tokens wait already", f.id(),
				s.Runner, w.prefilling(s.Runner))
		case w.room(s.Runner) <= 0:
			w.t.Fatalf("%v was started on %s, which has no room (%d under way, breaker %+v)",
				f.id(), s.Runner, w.carries(s.Runner), *r)
		}
		for _, other := range w.poolMates(s.Runner) {
			here, there := w.roomOnRunner(s.Runner), w.roomOnRunner(other)
			if there > here || there == here && other < s.Runner {
				w.t.Fatalf("%v was started on %s, where %d more fit, instead of %s with %d", f.id(),
					s.Runner, here, other, there)
			}
		}
		could := w.candidates(r.models, ready)
		if !slices.Contains(could, s.Key) {
			w.t.Fatalf("%v was started, only %v may", f.id(), could)
		}
		if w.fifo && could[0] != s.Key {
			w.t.Fatalf("%v was started, the next is %v", f.id(), could[0])
		}
		ready[s.Key]--
		line.flying = true
		f.life, f.prompt = r.life, line.prompt
		if r.open {
			r.trial = f
		}
		w.flights = append(w.flights, f)
	}
	if w.draining || w.hold != Flowing {
		return
	}
	for _, id := range sortedKeys(w.runners) {
		r := w.runners[id]
		if r.models == nil || w.room(id) <= 0 {
			continue
		}
		if could := w.candidates(r.models, ready); len(could) > 0 {
			w.t.Fatalf("%s has room for %d and %v has lines ready, but nothing was started", id,
				w.room(id), could)
		}
	}
}

// candidates lists the jobs that may start a line in a pool, in the order of creation.
func (w *world) candidates(models []string, ready map[JobKey]int) []JobKey {
	var keys []JobKey
	for key, n := range ready {
		b := w.batches[key.Batch]
		if n > 0 && slices.Contains(models, key.Model) && !b.Paused && (b.MaxConcurrency == 0 ||
			w.batchCarries(b.ID) < b.MaxConcurrency) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y JobKey) int {
		if c := w.batches[x.Batch].Created.Compare(w.batches[y.Batch].Created); c != 0 {
			return c
		}
		return slices.Compare([]string{x.Batch, x.Model}, []string{y.Batch, y.Model})
	})
	return keys
}

// room is how many more lines may go to a runner now, its pool's own limit included.
func (w *world) room(runner string) int {
	carried := 0
	for _, mate := range w.poolMates(runner) {
		carried += w.carries(mate)
	}
	return min(w.roomOnRunner(runner), w.granted(runner).Pool-carried)
}

func (w *world) granted(runner string) flowcontrol.Allowance {
	return w.planner.runners[runner].pool.flow.Allowance(w.now)
}

func (w *world) grantedTo(runner string) flowcontrol.RunnerAllowance {
	for _, x := range w.granted(runner).Runners {
		if x.Runner == runner {
			return x
		}
	}
	return flowcontrol.RunnerAllowance{}
}

// prefilling counts the prompt tokens on a runner that are not known to be computed.
func (w *world) prefilling(runner string) (tokens int) {
	for _, f := range w.flights {
		if f.Runner == runner && !f.computed {
			tokens += f.prompt
		}
	}
	return tokens
}

// roomOnRunner is the least of what its controller grants a runner and what its breaker lets
// through.
func (w *world) roomOnRunner(runner string) int {
	r, granted := w.runners[runner], w.grantedTo(runner)
	room := granted.Lines - w.carries(runner)
	switch {
	case w.prefilling(runner) >= granted.Prompt:
		return 0
	case w.now.Before(r.heldUntil):
		return 0
	case r.open && (r.trial != nil || w.now.Before(r.until)):
		return 0
	case r.open:
		return min(room, 1)
	}
	return room
}

func (w *world) carries(runner string) (n int) {
	for _, f := range w.flights {
		if f.Runner == runner {
			n++
		}
	}
	return n
}

func (w *world) batchCarries(batch string) (n int) {
	for _, f := range w.flights {
		if f.Key.Batch == batch {
			n++
		}
	}
	return n
}

// poolMates are the runners that serve the same models, itself included.
func (w *world) poolMates(runner string) (mates []string) {
	for id, r := range w.runners {
		if r.models != nil && slices.Equal(r.models, w.runners[runner].models) {
			mates = append(mates, id)
		}
	}
	slices.Sort(mates)
	return mates
}

// checkAccounts recounts slowly what the planner keeps account of.
func (w *world) checkAccounts() {
	w.t.Helper()
	p := w.planner
	for _, j := range p.byID {
		key := j.key
		waiting, flying, claimed := 0, 0, 0
		for id, line := range w.lines {
			if id.key == key && !line.recorded {
				if line.flying {
					flying++
				} else {
					waiting++
				}
			}
		}
		for _, c := range w.claims {
			if c == key {
				claimed++
			}
		}
		if j.ready.len()+j.retrying != waiting || j.inFlight != flying {
			w.t.Fatalf(
				"%v: %d ready, %d retrying, %d in flight; loaded and not done are %d, under way %d",
				key, j.ready.len(), j.retrying, j.inFlight, waiting, flying)
		}
		if len(j.claims) != claimed || claimed > maxClaims {
			w.t.Fatalf("%v: %d claims, %d of them not answered", key, len(j.claims), claimed)
		}
		expecting := 0
		for _, c := range j.claims {
			expecting += c.lines
		}
		if j.expecting != expecting {
			w.t.Fatalf("%v: expects %d lines, its claims %d", key, j.expecting, expecting)
		}
		if j.batch.inFlight != w.batchCarries(key.Batch) {
			w.t.Fatalf("%s: %d in flight, counted %d", key.Batch, w.batchCarries(key.Batch),
				j.batch.inFlight)
		}
	}
	for _, pool := range p.pools {
		prompt, expected, tokens, inFlight := 0, 0, 0, 0
		for _, j := range p.byID {
			serves := slices.Contains(pool.models, j.key.Model)
			if slices.Contains(j.pools, pool) != serves {
				w.t.Fatalf("job %v in pool %v: %v", j.key, pool.models, !serves)
			}
			for _, c := range j.claims {
				if c.pool == pool {
					expected += c.lines
					tokens += c.tokens
				}
			}
			if serves {
				prompt += j.ready.promptTokens()
			}
		}
		for _, r := range pool.runners {
			inFlight += w.carries(r.id)
			if r.inFlight != w.carries(r.id) {
				w.t.Fatalf("runner %s: %d in flight, counted %d", r.id, w.carries(r.id), r.inFlight)
			}
			if r.lines.prefilling != w.prefilling(r.id) {
				w.t.Fatalf("runner %s: %d prompt tokens wait, counted %d", r.id, w.prefilling(r.id),
					r.lines.prefilling)
			}
		}
		w.checkOrder(pool, pool.starts, func(j *job) bool { return j.inStarts })
		w.checkOrder(pool, pool.loads, func(j *job) bool { return j.inLoads })
		if pool.promptTokens != prompt || pool.expected != expected ||
			pool.expectedTokens != tokens || pool.inFlight != inFlight {
			w.t.Fatalf(
				"pool %v counts %d prompt tokens, %d expected, %d in flight; they are %d, %d, %d",
				pool.models, pool.promptTokens, pool.expected, pool.inFlight, prompt, expected,
				inFlight)
		}
	}
	for _, pool := range w.twin.pools { // a snapshot lets the queue's time go on
		pool.starts.Snapshot(w.now)
		pool.loads.Snapshot(w.now)
	}
	if p.draining || p.hold != Flowing {
		return
	}
	for id, b := range w.batches {
		if _, known := p.Status(w.now, id); known == b.gone && len(b.Models) > 0 {
			w.t.Fatalf("batch %s: known %v, gone %v", id, known, b.gone)
		}
	}
}

// checkOrder compares what a queue knows with what the planner knows.
func (w *world) checkOrder(pool *pool, q *scheduler.Queue, offered func(*job) bool) {
	w.t.Helper()
	known := 0
	for _, standing := range q.Snapshot(w.now) {
		j := w.planner.byID[standing.Job.ID]
		switch {
		case j == nil || !slices.Contains(j.pools, pool):
			w.t.Fatalf("pool %v orders %s, which is not its job", pool.models, standing.Job.ID)
		case standing.Parked == offered(j):
			w.t.Fatalf("pool %v, %v: parked %v, offered %v", pool.models, j.key, standing.Parked,
				offered(j))
		case math.Abs(standing.Job.Work-j.work) > 0.05*standing.Job.Work:
			w.t.Fatalf("%v was ranked with %v of work left, has %v", j.key, standing.Job.Work,
				j.work)
		case j.batch.begun && !standing.Job.StartBy.IsZero():
			w.t.Fatalf("%v is under way and still ranked by when it must start", j.key)
		}
		known++
	}
	for _, j := range w.planner.byID {
		if slices.Contains(j.pools, pool) {
			known--
		}
	}
	if known != 0 {
		w.t.Fatalf("pool %v orders %d jobs too many", pool.models, known)
	}
}

func (w *world) runnerUp(id string, models ...string) {
	slices.Sort(models)
	r := w.runners[id]
	if r == nil {
		r = &fakeRunner{}
		w.runners[id] = r
	}
	if !slices.Equal(r.models, models) {
		// its new pool's controller knows nothing of what it shed before
		r.heldUntil, r.sheds = time.Time{}, 0
	}
	r.models = models
	w.step(RunnerUp{Runner: id, Models: models})
}

func (w *world) runnerGone(id string) {
	w.runners[id] = &fakeRunner{life: w.runners[id].life + 1}
	w.step(RunnerGone{Runner: id})
}

// put announces a new batch, whose chunks have the given sizes.
func (w *world) put(b Batch, chunks map[string][]int) {
	wb := &fakeBatch{Batch: b, unclaimed: chunks}
	w.batches[b.ID] = wb
	for _, model := range sortedKeys(chunks) {
		m := ModelLines{Model: model}
		for _, n := range chunks[model] {
			m.Lines += n
			m.PromptTokens += int64(n) * 100
		}
		b.Models = append(b.Models, m)
	}
	wb.Models = b.Models
	w.step(BatchPut{Batch: b})
}

// change announces a batch's new limits.
func (w *world) change(id string, change func(*Batch)) {
	b := w.batches[id]
	change(&b.Batch)
	put := b.Batch
	put.Models = nil
	w.step(BatchPut{Batch: put})
}

func (w *world) batchGone(id string) {
	w.batches[id].gone = true
	for line := range w.lines {
		if line.key.Batch == id {
			delete(w.lines, line)
		}
	}
	w.step(BatchGone{Batch: id})
}

// firstToken tells that a streamed line has brought its first token.
func (w *world) firstToken(f *flight) {
	w.step(&FirstToken{Start: f.Start, Latency: time.Second})
}

// mood tells all pools that so many requests are running.
func (w *world) mood(running float64) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, w.now)
	r.Running = running
	w.step(Reading{Reading: &r})
}

// load answers a claim with the job's next chunk, or says that there is none (any more).
func (w *world) load(i, prompt int) {
	key := w.claims[i]
	b := w.batches[key.Batch]
	left := b.unclaimed[key.Model]
	if len(left) == 0 {
		w.loadNone(i, false, 0)
		return
	}
	w.claims = slices.Delete(w.claims, i, i+1)
	b.unclaimed[key.Model] = left[1:]
	ev := Loaded{Key: key, Chunk: b.chunks, More: true}
	b.chunks++
	for slot := range left[0] {
		ev.Lines = append(ev.Lines, Line{Slot: slot, PromptTokens: prompt})
		if !b.gone {
			w.lines[lineID{key, ev.Chunk, slot}] = &fakeLine{prompt: prompt}
		}
	}
	w.step(ev)
}

func (w *world) loadNone(i int, more bool, again time.Duration) {
	key := w.claims[i]
	w.claims = slices.Delete(w.claims, i, i+1)
	w.step(Loaded{Key: key, More: more, Wait: again})
}

func (w *world) finish(f *flight, outcome Outcome, status int, retryAfter time.Duration) {
	line, r := w.lines[f.id()], w.runners[f.Runner]
	if r.models != nil && r.life == f.life {
		w.report(r, f, outcome, retryAfter)
	}
	if line != nil {
		line.flying = false
	}
	// A line that is recorded stays recorded; one that is tried again may be started in the very
	// step that says so.
	if line != nil {
		line.notBefore, line.tries = w.pauseOf(f, outcome, retryAfter, line.tries)
	}
	verdict := w.step(&Finished{
		Start: f.Start, Outcome: outcome, Status: status, RetryAfter: retryAfter,
		Latency: time.Second, InputTokens: 100, OutputTokens: 50,
	})
	switch {
	case w.batches[f.Key.Batch].gone:
		if verdict != Return {
			w.t.Fatalf("%v of a batch that is gone: verdict %d, want Return", f.id(), verdict)
		}
	case verdict == Return:
		w.t.Fatalf("%v of a living batch was returned", f.id())
	case verdict == Record:
		switch outcome {
		case Shed, Unreachable, Evicted:
			w.t.Fatalf("%v was given up because of %v", f.id(), outcome)
		}
	case outcome == Succeeded:
		w.t.Fatalf("%v succeeded and is to be tried again", f.id())
	}
}

func (w *world) pauseOf(
	f *flight, outcome Outcome, retryAfter time.Duration, tries int,
) (notBefore time.Time, charged int) {
	switch outcome {
	case Shed:
		if retryAfter > 0 {
			return w.now.Add(min(retryAfter, w.cfg.Retry.Base)), tries
		}
		return w.now.Add(w.cfg.Retry.Base), tries
	case Died, Evicted:
		return w.now.Add(w.cfg.Retry.Base), tries
	case Failed, Refused, Garbled, TimedOut:
		return w.now.Add(w.cfg.Retry.Base), tries + 1
	}
	return time.Time{}, tries
}

// heed is the breaker and the Retry-After of a runner, as the documents have them.
func (w *world) report(r *fakeRunner, f *flight, outcome Outcome, retryAfter time.Duration) {
	wasTrial := r.trial == f
	if wasTrial {
		r.trial = nil
	}
	switch outcome {
	case Unreachable, Died:
		r.failures++
		if r.open && !wasTrial || !r.open && r.failures < w.cfg.Breaker.Failures {
			return
		}
		r.open, r.until = true, w.now.Add(min(w.cfg.Breaker.Base<<r.openings, w.cfg.Breaker.Max))
		r.openings++
	case TimedOut, Evicted:
	default:
		r.failures, r.openings, r.open, r.trial = 0, 0, false, nil
	}
	if outcome == Succeeded || outcome == Refused || outcome == Failed || outcome == Garbled {
		r.sheds = 0
	}
	if outcome == Shed {
		hold := retryAfter
		if hold == 0 {
			hold = min(flowcontrol.PauseAfterShed<<min(r.sheds, 10), flowcontrol.LongestPause)
		}
		r.sheds++
		if until := w.now.Add(hold); until.After(r.heldUntil) {
			r.heldUntil = until
		}
	}
}

// pass lets time go by, ticking whenever the planner asked for it and never otherwise.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for !w.wake.IsZero() && !w.wake.After(end) {
		w.now = w.wake
		w.step(Tick{})
	}
	w.now = end
	w.started(nil, nil) // nor did time make possible what nobody was woken for
}

// complete takes all obstacles away and answers everything well, until every line of every living
// batch is recorded.
func (w *world) complete() {
	w.t.Helper()
	if w.hold != Flowing {
		w.hold = Flowing
		w.step(Hold{})
	}
	w.runnerUp("r1", "m1", "m2", "m3")
	w.mood(101)
	for _, id := range sortedKeys(w.batches) {
		if b := w.batches[id]; !b.gone && b.Paused {
			w.change(id, func(b *Batch) { b.Paused = false })
		}
	}
	for range 100_000 {
		switch {
		case len(w.claims) > 0:
			w.load(0, 100)
		case len(w.flights) > 0:
			w.finish(w.flights[0], Succeeded, 200, 0)
		case !w.wake.IsZero():
			w.now = w.wake
			w.step(Tick{})
		default:
			w.checkComplete()
			return
		}
	}
	w.t.Fatalf("no end: %d claims, %d flights, wake %v", len(w.claims), len(w.flights), w.wake)
}

func (w *world) checkComplete() {
	w.t.Helper()
	for id, b := range w.batches {
		for model, chunks := range b.unclaimed {
			if !b.gone && len(chunks) > 0 {
				w.t.Fatalf("stalled: %s/%s has chunks nobody claims: %v", id, model, chunks)
			}
		}
	}
	for id, line := range w.lines {
		if !line.recorded {
			w.t.Fatalf("stalled: %v is not done", id)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

var _ failer = (*testing.T)(nil)
