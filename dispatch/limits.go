package dispatch

import (
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// ratioSample is how many lines a failed share is judged over at least (or the batch, if it is
// smaller): the first line's failure is not a share of one.
const ratioSample = 100

// exceeded says which of the batch's own limits its results have passed, and how; an empty code:
// none.
func exceeded(o *store.Options, total int, t store.Tally) (code, why string) {
	finished := t.Completed + t.Failed
	switch {
	case o.StopAtFailed > 0 && t.Failed >= o.StopAtFailed:
		return "max_failed_lines_exceeded",
			fmt.Sprintf("%d lines failed, more than the %d that may (tidefill.max_failed_lines)",
				t.Failed, o.StopAtFailed-1)
	case o.MaxFailedRatio > 0 && float64(t.Failed) > o.MaxFailedRatio*float64(
		max(finished, min(total, ratioSample))):
		return "max_failed_ratio_exceeded",
			fmt.Sprintf(
				"%d of %d finished lines failed, more than the share of %.3g that may (tidefill.max_failed_ratio)", t.Failed, finished, o.MaxFailedRatio)
	case o.MaxTotalTokens > 0 && t.Usage.TotalTokens > o.MaxTotalTokens:
		return "max_total_tokens_exceeded",
			fmt.Sprintf(
				"the answers used %d tokens, more than the %d that may be (tidefill.max_total_tokens)", t.Usage.TotalTokens, o.MaxTotalTokens)
	default:
		return "", ""
	}
}

// hasLimits reports whether a batch may be stopped by its own results.
func hasLimits(o *store.Options) bool {
	return o.StopAtFailed > 0 || o.MaxFailedRatio > 0 || o.MaxTotalTokens > 0
}

// overLimit is exceeded for the run; it speaks once. r.mu is held.
func (r *run) overLimit() (code, why string) {
	if r.stopped || r.stopping {
		return "", ""
	}
	results := plus(plus(r.done, r.live), r.unwritten)
	for _, t := range r.behind {
		results = plus(results, t)
	}
	code, why = exceeded(&r.batch.Options, r.batch.Counts.Total, results)
	r.stopping = code != ""
	return code, why
}

// answered counts a result that goes into a journal. A batch with limits is stopped by its results
// as they come, not only when they are durable: so that no more than what is in flight comes on
// top.
func (s *session) answered(r *run, rec store.Record) {
	if !r.limited {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unwritten = plus(r.unwritten, tallyOf(rec))
	s.stopIfOver(r)
}

// written takes results that have become durable off those that are not. r.mu is held.
func (r *run) written(t store.Tally) {
	if r.limited {
		r.unwritten = minus(r.unwritten, t)
	}
}

// tallyOf is what one result adds to a tally.
func tallyOf(rec store.Record) store.Tally {
	t := store.Tally{Usage: rec.Usage}
	if rec.Failed {
		t.Failed = 1
	} else {
		t.Completed = 1
	}
	return t
}
