package openai

import (
	"net/http"
	"testing"
	"time"
)

// A wait that is no time is no wait: one line's answer must not stop a runner.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "1.5", 1500 * time.Millisecond},
		{"Retry-After", "Thu, 01 Jan 2026 12:00:09 GMT", 9 * time.Second},
		{"Retry-After", "Thu, 01 Jan 2026 11:00:00 GMT", 0},
		{"Retry-After", "99999999999999999999", 24 * time.Hour},
		{"Retry-After", "-5", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "Inf", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After-Ms", "Inf", 0},
		{"Retry-After-Ms", "NaN", 0},
	} {
		if got := retryAfter(http.Header{test.name: {test.value}}, now); got != test.want {
			t.Errorf("%s: %s is %v, want %v", test.name, test.value, got, test.want)
		}
	}
}
