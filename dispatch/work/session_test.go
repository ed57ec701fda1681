package work_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// The end of a batch that a user has to look at is a warning.
func TestEndsWithFailuresAreWarnings(t *testing.T) {
	cause := []store.Failure{{Count: 1, Status: 500}}
	for _, test := range []struct {
		state    store.State
		failed   int
		failures []store.Failure
		want     string
	}{
		{store.Completed, 0, nil, "INFO"},
		{store.Completed, 1, cause, "WARN"},
		{store.Expired, 3, nil, "WARN"}, // lines that were never sent
		{store.Failed, 3, nil, "WARN"},
		{store.Failed, 0, nil, "INFO"}, // a faulty file, which its user reads
		{store.Cancelled, 3, nil, "INFO"},
	} {
		var log bytes.Buffer
		s := work.Session{Log: slog.New(slog.NewTextHandler(&log, nil))}
		s.Ended(t.Context(), &store.Batch{ID: "batch_1", State: test.state,
			Counts: store.Counts{Failed: test.failed}, Failures: test.failures})
		if !strings.Contains(log.String(), "level="+test.want) {
			t.Errorf("%s with %d failed lines: want %s, got %s", test.state, test.failed, test.want,
				&log)
		}
	}
}
