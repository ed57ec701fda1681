package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// JobKey identifies a job: the lines of one model of one batch.
type JobKey struct{ Batch, Model string }

// String identifies the job: a batch has one for each of its models. It is the ID of the batch if
// the model is not named.
func (k JobKey) String() string {
	if k.Model == "" {
		return k.Batch
	}
	return k.Batch + "/" + k.Model
}

// Compare orders keys by batch, then by model.
func (k JobKey) Compare(other JobKey) int {
	return cmp.Or(strings.Compare(k.Batch, other.Batch), strings.Compare(k.Model, other.Model))
}

// Batch describes a batch to the planner.
type Batch struct {
	ID, Tenant                 string
	Priority                   int
	Window                     time.Duration
	Created, StartBy, Deadline time.Time
	Paused                     bool
	MaxConcurrency             int   // limit of lines in flight; 0: none
	RetryAttempts              int   // 0: the configured number
	RetryOn                    []int // nil: the configured statuses
	// CheckAttempts limits the answers to a line that are asked for until one passes the check of
	// the batch, the first included, and within RetryAttempts.
	CheckAttempts int
	// Backoff holds the pauses before the second attempt, the third, and so on; the last one is
	// repeated. Nil: the configured ones.
	Backoff []time.Duration
	// Preemptible says that lines in flight may be evicted for those of batches that go before.
	Preemptible bool
	// Pools lists the names of the pools that the batch may use, the first choice first; empty
	// names are those of pools without a name. Nil: all that are not reserved.
	Pools []string
	// Nowhere is why no runner serves the batch, if that is due to Pools; Flowing: it is not.
	Nowhere Reason
	Models  []ModelLines
}

// may reports whether the batch may use a pool.
func (b *Batch) may(use *pool) bool {
	if b.Pools == nil {
		return !use.reserved
	}
	return slices.Contains(b.Pools, use.name)
}

// choosy reports whether the batch prefers some pools to others.
func (b *Batch) choosy() bool { return len(b.Pools) > 1 }

// ModelLines is the work left of a batch's model. A later BatchPut may leave it out. If it does
// not, it corrects the work left: other processes may do some of it.
type ModelLines struct {
	Model string
	// Lines counts those left, without those that were loaded.
	Lines                   int
	PromptTokens, MaxTokens int64 // sums over the lines; MaxTokens 0: the lines have no limits
}

// Line is one line of a claimed chunk.
type Line struct {
	Slot         int
	PromptTokens int
	MaxTokens    int // 0: no limit
}

// line is the planner's record of a line.
type line struct {
	chunk, slot int32
	prompt, max int32
	work        float32 // as charged at its last start
	tries       uint16  // charged attempts
	deaths      uint16  // of runners while it was in flight
	waits       uint16  // pauses after which no attempt was charged
	checks      uint16  // answers that have failed the check of the batch
	trouble     *trouble
}

// lineAt identifies a line of a job.
type lineAt struct{ chunk, slot int32 }

// batchState is a batch with all its jobs.
type batchState struct {
	Batch
	jobs       []*job
	inFlight   int
	begun      bool // a line has started
	infeasible bool // by the last Feasibility
}

// mayStart reports whether the batch's own limits allow another line.
func (b *batchState) mayStart() bool {
	return !b.Paused && (b.MaxConcurrency == 0 || b.inFlight < b.MaxConcurrency)
}

// job is the lines of a JobKey.
type job struct {
	key   JobKey
	id    string
	batch *batchState
	pools []*pool

	failed   Reason // why its last claim failed; Flowing: it did not
	ready    lineQueue
	aside    []line // ready, but for a runner that has not failed them
	inFlight int
	retrying int
	lines    int     // left, claimed or not
	work     float64 // left, in milliseconds
	ranked   float64 // work at the last ranking
	// promptMean is the mean number of prompt tokens of a line, limitMean that of output tokens it
	// may have at most. limitMean 0: no limit.
	promptMean, limitMean float64
	output                outputMean // of lines answered here
	ages                  ages       // of those in flight
	lengths               lengths
	cached                cachedShare
	least                 float64 // lower bound of a line's mean output tokens, by lengths

	longest int                   // answer, in tokens
	sheds   map[lineAt]shedRecord // of lines without a result
	tally   *modelTally           // of the model by runner, shared with its other jobs

	wells    int     // good answers
	wellOn   *runner // of the last good answer
	well     uint64  // the latest Start that was answered well
	troubled int     // lines without a result that have a trouble
	unknown  []absence
	offered  bool // a line of it was ready once

	room Room // the last one

	more       bool // there may be chunks to claim
	claims     []pendingClaim
	expecting  int       // estimate of the lines that they will load
	claimAfter time.Time // not before this
	inStarts   bool      // a line of it can start
	inLoads    bool      // a chunk of it can be claimed, or a line can start
	gone       bool
}

// queued returns the job as the scheduler orders it.
func (j *job) queued(rate float64) scheduler.Job {
	b := &j.batch.Batch
	startBy := b.StartBy
	if j.batch.begun {
		startBy = time.Time{}
	}
	return scheduler.Job{
		ID: j.id, Tenant: b.Tenant, Model: j.key.Model, Priority: b.Priority, Window: b.Window,
		Created: b.Created, StartBy: startBy, Deadline: b.Deadline,
		Lines: j.lines, Work: j.work, Rate: rate, Infeasible: j.batch.infeasible,
	}
}

func (j *job) startable() bool {
	return j.readyLines() > 0 && j.batch.mayStart() && j.hasRoom()
}

func (j *job) readyLines() int { return j.ready.len() + len(j.aside) }

// readyTokens returns the prompt tokens of the ready lines.
func (j *job) readyTokens() int {
	sum := j.ready.promptTokens()
	for _, l := range j.aside {
		sum += int(l.prompt)
	}
	return sum
}

// claimable reports whether a chunk may be claimed: not once all lines left were loaded or are
// being read. If the planner holds none, one more claim verifies that none is left.
func (j *job) claimable(now time.Time) bool {
	held := j.loaded() + j.expecting
	return j.more && (j.lines > held || held == 0) && len(j.claims) < maxClaims &&
		!j.batch.Paused && !j.claimAfter.After(now)
}

// loaded counts the lines left that were loaded.
func (j *job) loaded() int { return j.readyLines() + j.inFlight + j.retrying }

// enough returns the number of ready lines that the job can use: the look-ahead of its pool, or the
// concurrency limit of its batch.
func (j *job) enough(lookAhead int) int {
	if limit := j.batch.MaxConcurrency; limit > 0 {
		return min(limit, lookAhead)
	}
	return lookAhead
}

// pendingClaim is a Claim without an answer.
type pendingClaim struct {
	pool   *pool // whose look-ahead it counts for
	lines  int   // estimate
	tokens int   // of their prompts, estimate
}

// maxClaims limits the claims of a job without an answer: enough to read ahead while the store is
// slow, few enough to leave chunks to other dispatchers.
const maxClaims = 3

// claimDone removes the oldest claim and its estimates.
func (j *job) claimDone() {
	if len(j.claims) == 0 {
		return
	}
	c := j.claims[0]
	j.claims = j.claims[1:]
	j.expecting -= c.lines
	c.pool.expected -= c.lines
	c.pool.expectedTokens -= c.tokens
}

func (j *job) dropClaims() {
	for len(j.claims) > 0 {
		j.claimDone()
	}
}

// lineQueue is a first-in-first-out queue that also takes lines at its head.
type lineQueue struct {
	lines []line
	head  int
}

func (q *lineQueue) len() int { return len(q.lines) - q.head }

func (q *lineQueue) promptTokens() int {
	sum := 0
	for _, l := range q.lines[q.head:] {
		sum += int(l.prompt)
	}
	return sum
}

func (q *lineQueue) push(l line) { q.lines = append(q.lines, l) }

// pushFront adds a line at the head, for the next attempt of a line that has waited.
func (q *lineQueue) pushFront(l line) {
	if q.head == 0 {
		grown := make([]line, len(q.lines)+16, 2*len(q.lines)+32)
		copy(grown[16:], q.lines)
		q.lines, q.head = grown, 16
	}
	q.head--
	q.lines[q.head] = l
}

// insert adds a line behind the first n.
func (q *lineQueue) insert(n int, l line) {
	at := q.head + min(n, q.len())
	q.lines = slices.Insert(q.lines, at, l)
}

// at returns the line at a place, from the head.
func (q *lineQueue) at(i int) line { return q.lines[q.head+i] }

// take removes and returns the line at a place, from the head.
func (q *lineQueue) take(i int) line {
	l := q.at(i)
	copy(q.lines[q.head+1:], q.lines[q.head:q.head+i])
	q.lines[q.head] = l
	return q.pop()
}

// remove removes and returns the lines of a chunk.
func (q *lineQueue) remove(chunk int32) (removed []line) {
	var kept []line
	for _, l := range q.lines[q.head:] {
		if l.chunk == chunk {
			removed = append(removed, l)
		} else {
			kept = append(kept, l)
		}
	}
	q.lines, q.head = kept, 0
	return removed
}

func (q *lineQueue) pop() line {
	l := q.lines[q.head]
	q.head++
	switch {
	case q.head == len(q.lines):
		q.lines, q.head = q.lines[:0], 0
	case q.head >= 1024 && q.head*2 >= len(q.lines):
		n := copy(q.lines, q.lines[q.head:])
		q.lines, q.head = q.lines[:n], 0
	}
	return l
}
