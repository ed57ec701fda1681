package work

import (
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// ratioSample is the least number of lines over which the share of failed ones is computed (or the
// batch's, if that is smaller), so that one early failure does not stop a batch.
const ratioSample = 100

// exceeded returns the code of the batch's own limit that its results have passed, and a sentence
// for the user; empty: none.
func exceeded(o *store.Options, total int, t store.Tally) (code, why string) {
	finished := t.Completed + t.Failed
	switch {
	case o.StopAtFailed > 0 && t.Failed >= o.StopAtFailed:
		return "max_failed_lines_exceeded",
			fmt.Sprintf("%d lines failed, the limit is %d (tidefill.max_failed_lines)",
				t.Failed, o.StopAtFailed-1)
	case o.MaxFailedRatio > 0 && float64(t.Failed) > o.MaxFailedRatio*float64(
		max(finished, min(total, ratioSample))):
		return "max_failed_ratio_exceeded",
			fmt.Sprintf("%d of %d finished lines failed, the limit is a share of %.3g "+
				"(tidefill.max_failed_ratio)", t.Failed, finished, o.MaxFailedRatio)
	case o.MaxTotalTokens > 0 && t.Usage.TotalTokens > o.MaxTotalTokens:
		return "max_total_tokens_exceeded",
			fmt.Sprintf("the answers used %d tokens, the limit is %d (tidefill.max_total_tokens)",
				t.Usage.TotalTokens, o.MaxTotalTokens)
	case o.MaxResultBytes > 0 && t.Bytes > o.MaxResultBytes:
		return "output_limit_exceeded", fmt.Sprintf("the results have %d bytes, the limit of the "+
			"batch's profile is %d (quota.max_output_size_gb)", t.Bytes, o.MaxResultBytes)
	default:
		return "", ""
	}
}

// hasLimits reports whether a batch may be stopped by its own results.
func hasLimits(o *store.Options) bool {
	return o.StopAtFailed > 0 || o.MaxFailedRatio > 0 || o.MaxTotalTokens > 0 ||
		o.MaxResultBytes > 0
}
