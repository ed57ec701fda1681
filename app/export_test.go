package app

import (
	"testing"
	"time"
)

// ShortenRetries has refused files tried again after a short time in the daemons that a test starts
// from now on.
func ShortenRetries(t *testing.T, interval time.Duration) {
	before := retryInterval
	retryInterval = interval
	t.Cleanup(func() { retryInterval = before })
}
