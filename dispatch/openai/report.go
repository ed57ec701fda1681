package openai

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Report is what the headers of an answer say about the server.
type Report struct {
	// QueueWait is how long the request waited in the server, GPUTime how long it was computed
	// (Model Runner API). Negative: not reported.
	QueueWait, GPUTime time.Duration
	// Dropped is why llm-d's endpoint picker did not have the request answered. Empty: it did, or
	// there is no picker.
	Dropped DropReason
}

// DropReason says why an endpoint picker dropped a request.
type DropReason string

// The reasons to drop a request, as the endpoint picker names them. Evictions have further words
// after evicted.
const (
	droppedSaturated   DropReason = "rejected-saturated"
	droppedExpired     DropReason = "rejected-ttl-expired"
	droppedEvicted     DropReason = "evicted"
	droppedNoEndpoints DropReason = "rejected-no-endpoints"
	droppedCancelled   DropReason = "rejected-context-cancelled"
	droppedStopping    DropReason = "rejected-shutting-down"
	droppedOther       DropReason = "other" // one that is not known, which must not become a label
)

const (
	queueWaitHeader = "X-Queue-Wait-Ms"
	gpuTimeHeader   = "X-Gpu-Time-Ms"
	droppedHeader   = "X-Llm-D-Request-Dropped-Reason"
)

func readReport(h http.Header) Report {
	return Report{QueueWait: reportedTime(h, queueWaitHeader),
		GPUTime: reportedTime(h, gpuTimeHeader), Dropped: droppedReason(h)}
}

// readTrailer takes over what a server knows only at the end of a stream.
func (r *Report) readTrailer(h http.Header) {
	if took := reportedTime(h, gpuTimeHeader); took >= 0 {
		r.GPUTime = took
	}
}

// longestReported limits the times that servers report: more is a mistake.
const longestReported = float64(24*time.Hour) / float64(time.Millisecond)

// reportedTime reads a header in milliseconds; negative: it is absent or can't be true.
func reportedTime(h http.Header, name string) time.Duration {
	values := h[name]
	if len(values) == 0 {
		return -1
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(values[0]), 64)
	if err != nil || math.IsNaN(ms) || ms < 0 || ms > longestReported {
		return -1
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func droppedReason(h http.Header) DropReason {
	values := h[droppedHeader]
	if len(values) == 0 || values[0] == "" {
		return ""
	}
	switch reason := DropReason(strings.ToLower(strings.TrimSpace(values[0]))); reason {
	case droppedSaturated, droppedExpired, droppedNoEndpoints, droppedCancelled, droppedStopping:
		return reason
	default:
		if strings.HasPrefix(string(reason), string(droppedEvicted)) {
			return droppedEvicted
		}
		return droppedOther
	}
}

// outcome returns the outcome of a request that was dropped for the reason; false: the status says
// more.
func (r DropReason) outcome() (plan.Outcome, bool) {
	switch r {
	case droppedSaturated, droppedExpired, droppedEvicted:
		return plan.Shed, true
	case droppedNoEndpoints, droppedCancelled, droppedStopping:
		// No engine has received it, and load is not why. So it is sent again at no charge, after a
		// pause, and given up like a line that is shed while others are answered.
		return plan.Unreachable, true
	default:
		return 0, false
	}
}
