package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/shadow"
	"github.com/tidefill/tidefill/scheduler"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// failer is the common part of *testing.T and *rapid.T.
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

// testDriver drives a planner like the dispatcher. It tracks which actions are allowed, and checks
// after every step that there were no others.
type testDriver struct {
	t    failer
	cfg  Config
	deps Deps
	now  time.Time

	planner *Planner
	// twin gets the same events and must return the same actions, though its maps have another
	// order, and it has no shadows
	twin *Planner

	batches  map[string]*fakeBatch
	runners  map[string]*fakeRunner
	claims   []JobKey // not answered
	requests []*sentLine
	lines    map[lineID]*fakeLine // of living batches
	wake     time.Time
	hold     Reason
	draining bool
	// fifo says that the policy is fifo without urgency and all batches are of one tenant, so that
	// the next job is known
	fifo     bool
	recorded int
	okOn     map[*job]string // runner of a job's last good answer
	okOf     map[*job]int    // good answers of a job
	offered  map[*job]bool   // had a line to start
	// cached is how many of the 100 prompt tokens of each answer are cached.
	cached   int
	answered map[JobKey]int
	warm     map[warmRunner]bool
	metered  map[string]bool   // runners that had a reading with Waiting
	pools    map[string]string // names of the pools of runners; a runner without has none
}

// reservedPool is for batches that name it alone.
const reservedPool = "x"

// may reports whether the lines of a batch may start on a runner.
func (w *testDriver) may(batch, runner string) bool {
	if pools := w.batches[batch].Pools; pools != nil {
		return slices.Contains(pools, w.pools[runner])
	}
	return w.pools[runner] != reservedPool
}

// warmRunner is a runner that has computed a prompt of a job in that life.
type warmRunner struct {
	key    JobKey
	runner string
	life   int
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
	// Expected state of the breaker.
	failures, openings int
	open               bool
	why                opening
	until              time.Time
	trial              *sentLine
	heldUntil          time.Time // by Retry-After or by sheds without
	askedUntil         time.Time // by Retry-After
	sheds              int       // since the last answer

	good   []bool        // whether its answers were, the last one last
	lastOK uint64        // number of the last start that was answered well
	failed map[*job]bool // jobs of which a line failed since
	lines  map[lineID]bool
	first  uint64
	okAt   time.Time
}

type fakeLine struct {
	inFlight  bool
	recorded  bool
	tries     int
	notBefore time.Time
	prompt    int

	on      map[string]bool // runners that have failed it, with their life
	failed  uint64          // number of the start that failed last
	proven  bool            // a line that was sent after it was answered well
	blamed  int
	charged time.Time
}

type sentLine struct {
	Start
	twin     Start
	life     int
	prompt   int
	uncached int  // tokens of the prompt
	computed bool // it, or a request started there later, got a token
	evicted  bool
}

func (f *sentLine) id() lineID { return lineID{f.Key, f.Chunk, f.Slot} }

func newTestDriver(
	t failer, cfg Config, sched scheduler.Config, flow flowcontrol.Config,
) *testDriver {
	deps := func(flow flowcontrol.Config) Deps {
		return Deps{Scheduler: sched, Flow: flow, Random: rand.New(rand.NewPCG(1, 2))}
	}
	alone := flow
	alone.Shadow = flowcontrol.Shadow{}
	return &testDriver{
		t: t, cfg: cfg, deps: deps(flow), now: noon, planner: newPlanner(t, cfg, deps(flow)),
		twin:    newPlanner(t, cfg, deps(alone)),
		batches: map[string]*fakeBatch{}, runners: map[string]*fakeRunner{},
		lines: map[lineID]*fakeLine{}, answered: map[JobKey]int{}, warm: map[warmRunner]bool{},
		metered: map[string]bool{}, okOn: map[*job]string{}, okOf: map[*job]int{},
		offered: map[*job]bool{},
	}
}

// step passes an event to the planner and checks the actions.
func (w *testDriver) step(ev Event) Verdict {
	w.t.Helper()
	before := allowances(w.planner)
	got := w.planner.Step(w.now, ev)
	if !got.Changed && !maps.Equal(before, allowances(w.planner)) {
		w.t.Fatalf("%T changed an allowance and does not say so", ev)
	}
	twinEvent := ev
	switch ev := ev.(type) {
	case *FirstToken:
		copied, f := *ev, w.request(ev.Start)
		copied.Start = f.twin
		twinEvent = &copied
		if w.runners[f.Runner].models != nil && w.runners[f.Runner].life == f.life {
			w.computed(f)
		}
	case *Finished:
		copied, f := *ev, w.request(ev.Start)
		copied.Start = f.twin
		twinEvent = &copied
		if ev.Outcome == Succeeded {
			w.computed(f)
			w.answered[f.Key]++
		}
		w.requests = slices.DeleteFunc(w.requests, func(x *sentLine) bool { return x == f })
	}
	if ev, ok := ev.(Reconfigure); ok {
		ev.Flow.Shadow = flowcontrol.Shadow{}
		twinEvent = ev
	}
	twin := w.twin.Step(w.now, twinEvent)
	if diff := diff.Diff(plain(got), plain(twin)); diff != "" {
		w.t.Fatalf("the same events gave other actions (-planner +twin):\n%s", diff)
	}
	if f, ok := ev.(*Finished); ok && got.Verdict == Record {
		if line := w.lines[lineID{f.Start.Key, f.Start.Chunk, f.Start.Slot}]; line != nil {
			line.recorded = true
			w.recorded++
		}
	}
	w.settled()
	w.evicted(got.Evict, got.Start)
	w.started(got.Start, twin.Start)
	for _, c := range got.Claim {
		w.claims = append(w.claims, c.Key)
	}
	if !got.Wake.IsZero() && !got.Wake.After(w.now) {
		w.t.Fatalf("after %T: Wake is %v, now is %v already", ev, got.Wake, w.now)
	}
	w.wake = got.Wake
	w.checkCounts()
	return got.Verdict
}

// allowances returns what is granted to each pool, and why it is not more.
func allowances(p *Planner) map[*pool]string {
	all := map[*pool]string{}
	for _, pool := range p.pools {
		if pool.limit != 0 || pool.ceiling != 0 || pool.reason != "" {
			all[pool] = fmt.Sprint(pool.limit, pool.ceiling, pool.reason)
		}
	}
	return all
}

// plain returns the exported contents of actions.
func plain(a Actions) []string {
	all := []string{fmt.Sprint(a.Verdict, a.Wake.UTC())}
	for _, s := range a.Start {
		all = append(all, fmt.Sprintf("start %v on %s, attempt %d, stream %v",
			lineID{s.Key, s.Chunk, s.Slot}, s.Runner, s.Attempt, s.Stream))
	}
	for _, s := range a.Evict {
		all = append(all, fmt.Sprintf("evict %v from %s", lineID{s.Key, s.Chunk, s.Slot},
			s.Runner))
	}
	for _, c := range a.Claim {
		all = append(all, fmt.Sprint("claim ", c.Key))
	}
	return all
}

// request returns the request of a start.
func (w *testDriver) request(s Start) *sentLine {
	i := slices.IndexFunc(w.requests, func(f *sentLine) bool {
		return f.id() == lineID{s.Key, s.Chunk, s.Slot}
	})
	return w.requests[i]
}

// computed marks the prompts up to that of f as computed: engines compute the prompts of a runner
// in the order of their starts.
func (w *testDriver) computed(f *sentLine) {
	for _, x := range w.requests {
		if x.Runner == f.Runner && x.number <= f.number {
			x.computed = true
		}
	}
	w.warm[warmRunner{f.Key, f.Runner, f.life}] = true
}

// settled marks the prompts that the planner takes for computed because of metrics or of the time
// that has passed. Which metrics show is tested elsewhere; here, that streamed lines are not among
// them, and that time is needed without metrics.
func (w *testDriver) settled() {
	w.t.Helper()
	for _, id := range sortedKeys(w.planner.runners) {
		r := w.planner.runners[id]
		for i := range r.lines.lines {
			l := &r.lines.lines[i]
			at := slices.IndexFunc(w.requests, func(f *sentLine) bool {
				return f.number == l.number
			})
			if at < 0 || !l.computed || w.requests[at].computed {
				continue
			}
			x := w.requests[at]
			x.computed = true
			here := x.life == w.runners[id].life
			if r.lines.streams && x.Stream && !x.evicted && here {
				w.t.Fatalf("%v is streamed and counts as computed without a token", x.id())
			}
			if wait := w.now.Sub(l.sent); !w.metered[id] && wait < blindTime {
				w.t.Fatalf("%v counts as computed after %v without metrics", x.id(), wait)
			}
			if life, warm := l.job.cached.warm[r]; warm && life == r.life && here && w.metered[id] {
				w.warm[warmRunner{x.Key, id, x.life}] = true
			}
		}
	}
}

// expectCached checks how many prompt tokens of a start are expected in the prefix cache, and
// returns it.
func (w *testDriver) expectCached(f *sentLine) int {
	w.t.Helper()
	got, want := int(f.cached), 0
	if w.answered[f.Key] >= cachedAnswers && w.warm[warmRunner{f.Key, f.Runner, f.life}] {
		want = f.prompt * w.cached / 100
	}
	if got > want || got < want-1 { // deviations of equal shares may be a little above zero
		w.t.Fatalf("%v on %s: %d of %d prompt tokens are expected in the cache, want %d", f.id(),
			f.Runner, got, f.prompt, want)
	}
	return got
}

// evicted checks that lines in flight are evicted once each, the youngest first, and only as many
// as exceed the allowance, or as lines of other batches may start instead of. begun are the starts
// of the same step, before which lines were evicted.
func (w *testDriver) evicted(starts, begun []Start) {
	w.t.Helper()
	for _, s := range starts {
		i := slices.IndexFunc(w.requests, func(f *sentLine) bool {
			return f.id() == lineID{s.Key, s.Chunk, s.Slot}
		})
		switch {
		case i < 0:
			w.t.Fatalf("%s %d.%d was evicted but is not in flight", s.Key, s.Chunk, s.Slot)
		case w.requests[i].evicted:
			w.t.Fatalf("%v was evicted twice", w.requests[i].id())
		case w.requests[i].Runner != s.Runner:
			w.t.Fatalf("%v was evicted from %s but is on %s", w.requests[i].id(), s.Runner,
				w.requests[i].Runner)
		}
		w.requests[i].evicted = true
		preempted := w.batches[s.Key.Batch].Preemptible && w.demand(s) > 0
		for _, f := range w.requests {
			if f.Runner == s.Runner && f.number > s.number && !f.evicted &&
				(!preempted || f.Key == s.Key) {
				w.t.Fatalf("%v was evicted before %v, which is younger", w.requests[i].id(), f.id())
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
		for _, f := range w.requests {
			if f.Runner == id && !f.evicted {
				left++
			}
		}
		for _, s := range begun {
			if s.Runner == id {
				left++
			}
		}
		granted := w.grantedTo(id)
		recalledHere := slices.ContainsFunc(starts, func(s Start) bool { return s.Runner == id })
		preempted := 0 // no more than lines of other batches that can start instead
		for _, s := range starts {
			if s.Runner == id && w.batches[s.Key.Batch].Preemptible &&
				preempted < w.demand(s) {
				preempted++
			}
		}
		if granted.Evict && left > granted.Lines || recalledHere && (left > granted.Lines ||
			left < granted.Lines-preempted) {
			w.t.Fatalf("%s has %d lines left, the allowance is %+v, %d lines may be preempted", id,
				left, granted, preempted)
		}
	}
}

// demand returns the number of lines of other batches that may start in place of an evicted one.
func (w *testDriver) demand(s Start) (lines int) {
	for _, j := range w.planner.jobs {
		if j.key.Batch != s.Key.Batch && !w.batches[j.key.Batch].Paused &&
			w.may(j.key.Batch, s.Runner) &&
			slices.Contains(w.runners[s.Runner].models, j.key.Model) {
			lines += j.readyLines()
		}
	}
	return lines
}

// started checks each start of a step against the state before it, and that no further line could
// start.
func (w *testDriver) started(starts, twins []Start) {
	w.t.Helper()
	ready := map[JobKey][]lineID{}
	for _, j := range w.planner.jobs {
		for _, l := range append(slices.Clone(j.ready.lines[j.ready.head:]), j.aside...) {
			ready[j.key] = append(ready[j.key], lineID{j.key, int(l.chunk), int(l.slot)})
		}
	}
	for _, s := range starts {
		ready[s.Key] = append(ready[s.Key], lineID{s.Key, s.Chunk, s.Slot})
	}
	w.probe()
	for i, s := range starts {
		f := &sentLine{Start: s, twin: twins[i]}
		line := w.lines[f.id()]
		streamed := 0
		for _, x := range w.requests {
			if x.Runner == s.Runner && x.Stream {
				streamed++
			}
		}
		b, r := w.batches[s.Key.Batch], w.runners[s.Runner]
		switch {
		case line == nil || b.gone:
			w.t.Fatalf("%v was started, but is no loaded line of a batch", f.id())
		case line.inFlight || line.recorded:
			w.t.Fatalf("%v was started though it is in flight or done", f.id())
		case w.now.Before(line.notBefore):
			w.t.Fatalf("%v was started at %v, its pause ends at %v", f.id(), w.now, line.notBefore)
		case s.Attempt != line.tries+1:
			w.t.Fatalf("%v: attempt %d, want %d", f.id(), s.Attempt, line.tries+1)
		case w.draining || w.hold != Flowing:
			w.t.Fatalf("%v was started in spite of hold %q, draining %v", f.id(), w.hold,
				w.draining)
		case b.Paused:
			w.t.Fatalf("%v was started though its batch is paused", f.id())
		case !w.may(s.Key.Batch, s.Runner):
			w.t.Fatalf("%v was started on %s in pool %q; its batch may use %q", f.id(), s.Runner,
				w.pools[s.Runner], b.Pools)
		case !slices.Contains(r.models, s.Key.Model):
			w.t.Fatalf("%v was started on %s, which serves %v", f.id(), s.Runner, r.models)
		case s.Stream != (streamed < w.granted(s.Runner).Streams):
			w.t.Fatalf("%v: stream is %v with %d others, want %d streams", f.id(), s.Stream,
				streamed, w.granted(s.Runner).Streams)
		case w.prefilling(s.Runner) >= w.grantedTo(s.Runner).Prompt:
			w.t.Fatalf("%v was started on %s, where %d prompt tokens wait already", f.id(),
				s.Runner, w.prefilling(s.Runner))
		case w.freeSlots(s.Runner) <= 0:
			w.t.Fatalf("%v was started on %s, which has no free slot (%d in flight, breaker %+v)",
				f.id(), s.Runner, w.linesOn(s.Runner), *r)
		}
		for _, other := range w.poolOf(s.Runner) {
			here, there := w.freeOnRunner(s.Runner), w.freeOnRunner(other)
			if line.on[w.life(other)] && !line.on[w.life(s.Runner)] ||
				w.runners[other].failing() || r.failing() {
				continue
			}
			if there > here || there == here && other < s.Runner {
				w.t.Fatalf("%v was started on %s, with %d free slots, instead of %s with %d",
					f.id(),
					s.Runner, here, other, there)
			}
		}
		could := w.candidates(s.Runner, ready)
		if !slices.Contains(could, s.Key) && len(line.on) == 0 {
			w.t.Fatalf("%v was started, want one of %v", f.id(), could)
		}
		if w.avoids(line, s.Runner, s.Key) {
			w.t.Fatalf("%v was started on %s, which has failed it, though others have not",
				f.id(), s.Runner)
		}
		// Whether a line that a runner has failed may go elsewhere can change within a step.
		fresh := slices.DeleteFunc(w.candidates(s.Runner, w.fresh(ready, s.Runner)),
			func(key JobKey) bool { return key != s.Key && w.prefersOther(key, s.Runner) })
		if w.fifo && len(fresh) > 0 && fresh[0] != s.Key && !r.failing() && len(line.on) == 0 {
			w.t.Fatalf("%v was started, want %v", f.id(), fresh[0])
		}
		if r.failing() && r.failed[w.planner.job(s.Key)] && slices.ContainsFunc(could,
			func(key JobKey) bool { return !r.failed[w.planner.job(key)] }) {
			w.t.Fatalf("%v tries a runner that has failed its job; others: %v", f.id(), could)
		}
		ready[s.Key] = slices.DeleteFunc(ready[s.Key], func(id lineID) bool {
			return id == f.id()
		})
		line.inFlight = true
		f.life, f.prompt = r.life, line.prompt
		f.uncached = f.prompt - w.expectCached(f)
		if r.open {
			r.trial = f
		}
		w.requests = append(w.requests, f)
	}
	if w.draining || w.hold != Flowing {
		return
	}
	for _, id := range sortedKeys(w.runners) {
		r := w.runners[id]
		if r.models == nil || w.freeSlots(id) <= 0 {
			continue
		}
		if could := w.candidates(id, w.fresh(ready, id)); len(could) > 0 {
			w.t.Fatalf("%s has %d free slots and %v has lines ready, but none was started", id,
				w.freeSlots(id), could)
		}
	}
}

// probe lets failing runners be tried at once when a job has lines to start for the first time.
func (w *testDriver) probe() {
	for _, j := range w.planner.jobs {
		if !j.offered || w.offered[j] {
			continue
		}
		w.offered[j] = true
		for id, r := range w.runners {
			if slices.Contains(r.models, j.key.Model) && w.may(j.key.Batch, id) &&
				r.failing() && r.until.After(w.now) {
				r.until = w.now
			}
		}
	}
}

// life identifies a runner between its coming and its going.
func (w *testDriver) life(runner string) string {
	return fmt.Sprint(runner, w.runners[runner].life)
}

// avoids reports whether a line that a runner has failed may go to another one that has not.
func (w *testDriver) avoids(line *fakeLine, runner string, key JobKey) bool {
	if !line.on[w.life(runner)] {
		return false
	}
	for id, r := range w.runners {
		if slices.Contains(r.models, key.Model) && w.may(key.Batch, id) && !r.open &&
			!line.on[w.life(id)] &&
			w.planner.runners[id].granted.Lines > 0 {
			return true
		}
	}
	return false
}

// fresh returns the lines that a runner has not failed.
func (w *testDriver) fresh(ready map[JobKey][]lineID, runner string) map[JobKey][]lineID {
	fresh := map[JobKey][]lineID{}
	for key, lines := range ready {
		fresh[key] = slices.DeleteFunc(slices.Clone(lines), func(line lineID) bool {
			return w.lines[line] != nil && w.lines[line].on[w.life(runner)]
		})
	}
	return fresh
}

func (r *fakeRunner) failing() bool { return r.open && r.why != unanswered }

// candidates returns the jobs that may start a line on a runner, in the order of creation.
func (w *testDriver) candidates(runner string, ready map[JobKey][]lineID) []JobKey {
	var keys []JobKey
	models := w.runners[runner].models
	for key, lines := range ready {
		b := w.batches[key.Batch]
		may := slices.ContainsFunc(lines, func(id lineID) bool {
			line := w.lines[id]
			return line == nil || !w.avoids(line, runner, key)
		})
		if may && slices.Contains(models, key.Model) && w.may(b.ID, runner) &&
			!b.Paused && (b.MaxConcurrency == 0 ||
			w.linesOf(b.ID) < b.MaxConcurrency) {
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

// prefersOther reports whether the batch of a job prefers a pool with a free slot to that of a
// runner. Then it may start there, after those that prefer the runner's pool.
func (w *testDriver) prefersOther(key JobKey, runner string) bool {
	order := w.batches[key.Batch].Pools
	at := slices.Index(order, w.pools[runner])
	for id, r := range w.runners {
		before := slices.Index(order, w.pools[id])
		if before >= 0 && before < at && slices.Contains(r.models, key.Model) &&
			w.freeSlots(id) > 0 {
			return true
		}
	}
	return false
}

// freeSlots returns how many more lines may start on a runner, by its limit and that of its pool.
func (w *testDriver) freeSlots(runner string) int {
	carried := 0
	for _, other := range w.poolOf(runner) {
		carried += w.linesOn(other)
	}
	return min(w.freeOnRunner(runner), w.granted(runner).Pool-carried)
}

func (w *testDriver) granted(runner string) flowcontrol.Allowance {
	return w.planner.runners[runner].pool.flow.Allowance(w.now)
}

func (w *testDriver) grantedTo(runner string) flowcontrol.RunnerAllowance {
	for _, x := range w.granted(runner).Runners {
		if x.Runner == runner {
			return x
		}
	}
	return flowcontrol.RunnerAllowance{}
}

// prefilling counts the prompt tokens on a runner that must be computed and are not known to be.
func (w *testDriver) prefilling(runner string) (tokens int) {
	for _, f := range w.requests {
		if f.Runner == runner && !f.computed {
			tokens += f.uncached
		}
	}
	return tokens
}

// freeOnRunner returns how many more lines the allowance and the breaker of a runner admit.
func (w *testDriver) freeOnRunner(runner string) int {
	r, granted := w.runners[runner], w.grantedTo(runner)
	freeSlots := granted.Lines - w.linesOn(runner)
	switch {
	case w.prefilling(runner) >= granted.Prompt:
		return 0
	case w.now.Before(r.heldUntil):
		return 0
	case r.open && (r.trial != nil || w.now.Before(r.until)):
		return 0
	case r.open:
		return min(freeSlots, 1)
	}
	return freeSlots
}

func (w *testDriver) linesOn(runner string) (n int) {
	for _, f := range w.requests {
		if f.Runner == runner {
			n++
		}
	}
	return n
}

func (w *testDriver) linesOf(batch string) (n int) {
	for _, f := range w.requests {
		if f.Key.Batch == batch {
			n++
		}
	}
	return n
}

// poolOf returns the runners of the same pool that serve the same models, itself included.
func (w *testDriver) poolOf(runner string) (others []string) {
	for id, r := range w.runners {
		if r.models != nil && slices.Equal(r.models, w.runners[runner].models) &&
			w.pools[id] == w.pools[runner] {
			others = append(others, id)
		}
	}
	slices.Sort(others)
	return others
}

// checkCounts compares the planner's counters with a count of everything.
func (w *testDriver) checkCounts() {
	w.t.Helper()
	p := w.planner
	for _, j := range p.jobs {
		key := j.key
		waiting, inFlight, claimed := 0, 0, 0
		for id, line := range w.lines {
			if id.key == key && !line.recorded {
				if line.inFlight {
					inFlight++
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
		if j.readyLines()+j.retrying != waiting || j.inFlight != inFlight {
			w.t.Fatalf(
				"%v: %d ready, %d retrying, %d in flight; %d loaded and not done, %d in flight",
				key, j.readyLines(), j.retrying, j.inFlight, waiting, inFlight)
		}
		if len(j.claims) != claimed || claimed > maxClaims {
			w.t.Fatalf("%v: %d claims, want %d", key, len(j.claims), claimed)
		}
		expecting := 0
		for _, c := range j.claims {
			expecting += c.lines
		}
		if j.expecting != expecting {
			w.t.Fatalf("%v: expects %d lines, want %d", key, j.expecting, expecting)
		}
		if j.batch.inFlight != w.linesOf(key.Batch) {
			w.t.Fatalf("%s: %d in flight, the planner counts %d", key.Batch, w.linesOf(key.Batch),
				j.batch.inFlight)
		}
	}
	for _, pool := range p.pools {
		prompt, expected, tokens, inFlight := 0, 0, 0, 0
		for _, j := range p.jobs {
			serves := slices.Contains(pool.models, j.key.Model) && j.batch.may(pool)
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
				prompt += j.readyTokens()
			}
		}
		for _, r := range pool.runners {
			inFlight += w.linesOn(r.id)
			if r.inFlight != w.linesOn(r.id) {
				w.t.Fatalf("runner %s: %d in flight, the planner counts %d", r.id, w.linesOn(r.id),
					r.inFlight)
			}
			if r.lines.prefilling != w.prefilling(r.id) {
				w.t.Fatalf("runner %s: %d prompt tokens wait, the planner counts %d", r.id,
					w.prefilling(r.id),
					r.lines.prefilling)
			}
		}
		w.checkOrder(pool, pool.starts, func(j *job) bool { return j.inStarts })
		w.checkOrder(pool, pool.loads, func(j *job) bool { return j.inLoads })
		if pool.promptTokens != prompt || pool.expected != expected ||
			pool.expectedTokens != tokens || pool.inFlight != inFlight {
			w.t.Fatalf(
				"pool %v counts %d prompt tokens, %d expected, %d in flight; want %d, %d, %d",
				pool.models, pool.promptTokens, pool.expected, pool.inFlight, prompt, expected,
				inFlight)
		}
	}
	for _, pool := range w.twin.pools { // a snapshot advances the time of a queue
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

// checkOrder compares the jobs of a queue with those of the planner.
func (w *testDriver) checkOrder(pool *pool, q *scheduler.Queue, offered func(*job) bool) {
	w.t.Helper()
	known := 0
	for _, position := range q.Snapshot(w.now) {
		j := w.planner.jobs[position.Job.ID]
		switch {
		case j == nil || !slices.Contains(j.pools, pool):
			w.t.Fatalf("pool %v has %s, which is not its job", pool.models, position.Job.ID)
		case position.Parked == offered(j):
			w.t.Fatalf("pool %v, %v: parked %v, offered %v", pool.models, j.key, position.Parked,
				offered(j))
		case math.Abs(position.Job.Work-j.work) > 0.05*position.Job.Work:
			w.t.Fatalf("%v was ranked with %v of work left, want %v", j.key, position.Job.Work,
				j.work)
		case j.batch.begun && !position.Job.StartBy.IsZero():
			w.t.Fatalf("%v has started and is still ranked by StartBy", j.key)
		}
		known++
	}
	for _, j := range w.planner.jobs {
		if slices.Contains(j.pools, pool) {
			known--
		}
	}
	if known != 0 {
		w.t.Fatalf("pool %v has %d jobs too many", pool.models, known)
	}
}

func (w *testDriver) runnerUp(id string, models ...string) {
	w.runnerChanges(RunnerUp{Runner: id, Models: models})
}

func (w *testDriver) runnerChanges(ev RunnerUp) {
	id, models := ev.Runner, ev.Models
	ev.Pool = w.pools[id]
	ev.Reserved = ev.Pool == reservedPool
	slices.Sort(models)
	r := w.runners[id]
	if r == nil {
		r = &fakeRunner{}
		w.runners[id] = r
	}
	if !slices.Equal(r.models, models) && !(ev.Unlisted && w.alone(r, id, models)) {
		// the controller of its new pool does not know of earlier sheds
		r.heldUntil, r.askedUntil, r.sheds = time.Time{}, time.Time{}, 0
	}
	r.models = models
	w.step(ev)
}

// alone reports whether the pool of a runner can get these models: it is in no pool with others,
// it loses no model, and no other pool has these.
func (w *testDriver) alone(r *fakeRunner, id string, models []string) bool {
	for name, other := range w.runners {
		if other != r && w.pools[name] == w.pools[id] && slices.Equal(other.models, r.models) {
			return false
		}
	}
	_, taken := w.planner.findPool(poolKey(w.pools[id], models))
	return r.models != nil && containsAll(models, r.models) && !taken
}

func (w *testDriver) runnerGone(id string) {
	w.runners[id] = &fakeRunner{life: w.runners[id].life + 1}
	w.step(RunnerGone{Runner: id})
}

// put adds a batch with chunks of the given sizes.
func (w *testDriver) put(b Batch, chunks map[string][]int) {
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

// change changes a batch.
func (w *testDriver) change(id string, change func(*Batch)) {
	b := w.batches[id]
	change(&b.Batch)
	put := b.Batch
	put.Models = nil
	w.step(BatchPut{Batch: put})
}

func (w *testDriver) batchGone(id string) {
	w.batches[id].gone = true
	for line := range w.lines {
		if line.key.Batch == id {
			delete(w.lines, line)
		}
	}
	w.step(BatchGone{Batch: id})
}

// firstToken reports the first token of a streamed line.
func (w *testDriver) firstToken(f *sentLine) {
	w.step(&FirstToken{Start: f.Start, Latency: time.Second})
}

// setGrant sets the lines that the policy variable grants to each runner of all pools.
func (w *testDriver) setGrant(running float64) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, w.now)
	r.Running = running
	w.step(Reading{Reading: &r})
}

// load answers a claim with the job's next chunk, or with none if there is none.
func (w *testDriver) load(i, prompt int) {
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

func (w *testDriver) loadNone(i int, more bool, again time.Duration) {
	key := w.claims[i]
	w.claims = slices.Delete(w.claims, i, i+1)
	w.step(Loaded{Key: key, More: more, Wait: again})
}

func (w *testDriver) finish(
	f *sentLine, outcome Outcome, status int, retryAfter time.Duration, foreign ...bool,
) {
	line, r := w.lines[f.id()], w.runners[f.Runner]
	ev := &Finished{
		Start: f.Start, Outcome: outcome, Status: status, RetryAfter: retryAfter,
		Foreign: slices.Contains(foreign, true),
		Latency: time.Second, InputTokens: 100, CachedTokens: w.cached, OutputTokens: 50,
	}
	cause := none
	if r.models != nil && r.life == f.life {
		cause = w.judge(r, f, line, ev)
		w.report(r, f, outcome, retryAfter, cause)
	}
	if line != nil {
		line.inFlight = false
	}
	// A recorded line stays recorded. One that is tried again may start in the same step.
	final := false
	if line != nil {
		final = w.fail(line, f, ev, cause)
	}
	verdict := w.step(ev)
	switch {
	case w.batches[f.Key.Batch].gone:
		if verdict != Return {
			w.t.Fatalf("%v of a batch that is gone: verdict %d, want Return", f.id(), verdict)
		}
	case verdict == Return:
		w.t.Fatalf("%v of a batch that is not gone was returned", f.id())
	case verdict == Record:
		switch outcome {
		case Shed, Unreachable, Evicted:
			w.t.Fatalf("%v was given up because of %v", f.id(), outcome)
		}
		if !final && outcome != Succeeded && outcome != Died {
			w.t.Fatalf("%v was recorded after %v at %s (cause %d)", f.id(), outcome, f.Runner,
				cause)
		}
	case outcome == Succeeded || final:
		w.t.Fatalf("%v ended with %v but is tried again", f.id(), outcome)
	}
}

// judge finds the cause of an answer, as judge of the planner does, from all that has happened.
func (w *testDriver) judge(r *fakeRunner, f *sentLine, line *fakeLine, ev *Finished) fault {
	recent := r.good[max(0, len(r.good)-suspectAfter):]
	working := slices.Contains(recent, true)
	works, few := working, false
	if line != nil && len(line.on) > 0 {
		others := maps.Clone(r.lines)
		delete(others, f.id())
		works = r.lastOK > line.failed
		line.proven = line.proven || works
		few = !works && working && (len(others) < fewFailed-1 || line.proven) &&
			w.now.Sub(r.okAt) <= recently
		works = works || few
	}
	of := f.job
	var cause fault
	switch ev.Outcome {
	case Succeeded:
		w.okOn[of], r.lastOK = w.life(f.Runner), max(r.lastOK, f.number)
		w.okOf[of]++
		r.good = append(r.good, true)
		if r.okAt = w.now; f.number > r.first {
			r.failed, r.lines = nil, nil
		}
		return none
	case Refused:
		elsewhere := w.okOn[of] != "" && !strings.HasPrefix(w.okOn[of], f.Runner)
		switch {
		case working:
			cause = ofLine
		case ev.Foreign:
			cause = ofRunner
		case elsewhere:
			cause = doubtful
		default:
			cause = untested
		}
		if !ev.Foreign && !elsewhere {
			return cause
		}
	case Failed:
		if cause = ofLine; few {
			cause = likely
		} else if !works {
			cause = doubtful
		}
	case Denied, Garbled:
		cause = ofRunner
	default:
		return none
	}
	if ev.Outcome != Refused && cause == ofRunner && works && line != nil && len(line.on) > 0 &&
		ev.Status != 401 {
		line.blamed++
	}
	if r.trial == f || line == nil || !line.proven && !line.on[w.life(f.Runner)] {
		r.good = append(r.good, false)
	}
	if r.failed == nil {
		r.failed, r.lines = map[*job]bool{}, map[lineID]bool{}
	}
	if len(r.lines) == 0 {
		r.first = f.number
	}
	r.lines[f.id()] = true
	r.failed[of] = true
	return cause
}

// fail notes what a line has met, and when it may start again. final: it is not tried again.
func (w *testDriver) fail(line *fakeLine, f *sentLine, ev *Finished, cause fault) (final bool) {
	retry := w.cfg.Retry
	line.notBefore = w.now
	pause := retry.Base
	switch ev.Outcome {
	case Succeeded, Unreachable:
		return false
	case Shed:
		if ev.RetryAfter > 0 {
			pause = min(ev.RetryAfter, pause)
		}
		line.notBefore = w.now.Add(pause)
		return false
	case Evicted:
		line.notBefore = w.now.Add(pause)
		return false
	}
	first := len(line.on) == 0
	if first {
		line.charged = w.now
	}
	few := line.proven || len(w.runners[f.Runner].lines) < fewFailed
	if overdue := w.overdue(line, f.job); overdue && cause == ofRunner && ev.Status != 401 && few {
		line.blamed += 2
		line.charged = w.now
	}
	charge := cause == none || cause == ofLine || cause == likely ||
		cause == doubtful && ev.Outcome == Failed &&
			w.overdue(line, f.job)
	others := 0
	for id, r := range w.runners {
		if id != f.Runner && slices.Contains(r.models, f.Key.Model) && w.may(f.Key.Batch, id) &&
			!r.open &&
			!line.on[w.life(id)] && w.planner.runners[id].granted.Lines > 0 {
			others++
		}
	}
	switch {
	case charge && ev.Outcome == Died:
		line.notBefore = w.now.Add(pause)
	case charge:
		line.notBefore = w.now.Add(pause)
		listed := ev.Outcome == TimedOut || ev.Outcome == TooLong || ev.Outcome == Garbled ||
			ev.Outcome == Denied || slices.Contains(retry.On, ev.Status)
		attempts := cmp.Or(w.batches[f.Key.Batch].RetryAttempts, retry.Attempts)
		if !listed || line.tries+1 >= attempts {
			return true
		}
		line.tries++
		line.charged = w.now
	case cause == ofRunner && line.blamed >= maxBlamed:
		return true
	case others > 0:
	case ev.Outcome == Refused && cause != ofRunner:
		return true
	default:
		line.notBefore = w.now.Add(pause)
	}
	if ev.Outcome != TooLong && (cause != none || ev.Outcome == Died || ev.Outcome == TimedOut) {
		if first {
			line.on = map[string]bool{}
		}
		line.on[fmt.Sprint(f.Runner, f.life)] = true
		line.failed = f.number
	}
	return false
}

// overdue reports whether an attempt is charged though the runner may be at fault.
func (w *testDriver) overdue(line *fakeLine, of *job) bool {
	troubled := 0
	for id, x := range w.lines {
		if id.key == of.key && !x.recorded && (len(x.on) > 0 || x == line) {
			troubled++
		}
	}
	return w.okOf[of] >= troubled && w.now.Sub(line.charged) >= patience
}

// report updates the expected breaker and Retry-After of a runner.
func (w *testDriver) report(
	r *fakeRunner, f *sentLine, outcome Outcome, retryAfter time.Duration, cause fault,
) {
	wasTrial := r.trial == f
	if wasTrial {
		r.trial = nil
	}
	trip := func(longest time.Duration) {
		r.open, r.until = true, w.now.Add(min(w.cfg.Breaker.Base<<r.openings, longest))
		r.openings++
		r.trial = nil
	}
	closed := func() { r.failures, r.openings, r.open, r.trial = 0, 0, false, nil }
	switch {
	case outcome == Unreachable || outcome == Died:
		r.failures++
		if r.open && !wasTrial || !r.open && r.failures < w.cfg.Breaker.Failures {
			return
		}
		r.why = unanswered
		trip(w.cfg.Breaker.Max)
	case outcome == TimedOut || outcome == Evicted:
	case outcome == Succeeded:
		if !r.open || r.why != suspicion || wasTrial {
			closed()
		}
	case cause == doubtful || cause == ofRunner:
		longest := longerProbes * w.cfg.Breaker.Max
		switch {
		case r.open && !wasTrial:
		case cause == ofRunner:
			r.why = certainty
			trip(longest)
		case r.open:
			if r.why == unanswered {
				r.why = suspicion
			}
			trip(longest)
		case w.suspected(r, f):
			r.why = suspicion
			trip(longest)
		default:
			r.failures = 0
		}
	case !r.open || r.why == unanswered:
		closed()
	}
	if outcome == Succeeded || outcome == Refused || outcome == Failed || outcome == Garbled ||
		outcome == Denied || outcome == TooLong {
		r.sheds = 0
	}
	if outcome == Shed {
		hold := retryAfter
		if until := w.now.Add(hold); until.After(r.askedUntil) {
			r.askedUntil = until
		}
		if hold == 0 {
			hold = min(flowcontrol.PauseAfterShed<<min(r.sheds, 10), flowcontrol.LongestPause)
		}
		r.sheds++
		if until := w.now.Add(hold); until.After(r.heldUntil) {
			r.heldUntil = until
		}
	}
}

// suspected reports whether a runner's breaker opens because of its last answers.
func (w *testDriver) suspected(r *fakeRunner, f *sentLine) bool {
	last := func(r *fakeRunner) (good, bad float64) {
		for _, ok := range r.good[max(0, len(r.good)-judgedAnswers):] {
			if ok {
				good++
			} else {
				bad++
			}
		}
		return good, bad
	}
	good, bad := last(r)
	if good+bad < suspectAfter || bad/(good+bad) < failingShare {
		return false
	}
	pool := w.poolOf(f.Runner)
	othersGood, othersBad, suspects := 0.0, 0.0, 1
	for _, id := range pool {
		x := w.runners[id]
		if id != f.Runner && !x.open {
			g, b := last(x)
			othersGood, othersBad = othersGood+g, othersBad+b
		}
		if id != f.Runner && x.open && x.why == suspicion {
			suspects++
		}
	}
	if othersGood > othersBad {
		return float64(suspects)/float64(len(pool)) <= 0.5
	}
	return good == 0
}

// pass lets time pass, with a Tick at each Wake and no other.
func (w *testDriver) pass(d time.Duration) {
	end := w.now.Add(d)
	for !w.wake.IsZero() && !w.wake.After(end) {
		w.now = w.wake
		w.step(Tick{})
	}
	w.now = end
	w.started(nil, nil) // no start became possible without a Wake
}

// complete removes all obstacles and answers every request successfully, until every line of every
// batch is recorded.
func (w *testDriver) complete() {
	w.t.Helper()
	if w.hold != Flowing {
		w.hold = Flowing
		w.step(Hold{})
	}
	w.runnerUp("r1", "m1", "m2", "m3")
	for _, id := range sortedKeys(w.pools) {
		w.runnerUp(id, "m1", "m2", "m3")
	}
	w.setGrant(101)
	for _, id := range sortedKeys(w.batches) {
		if b := w.batches[id]; !b.gone && b.Pools != nil && len(b.Pools) == 0 {
			w.change(id, func(b *Batch) { b.Pools = nil })
		}
	}
	for _, id := range sortedKeys(w.batches) {
		if b := w.batches[id]; !b.gone && b.Paused {
			w.change(id, func(b *Batch) { b.Paused = false })
		}
	}
	for range 100_000 {
		switch {
		case len(w.claims) > 0:
			w.load(0, 100)
		case len(w.requests) > 0:
			w.finish(w.requests[0], Succeeded, 200, 0)
		case !w.wake.IsZero():
			w.now = w.wake
			w.step(Tick{})
		default:
			w.checkComplete()
			return
		}
	}
	w.t.Fatalf("no end: %d claims, %d requests, wake %v", len(w.claims), len(w.requests), w.wake)
}

func (w *testDriver) checkComplete() {
	w.t.Helper()
	for id, b := range w.batches {
		for model, chunks := range b.unclaimed {
			if !b.gone && len(chunks) > 0 {
				w.t.Fatalf("stalled: %s/%s has unclaimed chunks: %v", id, model, chunks)
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

// reconfigure replaces the configuration of the planner by that of the driver. Controllers that are
// replaced know no earlier sheds but the pauses that runners have asked for.
func (w *testDriver) reconfigure() {
	w.t.Helper()
	old, before := w.planner.flow, map[*pool]flowcontrol.Controller{}
	shadows := map[*pool]*shadow.Shadow{}
	for _, pool := range w.planner.pools {
		before[pool], shadows[pool] = pool.flow, pool.shadow
		if old.For(pool.name, pool.models).Equal(w.deps.Flow.For(pool.name, pool.models)) {
			continue
		}
		for _, x := range pool.runners {
			r := w.runners[x.id]
			r.heldUntil, r.sheds = r.askedUntil, 0
			if r.askedUntil.After(w.now) {
				r.sheds = 1
			}
		}
	}
	w.step(Reconfigure{Config: w.cfg, Scheduler: w.deps.Scheduler, Flow: w.deps.Flow})
	for pool, flow := range before {
		same := old.For(pool.name, pool.models).Equal(w.deps.Flow.For(pool.name, pool.models))
		if kept := pool.flow == flow; kept != same {
			w.t.Fatalf("pool %v: the controller was kept: %v; its configuration is the same: %v",
				pool.models, kept, same)
		}
		one, _ := old.For(pool.name, pool.models).ForShadow()
		other, shadowed := w.deps.Flow.For(pool.name, pool.models).ForShadow()
		if (pool.shadow != nil) != shadowed {
			w.t.Fatalf("pool %v: there is a shadow: %v, want %v", pool.models, pool.shadow != nil,
				shadowed)
		}
		if kept := pool.shadow == shadows[pool]; shadowed && kept != one.Equal(other) {
			w.t.Fatalf("pool %v: the shadow was kept: %v", pool.models, kept)
		}
	}
}
