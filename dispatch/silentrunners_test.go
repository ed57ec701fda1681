package dispatch

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// A runner that answers no line is logged once, with the last failure, and when it answers again.
func TestSilentRunnersAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var silent silentRunners
	for i, step := range []struct {
		at   int // seconds
		open bool
		want string // empty: nothing
	}{
		{0, false, ""}, {1, true, ""}, {3, false, ""}, // too short
		{4, true, ""}, {8, true, ""},
		{9, true, `level=WARN msg="a runner answers no line`}, {10, true, ""}, {100, true, ""},
		{104, false, `level=INFO msg="a runner answers lines again" pool=m runner=r after=1m40s`},
		{105, false, ""}, {106, true, ""}, {111, true, "last=upstream_unreachable status=502"},
	} {
		out.Reset()
		runner := plan.RunnerStatus{ID: "r", Open: step.open,
			Failed: plan.RunnerFailure{Outcome: plan.Unreachable, Status: 502}}
		silent.log(log, time.Unix(int64(step.at), 0),
			[]plan.PoolStatus{{ID: "m", Runners: []plan.RunnerStatus{runner}}})
		got := out.String()
		if !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}

// A runner that answers nearly all lines badly is logged at once, with what it answers, and when it
// answers well again. One that turns bad and well again and again does not fill the log.
func TestFailingRunnersAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var silent silentRunners
	for i, step := range []struct {
		at   int // seconds
		open bool
		want string // empty: nothing
	}{
		{0, false, ""},
		{1, true, `last=failed status=500 bad="37 of the last 40"`}, {2, true, ""},
		{3, false, `level=WARN msg="a runner answers lines well again" pool=m runner=r after=2s`},
		{4, true, ""}, {5, false, ""}, {6, true, ""}, {11, true, "level=WARN"}, {12, false, "well"},
		{100, true, "level=WARN"},
	} {
		out.Reset()
		runner := plan.RunnerStatus{ID: "r", Open: step.open, Failing: step.open, Bad: 37,
			Judged: 40, Failed: plan.RunnerFailure{Outcome: plan.Failed, Status: 500}}
		silent.log(log, time.Unix(int64(step.at), 0),
			[]plan.PoolStatus{{ID: "m", Runners: []plan.RunnerStatus{runner}}})
		got := out.String()
		if !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}
