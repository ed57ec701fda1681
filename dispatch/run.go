package dispatch

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// run is a batch that this dispatcher has a hand in.
type run struct {
	id      string
	tenant  string
	limited bool            // its own results may stop it
	work    context.Context // of its lines under way
	recall  context.CancelCauseFunc

	edits    map[editsKey]edits // by url and model; written when the source is opened
	attempts atomic.Int64       // requests sent in this session
	// of them, those of lines that were put back without a result, which no record counts
	fruitless atomic.Int64

	claiming sync.Mutex // held while a chunk is claimed, so that it is in hand when the next one is
	// held while progress is posted or a chunk is marked done, so that the two agree
	posting sync.Mutex

	mu     sync.Mutex
	batch  store.Batch // as last read
	source *source     // its open files; nil until its first claim
	// done and behind are as the store has them; no more when another dispatcher may have worked on
	// it
	counted bool
	done    store.Tally // of done chunks
	// what journals of chunks hold that others left, until they are claimed; kept only for limits
	behind    map[int]store.Tally
	reading   map[int]string // models of the chunks that are claimed and being read
	chunks    map[int]*chunk
	live      store.Tally // durable results of chunks in hand
	unwritten store.Tally // results that aren't durable yet; kept only for limits
	canary    canaryGate
	speed     speed
	posted    store.Progress // as last posted
	stopping  bool           // a limit of its own was passed; the store is being notified
	stopped   bool           // its lines may not start any more
	trouble   plan.Reason    // what keeps its chunks from being loaded, if anything
}

// waitFor notes what keeps the run's lines from being loaded; nothing does any more if reason is
// empty.
func (r *run) waitFor(reason plan.Reason) {
	r.mu.Lock()
	r.trouble = reason
	r.mu.Unlock()
}

// chunk is a claimed run of lines.
type chunk struct {
	store.Chunk
	run     *run
	journal store.Journal
	lines   []sourceLine // by slot; slots whose result was in the journal already are never started

	volatile atomic.Int64 // bytes of results that are not durable yet

	// Owned by the loop.
	inFlight  int
	unstarted int

	// Guarded by run.mu.
	pending int // results not durable yet
	tally   store.Tally
	posted  store.Tally // what the store was last told of tally
	leaving bool        // being finished or released
}

// letGo gives back what the chunk holds of memory. Nothing of it is under way, and its journal is
// closed.
func (c *chunk) letGo(m *memory) {
	for i := range c.lines {
		c.lines[i].letGo(m)
	}
	c.settled(m, c.volatile.Load())
}

// fruitless counts the requests of lines that have no result. Nothing of the chunk is under way.
func (c *chunk) fruitless() (requests int64) {
	for i := range c.lines {
		if !c.lines[i].recorded {
			requests += int64(c.lines[i].requests)
		}
	}
	return requests
}

func (s *session) newRun(b store.Batch) *run {
	r := &run{id: b.ID, tenant: b.Tenant, limited: hasLimits(&b.Options), batch: b,
		chunks: map[int]*chunk{}, reading: map[int]string{}}
	r.work, r.recall = context.WithCancelCause(s.work)
	return r
}

// close lets go of the run's files, once nothing of it is under way.
func (r *run) close() {
	r.recall(openai.ErrRecalled)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil {
		r.source.close()
		r.source = nil
	}
}

// planned is the batch as the planner sees it. Model lines are left to the caller.
func planned(b *store.Batch) plan.Batch {
	window := time.Duration(0)
	if !b.Deadline.IsZero() {
		window = b.Deadline.Sub(b.CreatedAt)
	}
	return plan.Batch{
		ID: b.ID, Tenant: b.Tenant, Priority: b.Options.Priority, Window: window,
		Created: b.CreatedAt, StartBy: b.StartBy, Deadline: b.Deadline, Paused: b.Paused,
		MaxConcurrency: b.Options.MaxConcurrency, RetryAttempts: b.Options.RetryAttempts,
		RetryOn: b.Options.RetryOn,
	}
}

// bytesPerToken turns prompt bytes into tokens where no tokenizer is at hand.
const bytesPerToken = 3.6

// plannedModels estimates what each model's lines are worth: the batch's sums, shared out by lines.
func plannedModels(b *store.Batch, left func(model string) int) []plan.ModelLines {
	total := 0
	for _, m := range b.Models {
		total += m.Lines
	}
	models := make([]plan.ModelLines, 0, len(b.Models))
	for _, m := range b.Models {
		lines := left(m.Model)
		share := float64(lines) / float64(max(1, total))
		models = append(models, plan.ModelLines{
			Model: m.Model, Lines: lines,
			PromptTokens: int64(share * float64(b.PromptBytes) / bytesPerToken), MaxTokens: int64(
				share * float64(b.MaxTokens)),
		})
	}
	return models
}

// recallAfter ends the run's lines under way when the grace is over.
func (r *run) recallAfter(grace time.Duration) {
	if grace <= 0 {
		r.recall(openai.ErrRecalled)
		return
	}
	timer := time.AfterFunc(grace, func() { r.recall(openai.ErrRecalled) })
	context.AfterFunc(r.work, func() { timer.Stop() }) // closed before
}

func (r *run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// outlivedBy reports whether the batch runs on after the run was stopped and has let go of
// everything: it was put back to work.
func (r *run) outlivedBy(b store.Batch) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped && len(r.chunks)+len(r.reading) == 0 && b.State == store.InProgress &&
		b.Version > r.batch.Version
}

// inHand lists the indexes of the chunks that this dispatcher works on.
func (r *run) inHand() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(r.chunks)), maps.Keys(r.reading))
}

// held lists the chunks in hand.
func (r *run) held() []*chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.chunks))
}

// editsKey is what an endpoint's and a model's parameters depend on.
type editsKey struct{ url, model string }

// edits are the changes to bodies that a batch asked for, resolved for one url and model.
type edits struct{ defaults, overrides map[string]json.RawMessage }

// allEdits resolves the batch's rules for everything its lines may be; empty if there are none.
func allEdits(p store.Parameters, inputs []sourceInput) map[editsKey]edits {
	all := map[editsKey]edits{}
	if len(p.Defaults) == 0 && len(p.Overrides) == 0 {
		return all
	}
	for _, in := range inputs {
		for _, url := range in.urls {
			for _, model := range in.models {
				all[editsKey{url, model}] = edits{defaults: parameters(p.Defaults, url, model),
					overrides: parameters(p.Overrides, url, model)}
			}
		}
	}
	return all
}

// parameters joins the rules that apply; a later rule wins, and the narrower ones stand later.
func parameters(rules []store.ParameterRule, url, model string) map[string]json.RawMessage {
	var joined map[string]json.RawMessage
	for _, rule := range rules {
		if (rule.URL != "" && rule.URL != url) || (rule.Model != "" && rule.Model != model) {
			continue
		}
		if joined == nil {
			joined = map[string]json.RawMessage{}
		}
		for key, value := range rule.Parameters {
			joined[key] = value
		}
	}
	return joined
}

func (e edits) none() bool { return len(e.defaults) == 0 && len(e.overrides) == 0 }

// resultID names a line's result: the same in every attempt, so that the upstream's log and the
// result file agree.
func resultID(batch string, line uint32) string {
	const prefix = "batch_"
	if len(batch) > len(prefix) && batch[:len(prefix)] == prefix {
		batch = batch[len(prefix):]
	}
	id := make([]byte, 0, 64)
	id = append(append(id, "batch_req_"...), batch...)
	// six digits at least, so that ids of one batch are of one length
	for shift := 20; shift > 0; shift -= 4 {
		if line>>shift == 0 {
			id = append(id, '0')
		}
	}
	return string(strconv.AppendUint(id, uint64(line), 16))
}

// speed is durable results per second, over about ten seconds.
type speed struct {
	since time.Time
	count int
	last  float64
}

func (s *speed) add(n int) { s.count += n }

func (s *speed) perSecond(now time.Time) float64 {
	const window = 3 * time.Second
	if s.since.IsZero() {
		s.since = now
		return 0
	}
	elapsed := now.Sub(s.since)
	if elapsed < window && (s.last > 0 || elapsed < 500*time.Millisecond) {
		return s.last
	}
	s.last = float64(s.count) / elapsed.Seconds()
	s.since, s.count = now, 0
	return s.last
}

// heldModels returns the names of the models of which chunks are held.
func (s *session) heldModels() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[string]bool{}
	for _, r := range s.runs {
		r.mu.Lock()
		for _, c := range r.chunks {
			held[modelName(c.Model)] = true
		}
		for _, model := range r.reading {
			held[modelName(model)] = true
		}
		r.mu.Unlock()
	}
	return held
}

// leadsAnyOf reports whether this dispatcher leads a model of the run's batch.
func (s *session) leadsAnyOf(r *run) bool {
	r.mu.Lock()
	models := r.batch.Models
	r.mu.Unlock()
	return slices.ContainsFunc(models, func(m store.ModelLines) bool {
		return s.lease.leading.leadsModel(m.Model)
	})
}
