package plan

// Explanation says in words what a Reason means.
type Explanation struct {
	Reason  Reason
	Meaning string
	Remedy  string // what to do; empty: nothing
}

// Explanations returns a sentence for every reason, those of flow-control policies included.
// docs/metrics.md is generated from it. Callers that know more of a case replace the meaning
// (Reason.Because), or all words of NoRunner. Package api repeats those of Paused, because it does
// not import this package.
func Explanations() []Explanation {
	const (
		wait  = "Wait."
		users = "Wait. If it lasts while the pool is idle, check the pool's warnings and " +
			"`flowcontrol.slo`."
		sources = "Check the runners, and `tidefill_reading_degraded`."
	)
	return []Explanation{
		{"flowing", "Lines start as others end.", ""},
		{"none", "Nothing limits the allowance.", ""},
		{NothingReady, "No line waits.", ""},
		{AtLimit, "The allowance is used up.", wait},
		{"runner_limit", "The configured limit of lines per runner is reached.",
			"Raise the limit of the policy, if engines can carry more."},
		{"pool_limit", "The configured limit of lines per pool is reached.",
			"Raise the limit of the policy, if the pool can carry more."},
		{NoRunner, "No runner serves the model.",
			"Start one, or cancel the batch. It fails by itself if the model was never served."},
		{RunnersDown, "Every runner of the model is unreachable, or a gateway without an engine.",
			"Start one: lines are sent when one answers."},
		{RunnersFailing, "Every runner of the model answers with errors, and nothing shows that " +
			"the lines are the cause; one is tried now and then.",
			"Check the runners: lines are sent when one answers well."},
		{Failing, "The runner answers nearly all lines with errors; one is tried now and then.",
			"Check the runner."},
		{"unreachable", "Lines get no answer from the runner; one is tried now and then.",
			"Check the runner."},
		{Unhealthy, "The runner says that it is not healthy.", "Check the runner."},
		{Starting, "The runner says that it is starting.", wait},
		{ModelNotLoaded, "The runner says that it has not loaded the model.",
			"Load the model, or check the runner."},
		{QueueFull, "The runner says that its queue is full.", wait},
		{KVFull, "The runner says that its KV cache is full.", wait},
		{"watching", "The policy watches the pool before lines start. That takes 5 s where " +
			"nothing shows users, else until it has seen 60 requests, a minute at most. Without " +
			"an objective, it takes up to three minutes if 30 requests were not seen by then.",
			wait},
		{"growing", "Nothing has shown yet that more lines are safe, so they grow step by step.",
			wait},
		{"shed", "The runner refused lines for load (429 or 503).", wait},
		{"budget", "The requests or tokens that the provider grants per minute are used up.",
			wait},
		{"money", "The money that a fallback may cost per day is used up.",
			"Wait for the next day (UTC), or raise `money_per_day` of the pool's fallback."},
		{"retry_after", "The runner asked for a pause (Retry-After).", wait},
		{"token_time", "Interactive users would get tokens too slowly: iterations take as long " +
			"as they may, or prompts have used their share of the time.", users},
		{"first_token", "More lines would delay the first tokens of interactive users too much.",
			users},
		{"prompt_limit", "Enough prompt tokens of batch lines wait to be computed.", users},
		{"queue", "Interactive requests wait in the runner's queue.", users},
		{"late_lines", "With more lines, too many interactive requests would be late: so it was " +
			"lately.", users},
		{"late", "Too many interactive requests were late in the last half hour.", users},
		{"kv", "The rest of the KV cache is kept for interactive requests.", users},
		{"slots", "The engine's other sequences are kept for interactive requests.", users},
		{"brake", "Interactive requests suffer, so lines are evicted.", users},
		{"packed", "The runner is being filled with lines, so that others stay free.", wait},
		{"aging", "The runner was not observed for some seconds, so its lines do not grow.",
			sources},
		{"stale", "The runner was not observed for a minute, so its lines shrink.", sources},
		{WaitingToRetry, "The remaining lines wait for their next attempt.", wait},
		{BatchLimit, "The batch has reached its own limit of lines in flight.", wait},
		{Queued, "The batches before it use the capacity.",
			"Wait, or set an earlier deadline or a higher priority."},
		{Paused, "Somebody paused the batch.", "Resume it: `tidefill batch resume`."},
		{Loading, "Lines are being read, or another process holds them.",
			"Wait. If it lasts, check the log and the store."},
		{DiskFull, "The disk is full, so results, or answers too large for memory, can't be kept.",
			"Free space, or enlarge the disk."},
		{StoreDown, "The store accepts no writes.", "Check the store, and the log."},
		{StorageAway, "The storage of the batch's profile, or the bucket of its `output_url`, " +
			"does not take its results.",
			"Check the storage, its credentials, and the log: the batch ends when it takes them."},
		{NoDispatcher, "No process with the role `dispatch` runs, so nobody checks batches or " +
			"sends lines.", "Start one."},
		{NoLeader, "The process that leads the model does not renew its lease.",
			"Wait: another process takes over when the lease ends. If none does, start one with " +
				"the role `dispatch`."},
		{Closed, "The scaling policy keeps batch lines from the pool.", wait},
		{NoDeployment, "The batch's template has no deployment.",
			"Bind the template to a pool, by the pool's key `templates`."},
		{NoOpenPool, "The batch's profile permits none of the pools: by their providers, or " +
			"because their replicas may be reclaimed.",
			"Use another profile, or change `provider` or `reclaim` of a pool."},
		{Waited, "Requests of its class or others had the places, for as long as the request may " +
			"wait.", wait},
		{TooMany, "Too many interactive requests wait for a place already.", wait},
		{Fallback, "The request's pool had no place, so its fallback, a server elsewhere, answers.",
			""},
		{ObjectiveAtRisk, "Interactive requests of a use case with an objective would miss it if " +
			"more ran.", wait},
		{LinesYield, "Batch lines that hold the places are being evicted.", ""},
		{Draining, "The process is stopping, or the runner is about to be removed.",
			"Wait for the restart, or for another runner."},
	}
}

// Explain returns the words for a reason; for one that nobody has worded, nothing but its name.
func Explain(r Reason) Explanation {
	for _, e := range Explanations() {
		if e.Reason == r {
			return e
		}
	}
	return Explanation{Reason: r}
}
