package plan

import (
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// JobKey names a job: the lines of one model of one batch.
type JobKey struct{ Batch, Model string }

// Batch is what planning needs to know of a batch.
type Batch struct {
	ID, Tenant                 string
	Priority                   int
	Window                     time.Duration
	Created, StartBy, Deadline time.Time
	Paused                     bool
	MaxConcurrency             int   // lines in flight at most; 0: no limit
	RetryAttempts              int   // 0: the configured number
	RetryOn                    []int // nil: the configured statuses
	Models                     []ModelLines
}

// ModelLines says how much of a model's work is left in a batch, claimed or not. A later BatchPut
// may leave them out; if it doesn't, it corrects what is left (a restart learns only at its first
// claim what was done before).
type ModelLines struct {
	Model                   string
	Lines                   int
	PromptTokens, MaxTokens int64 // summed over the lines; MaxTokens 0: no limits were given
}

// Line is one line of a claimed chunk.
type Line struct {
	Slot         int
	PromptTokens int
	MaxTokens    int // 0: no limit was given
}

// line is a line as the planner keeps it, with what it has used up.
type line struct {
	chunk, slot int32
	prompt, max int32
	work        float32 // as charged when it was last started
	tries       uint16  // charged attempts
	deaths      uint16  // of runners while it was under way
	waits       uint16  // pauses that cost nothing
}

// lineAt finds a line of a job.
type lineAt struct{ chunk, slot int32 }

// batchState is a batch with all its jobs.
type batchState struct {
	Batch
	jobs       []*job
	inFlight   int
	begun      bool // a line has been started
	infeasible bool // as judged last
}

// mayStart reports whether the batch's own rules let one more line go.
func (b *batchState) mayStart() bool {
	return !b.Paused && (b.MaxConcurrency == 0 || b.inFlight < b.MaxConcurrency)
}

// job is a JobKey's lines.
type job struct {
	key   JobKey
	id    string
	batch *batchState
	pools []*pool

	ready    lineQueue
	inFlight int
	retrying int
	lines    int     // left, claimed or not
	work     float64 // left
	ranked   float64 // work at the last ranking
	// promptMean is how many prompt tokens a line has, limitMean how many output tokens it may
	// bring; 0: no limit.
	promptMean, limitMean float64
	output                outputMean // of the lines answered here
	ages                  ages       // of those under way
	lifetimes             lifetimes
	// tokens of a line on average, as of the last look at both
	least   float64
	longest int                   // answer among them, in tokens
	sheds   map[lineAt]shedRecord // of lines without a result
	near    *account              // of the model

	more       bool // there may be chunks to claim
	claims     []pendingClaim
	expecting  int       // lines that they will bring, as far as one can guess
	claimAfter time.Time // not before this
	inStarts   bool      // its pools may start a line of it
	inLoads    bool      // and its pools may claim a chunk of it, or start a line
	gone       bool
}

// queued is the job as the scheduler sees it.
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

func (j *job) startable() bool { return j.ready.len() > 0 && j.batch.mayStart() }

// claimable reports whether a chunk may be claimed. Once all lines that are left are in hand or
// being read, it's no use; only when none is, one more look tells whether that was true.
func (j *job) claimable(now time.Time) bool {
	inHand := j.ready.len() + j.inFlight + j.retrying + j.expecting
	return j.more && (j.lines > inHand || inHand == 0) && len(j.claims) < mostClaims &&
		!j.batch.Paused && !j.claimAfter.After(now)
}

// enough is how many ready lines the job can use: what its pool looks ahead, or all that its batch
// may have under way.
func (j *job) enough(lookAhead int) int {
	if limit := j.batch.MaxConcurrency; limit > 0 {
		return min(limit, lookAhead)
	}
	return lookAhead
}

// pendingClaim is a Claim that has not been answered.
type pendingClaim struct {
	pool   *pool // whose look-ahead it counts for
	lines  int   // expected of it
	tokens int   // of their prompts
}

// mostClaims is how many may be out for one job: enough to read ahead while the store is slow, few
// enough that a batch is not drained of chunks that other dispatchers could run.
const mostClaims = 3

// claimDone takes back what the oldest outstanding claim let its pool expect.
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

func (j *job) forgetClaims() {
	for len(j.claims) > 0 {
		j.claimDone()
	}
}

// lineQueue is a first-in-first-out queue whose head can be given back.
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

// pushFront puts a line before all others: one that waited for its next attempt has waited enough.
func (q *lineQueue) pushFront(l line) {
	if q.head == 0 {
		grown := make([]line, len(q.lines)+16, 2*len(q.lines)+32)
		copy(grown[16:], q.lines)
		q.lines, q.head = grown, 16
	}
	q.head--
	q.lines[q.head] = l
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
