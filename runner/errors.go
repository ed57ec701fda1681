package runner

// Codes of errors by which a runner sheds load. Both are sent with Retry-After.
const (
	CodeQueueFull   = "queue_full"          // 503
	CodeRateLimited = "rate_limit_exceeded" // 429
)

// ErrorBody is OpenAI's error envelope.
type ErrorBody struct {
	Error Error `json:"error"`
}

// Error is OpenAI's error object with the fields that the Model Runner API adds when the queue is
// full or a tenant's rate limit is exceeded.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code,omitempty"`

	QueueDepth *int     `json:"queueDepth,omitempty"`
	AvgWaitMs  *float64 `json:"avgWaitMs,omitempty"`

	Limit     *int   `json:"limit,omitempty"`
	Remaining *int   `json:"remaining,omitempty"`
	ResetAt   *int64 `json:"resetAt,omitempty"` // Unix seconds
}
