package plan

import "time"

// Actions is the result of an event: what the driver has to do. The slices are valid until the next
// Step.
type Actions struct {
	// Start lists the requests to send now, in order.
	Start []Start
	// Claim lists the jobs whose next chunk to claim. Each claim is answered by Loaded.
	Claim []Claim
	// Evict lists lines in flight to cancel now. Each ends with Finished, with the outcome Evicted
	// unless its answer was faster.
	Evict []Start
	// Admit lists the interactive requests that start now, and Refuse those that get no place.
	Admit  []Admission
	Refuse []Refusal
	// Verdict says what to do with the answer of a Finished event.
	Verdict Verdict
	// Changed says that the allowance of a pool, or what limits it, has changed.
	Changed bool
	// Wake is the latest time of the next event; send a Tick then. Zero: no time is set.
	Wake time.Time
}

// Start is a request to send.
type Start struct {
	Key     JobKey
	Chunk   int
	Slot    int // of the line in its chunk, as in Loaded
	Runner  string
	Attempt int // from 1; sheds do not count
	// Stream requests a streamed answer, so that FirstToken and TokenGaps can be reported. The
	// recorded answer is the same.
	Stream bool

	number uint64 // of the start, increasing
	line   line
	cached int32 // tokens of its prompt that are expected in the runner's prefix cache
	job    *job
	runner *runner
	life   uint32 // runner.life when the line started
	trial  uint32 // number of the trial of the runner's breaker; 0: not a trial
	// tally is that of the model on the runner, started its value when the line started
	tally   *tally
	started tally
}

// Claim requests the next chunk of a job.
type Claim struct{ Key JobKey }

// Verdict says what to do with an answer.
type Verdict uint8

const (
	// Record: the answer is the result of the line, good or bad. Write it.
	Record Verdict = iota
	// Retry: the planner will start the line again. Drop the answer.
	Retry
	// Return: the batch is gone. Return the line undone, unless the answer is worth keeping.
	Return
)

// Reason names what prevents further starts: of a batch (BatchStatus.Waiting), a pool
// (PoolStatus.Reason) or a runner (RunnerStatus.Limited). It is a metric label. Reasons of
// flow-control policies are [flowcontrol.Reason] and share the names. Explanations has their words.
type Reason string

const (
	Flowing        Reason = ""                 // nothing; lines are starting
	NothingReady   Reason = "nothing_ready"    // no line waits
	AtLimit        Reason = "at_limit"         // the allowance is used up
	RunnersDown    Reason = "runners_down"     // no runner can be reached; the breaker retries
	RunnersFailing Reason = "runners_failing"  // every runner answers with errors; see health.go
	Failing        Reason = "failing"          // this runner does
	NoRunner       Reason = "no_runner"        // no runner serves the model
	WaitingToRetry Reason = "waiting_to_retry" // all lines left wait for their next attempt
	Paused         Reason = "paused"
	BatchLimit     Reason = "max_concurrency" // the limit of the batch
	Queued         Reason = "queued"          // other batches have the capacity
	// lines are being read, or another dispatcher holds them
	Loading Reason = "loading"
	// the process is stopping, or the runner takes no more lines
	Draining Reason = "draining"
	Closed   Reason = "closed" // the pool, by PoolClosed
	// No pool may be used; see Batch.Pools.
	NoDeployment Reason = "no_deployment" // of the batch's template
	NoOpenPool   Reason = "no_open_pool"  // by the batch's profile
	// What runners say of themselves; see RunnerStop.
	Unhealthy      Reason = "unhealthy"
	Starting       Reason = "starting"
	QueueFull      Reason = "queue_full"
	ModelNotLoaded Reason = "model_not_loaded"
	KVFull         Reason = "kv_full"
	DiskFull       Reason = "disk_full"
	StorageAway    Reason = "storage_away" // that of the batch's profile or output_url
	// Of interactive requests, those of package flows among them:
	Waited  Reason = "waited"
	TooMany Reason = "too_many_waiting"
	// A fallback answers, since the request's pool had no place.
	Fallback Reason = "fallback"
	// Requests with an objective would miss it if more ran.
	ObjectiveAtRisk Reason = "objective_at_risk"
	LinesYield      Reason = "lines_yield" // lines that hold the places are being evicted
	// Nobody works on a batch. The planner does not return these: no process plans the batch.
	NoDispatcher Reason = "no_dispatcher" // no process dispatches
	NoLeader     Reason = "no_leader"     // the one that leads does not renew its lease
	StoreDown    Reason = "store_unreachable"
)
