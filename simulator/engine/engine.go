package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/portable"
)

var (
	// ErrTooLong refuses a prompt that leaves no room for output.
	ErrTooLong = errors.New("prompt exceeds the context length")
	// ErrDuplicate refuses an ID that is waiting or running.
	ErrDuplicate = errors.New("request id is in use")
)

// Engine is one model server. Build it with New; it has one owner.
type Engine struct {
	cfg    Config
	rng    *rand.Rand
	kv     *memory
	pace   float64
	stall  time.Duration
	submit uint64

	byID    map[ID]*sequence
	waiting waiting
	running []*sequence // in order of admission

	busy   bool
	report Iteration
	ends   []time.Duration // since report.Start, of each iteration of the run
	noise  []float64       // drawn and not yet used; a run that is cut leaves some

	filler    Filler // nil: none
	scheduled Scheduled
	filled    bool // the iteration under way is

	counters Counters
	pending  int // known tokens not computed, over waiting and running
}

// Iteration is what the engine did between Start and End: one iteration, or a
// run of several with the same requests decoding in each. Its slices are the
// engine's and hold until the next call of Begin or End.
type Iteration struct {
	Start, End time.Time
	Steps      []time.Duration // the time of each iteration
	Tokens     int             // scheduled in each iteration
	Admitted   []Admission     // began, or began again, at Start
	Preempted  []Loss          // lost their blocks at Start and wait again
	// got one token at the end of each of Steps, whether or not they ended with it
	Produced []ID
	First    []ID         // of Produced: those whose first token it was
	Finished []Completion // ended at End
	Aborted  []Loss       // left at End
}

// Loss is a request that let go of its KV blocks before it was done.
type Loss struct {
	ID ID
	// Tokens were computed for it since it was last admitted and are kept
	// nowhere, not even in the prefix cache.
	Tokens int
}

// Admission is a request let in from the waiting queue.
type Admission struct {
	ID     ID
	Cached int // tokens found in the prefix cache, which need not be computed
}

// New builds an idle engine. rng feeds the noise and nothing else.
func New(cfg Config, rng *rand.Rand) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("engine configuration: %w", err)
	}
	blocks := cfg.Profile.KVTokens / BlockSize
	if limit := blocks * BlockSize; cfg.MaxModelLen == 0 || cfg.MaxModelLen > limit {
		cfg.MaxModelLen = limit
	}
	return &Engine{cfg: cfg, rng: rng, kv: newMemory(blocks), pace: 1, byID: map[ID]*sequence{}},
		nil
}

// MaxModelLen is the bound on prompt plus output of a request, in tokens.
func (e *Engine) MaxModelLen() int { return e.cfg.MaxModelLen }

// Submit puts a request into the waiting queue at now. It is looked at when the
// next iteration begins. Output beyond the context length is cut off.
func (e *Engine) Submit(now time.Time, r Request) error {
	switch {
	case r.Prompt < 1 || r.Output < 1:
		return fmt.Errorf("submit request %d: prompt is %d and output %d tokens, want at least 1",
			r.ID, r.Prompt, r.Output)
	case r.Prompt >= e.cfg.MaxModelLen:
		return fmt.Errorf("submit request %d of %d tokens: %w of %d", r.ID, r.Prompt, ErrTooLong,
			e.cfg.MaxModelLen)
	case e.byID[r.ID] != nil:
		return fmt.Errorf("submit request %d: %w", r.ID, ErrDuplicate)
	}
	r.Output = min(r.Output, e.cfg.MaxModelLen-r.Prompt)
	r.Prefix = r.Prefix[:min(len(r.Prefix), r.Prompt/BlockSize)]
	if !e.cfg.PrefixCaching {
		r.Prefix = nil
	}
	if e.cfg.Scheduling == FirstCome {
		r.Priority = 0
	}
	s := &sequence{Request: r, order: e.submit, known: r.Prompt, prefilling: true, submitted: now}
	e.submit++
	e.byID[r.ID] = s
	e.waiting.add(s)
	e.pending += s.known
	e.cut(now)
	return nil
}

// Abort gives a request up. One that waits leaves at once, having nothing to
// lose; one that runs leaves at the end of the iteration under way, and is
// reported there. It tells whether the request was known.
func (e *Engine) Abort(now time.Time, id ID) bool {
	s := e.byID[id]
	if s == nil || s.aborted {
		return false
	}
	e.cut(now)
	if s.slot >= 0 {
		e.waiting.remove(s)
		e.forget(s)
		e.counters.Aborted++
		return true
	}
	s.aborted = true
	if !e.busy {
		e.leave()
	}
	return true
}

// Has tells whether a request is waiting or running.
func (e *Engine) Has(id ID) bool { return e.byID[id] != nil }

// SetPace makes iterations that begin after now take factor times as long.
func (e *Engine) SetPace(now time.Time, factor float64) {
	e.pace = factor
	e.cut(now)
}

// Stall makes the next iteration to begin after now longer by d.
func (e *Engine) Stall(now time.Time, d time.Duration) {
	e.stall += d
	e.cut(now)
}

// FlushCache empties the prefix cache of blocks not in use and tells how many
// there were.
func (e *Engine) FlushCache(now time.Time) int {
	e.cut(now)
	return e.kv.flush()
}

// Next is when the iteration or run under way ends; false when none is.
func (e *Engine) Next() (time.Time, bool) { return e.report.End, e.busy }

// Begin schedules an iteration, or a run of them, that starts now, and tells
// when it ends. False: there is nothing to do. It may be called only when
// nothing is under way.
func (e *Engine) Begin(now time.Time) (end time.Time, busy bool) {
	if e.busy {
		panic("engine: Begin while an iteration is under way")
	}
	idle := len(e.running) == 0 && len(e.waiting) == 0
	if idle && e.filler == nil {
		return time.Time{}, false
	}
	e.reset(now)
	budget := e.scheduleRunning(e.cfg.Profile.MaxBatchedTokens)
	if len(e.report.Preempted) == 0 {
		e.admit(now, budget)
	}
	e.plan()
	if idle && !e.filled {
		return time.Time{}, false
	}
	e.busy = true
	return e.report.End, true
}

// End completes what is under way and tells what came of it.
func (e *Engine) End() *Iteration {
	if !e.busy {
		panic("engine: End without Begin")
	}
	e.busy = false
	it := &e.report
	steps := len(it.Steps)
	e.noise = append(e.noise[:0], e.noise[min(steps, len(e.noise)):]...)
	e.counters.Iterations += uint64(steps)
	e.counters.Busy += it.End.Sub(it.Start)

	for _, s := range e.running {
		if s.scheduled > 0 {
			e.apply(s, steps)
		}
	}
	e.leave()
	if e.filled {
		e.filled = false
		e.filler.Filled(it.End)
	}
	return it
}

// Advance completes everything that ends by now and leaves the next iteration
// under way, as an engine does that never rests while it has work. Each report
// goes to see. Call it before Submit or Abort at the same instant, so that what
// ends then has ended, and after, so that an idle engine begins.
func (e *Engine) Advance(now time.Time, see func(*Iteration)) {
	at := now
	for {
		if e.busy {
			if e.report.End.After(now) {
				return
			}
			at = e.report.End
			see(e.End())
		}
		if _, busy := e.Begin(at); !busy {
			return
		}
	}
}

func (e *Engine) reset(now time.Time) {
	it := &e.report
	*it = Iteration{
		Start: now, Steps: it.Steps[:0], Admitted: it.Admitted[:0], Preempted: it.Preempted[:0],
		Produced: it.Produced[:0], First: it.First[:0], Finished: it.Finished[:0],
		Aborted: it.Aborted[:0],
	}
}

// scheduleRunning gives each running request its next tokens, preempting the
// worst while blocks are short, and returns what is left of the budget.
func (e *Engine) scheduleRunning(budget int) int {
	for i := 0; i < len(e.running); i++ {
		s := e.running[i]
		s.scheduled = 0
		tokens := min(s.known-s.computed, budget)
		if tokens == 0 {
			continue
		}
		need := blocksFor(s.computed+tokens) - s.blocks()
		for need > e.kv.available() {
			victim := e.worst()
			if victim <= i { // the slice closes up behind it
				budget += e.running[victim].scheduled
				i--
			}
			if e.preempt(victim) == s {
				need, tokens = 0, 0
			}
		}
		if need > 0 {
			e.kv.take(need)
			s.private += need
		}
		s.scheduled = tokens
		budget -= tokens
	}
	return budget
}

// worst is the index of the running request that is preempted first.
func (e *Engine) worst() int {
	worst := 0
	for i, s := range e.running {
		if e.running[worst].before(s) {
			worst = i
		}
	}
	return worst
}

func (e *Engine) preempt(index int) *sequence {
	s := e.running[index]
	e.running = slices.Delete(e.running, index, index+1)
	e.report.Preempted = append(e.report.Preempted, s.loss())
	e.kv.release(s)
	e.pending += s.computed
	s.computed, s.scheduled, s.prefilling = 0, 0, true
	s.preemptions++
	e.counters.Preemptions++
	e.waiting.add(s)
	return s
}

// admit lets waiting requests in, in order, while there is a slot, budget and
// room for the whole of what they know. The first that does not fit stops it.
func (e *Engine) admit(now time.Time, budget int) {
	for len(e.waiting) > 0 && len(e.running) < e.cfg.Profile.MaxSeqs && budget > 0 {
		s := e.waiting[0]
		// The last known token is always computed, since it gives the next one.
		hits, idle := e.kv.cachedPrefix(s.Prefix[:min(len(s.Prefix), (s.known-1)/BlockSize)])
		need := blocksFor(s.known) - hits
		reserve := int(watermark * float64(e.kv.total))
		if len(e.running) == 0 {
			reserve = 0
		}
		if e.kv.available()-idle-need < reserve {
			return
		}
		e.waiting.remove(s)
		for _, h := range s.Prefix[:hits] {
			e.kv.refer(h)
		}
		e.kv.take(need)
		s.shared, s.private = hits, need
		s.computed = hits * BlockSize
		s.found = s.computed
		e.pending -= s.computed
		if s.admitted.IsZero() {
			s.admitted = now
			s.cached = s.computed
			if e.cfg.PrefixCaching {
				e.counters.PrefixQueries += uint64(s.Prompt)
				e.counters.PrefixHits += uint64(s.cached)
			}
		}
		s.scheduled = min(s.known-s.computed, budget)
		budget -= s.scheduled
		e.running = append(e.running, s)
		e.report.Admitted = append(e.report.Admitted, Admission{ID: s.ID, Cached: s.computed})
	}
}

// plan computes the time of the scheduled iteration, and of those that can
// follow without anything else changing.
func (e *Engine) plan() {
	model := e.cfg.Profile.CostModel
	requests, prefilling, tokens, context, prefill := 0, 0, 0, 0, 0.0
	for _, s := range e.running {
		if s.prefilling {
			prefilling++
		}
		if s.scheduled == 0 {
			continue
		}
		requests++
		tokens += s.scheduled
		if s.prefilling {
			prefill += model.Prefill(costmodel.Chunk{Tokens: s.scheduled, Context: s.computed})
		} else {
			context += s.known
		}
	}
	steps := 1
	switch {
	case e.filler != nil: // which thinks anew each time
		requests, tokens, context, prefill = e.fill(e.report.Start, requests, tokens, context,
			prefill)
	case prefilling == 0 && len(e.report.Preempted) == 0 && e.stall == 0:
		steps = e.runLength()
	}

	e.report.Tokens = tokens
	e.ends = e.ends[:0]
	host, end := e.cfg.Host.extra(requests), time.Duration(0)
	for i := range steps {
		ms := model.Iteration(float64(tokens), float64(context+i*tokens), prefill) + host
		step := milliseconds(ms*e.pace*e.noiseAt(i)) + e.stall
		e.stall = 0
		end += step
		e.report.Steps = append(e.report.Steps, step)
		e.ends = append(e.ends, end)
	}
	e.report.End = e.report.Start.Add(end)
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}

// runLength is how many iterations of pure decoding can follow each other
// before a request ends or blocks run out. Nobody can be admitted meanwhile:
// who did not fit at the start fits less and less.
func (e *Engine) runLength() int {
	steps := e.cfg.MaxRun
	for _, s := range e.running {
		steps = min(steps, s.Output-s.produced)
	}
	for steps > 1 && e.growth(steps) > e.kv.available() {
		steps /= 2
	}
	return max(steps, 1)
}

// growth counts the blocks that the running requests must add to what they hold
// to decode for the given number of iterations.
func (e *Engine) growth(steps int) int {
	blocks := 0
	for _, s := range e.running {
		blocks += max(0, blocksFor(s.computed+steps)-s.blocks())
	}
	return blocks
}

func (e *Engine) noiseAt(i int) float64 {
	if e.cfg.Noise == 0 {
		return 1
	}
	if i == len(e.noise) {
		a, b := portable.Normals(e.rng)
		e.noise = append(e.noise, portable.Exp(e.cfg.Noise*a), portable.Exp(e.cfg.Noise*b))
	}
	return e.noise[i]
}

// done counts the iterations of the run under way that have ended by now.
func (e *Engine) done(now time.Time) int {
	elapsed := now.Sub(e.report.Start)
	n, found := slices.BinarySearch(e.ends, elapsed)
	if found {
		n++
	}
	return min(n, len(e.ends))
}

// cut ends the run under way with the iteration under way at now.
func (e *Engine) cut(now time.Time) {
	if !e.busy || len(e.ends) == 1 {
		return
	}
	steps := min(e.done(now)+1, len(e.ends))
	e.ends = e.ends[:steps]
	e.report.Steps = e.report.Steps[:steps]
	e.report.End = e.report.Start.Add(e.ends[steps-1])
}

// apply books the results of the iterations just ended for one request.
func (e *Engine) apply(s *sequence, steps int) {
	if s.prefilling {
		e.applyPrefill(s)
		return
	}
	s.computed += steps
	s.known += steps
	s.produced += steps
	if need := blocksFor(s.computed) - s.blocks(); need > 0 {
		e.kv.take(need)
		s.private += need
	}
	e.counters.GeneratedTokens += uint64(steps)
	e.report.Produced = append(e.report.Produced, s.ID)
}

func (e *Engine) applyPrefill(s *sequence) {
	s.computed += s.scheduled
	e.pending -= s.scheduled
	e.counters.PrefilledTokens += uint64(s.scheduled)
	for s.shared < min(len(s.Prefix), s.computed/BlockSize) {
		e.kv.share(s.Prefix[s.shared])
		s.shared++
		s.private--
	}
	if s.computed < s.known {
		return
	}
	s.prefilling = false
	s.known++
	s.produced++
	e.pending++
	e.counters.GeneratedTokens++
	e.report.Produced = append(e.report.Produced, s.ID)
	if s.firstToken.IsZero() {
		s.firstToken = e.report.End
		e.counters.PromptTokens += uint64(s.Prompt)
		e.report.First = append(e.report.First, s.ID)
	}
}

// leave removes the finished and the aborted from the running requests.
func (e *Engine) leave() {
	e.running = slices.DeleteFunc(e.running, func(s *sequence) bool {
		switch {
		case s.aborted:
			e.counters.Aborted++
			e.report.Aborted = append(e.report.Aborted, s.loss())
		case s.produced >= s.Output:
			e.counters.Finished++
			e.report.Finished = append(e.report.Finished, s.completion(e.report.End))
		default:
			return false
		}
		e.kv.release(s)
		e.forget(s)
		return true
	})
}

func (e *Engine) forget(s *sequence) {
	delete(e.byID, s.ID)
	e.pending -= s.known - s.computed
}
