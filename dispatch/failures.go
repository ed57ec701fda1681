package dispatch

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// RunnerFailures is what a runner has failed lately.
type RunnerFailures struct {
	Pool, Runner string
	// Answered are the lines of the last recentMinutes that the runner answered well, Failed those
	// that it did not. Lines that it shed, or that were evicted, are in neither.
	Answered, Failed int
	// Causes are the most frequent ones, of one sample each.
	Causes []store.Failure
	// Failing says that the runner gets single lines only, since Since. Bad of its last Judged
	// answers were bad. The next line may be sent at Trial.
	Failing     bool
	Bad, Judged int
	// Last is its last bad answer, while it is Failing: its causes may be older than those shown.
	Last         plan.RunnerFailure
	Since, Trial time.Time
}

// recentMinutes is the time over which failures of runners are shown.
const recentMinutes = 5

// Text says in a few words what the runner fails. Whoever shows it says whether the runner is
// failing.
func (f RunnerFailures) Text() string {
	what := "lines"
	switch {
	case len(f.Causes) > 0:
		what = CauseText(f.Causes[0])
	case f.Last != plan.RunnerFailure{}:
		what = answerText(f.Last)
	}
	if f.Failing {
		return fmt.Sprintf("%s, %d of the last %d", what, f.Bad, f.Judged)
	}
	return fmt.Sprintf("%s: %d of %d lines of the last %d minutes failed", what, f.Failed,
		f.Answered+f.Failed, recentMinutes)
}

// answerText says a bad answer in a few words: the status, and what it means for the line.
func answerText(f plan.RunnerFailure) string {
	if f.Outcome == plan.Denied && f.Status == http.StatusNotFound {
		return "404 (it does not know the model or the route)"
	}
	if f.Status > 0 {
		return fmt.Sprintf("%d (%s)", f.Status, f.Outcome)
	}
	return f.Outcome.String()
}

// CauseText says a cause in a few words: the status or the code, and the sample.
func CauseText(f store.Failure) string {
	text := f.Code
	if f.Status > 0 {
		text = strings.TrimSpace(fmt.Sprint(f.Status, " ", f.Code))
	}
	if f.Sample != "" {
		text += fmt.Sprintf(" %q", f.Sample)
	}
	return text
}

// runnerFailures counts the failures of runners. The loop owns it; others read what it published.
type runnerFailures struct {
	runners   map[string]*[recentMinutes]minuteFailures
	published atomic.Pointer[[]RunnerFailures]
}

// minuteFailures are those of one minute of Unix time.
type minuteFailures struct {
	minute           int64
	answered, failed int
	causes           store.Failures
}

// count counts the end of a line.
func (rf *runnerFailures) count(now time.Time, f *work.Flight) {
	if f.Unsent || f.Outcome == plan.Evicted || f.Outcome == plan.Shed {
		return
	}
	of := rf.runners[f.Start.Runner]
	if of == nil {
		of = &[recentMinutes]minuteFailures{}
		rf.runners[f.Start.Runner] = of
	}
	minute := now.Unix() / 60
	m := &of[minute%recentMinutes]
	if m.minute != minute {
		*m = minuteFailures{minute: minute}
	}
	if f.Outcome == plan.Succeeded || f.Outcome == plan.CheckFailed {
		m.answered++
		return
	}
	m.failed++
	cause := f.Failure.Cause(f.Start.Runner)
	if f.Outcome == plan.Refused && !f.Foreign {
		cause.Sample = "" // it may repeat what the user wrote, and operators read it
	}
	m.causes.Add(cause)
}

// publish publishes what runners that are there have failed.
func (rf *runnerFailures) publish(now time.Time, pools []plan.PoolStatus) {
	var all []RunnerFailures
	there := map[string]bool{}
	for i := range pools {
		for _, r := range pools[i].Runners {
			there[r.ID] = true
			shown := RunnerFailures{Pool: pools[i].ID, Runner: r.ID, Failing: r.Failing, Bad: r.Bad,
				Judged: r.Judged, Since: r.Since, Trial: r.Trial}
			if r.Failing {
				shown.Last = r.Failed
			}
			rf.sum(now, &shown)
			if shown.Failed > 0 || shown.Failing {
				all = append(all, shown)
			}
		}
	}
	maps.DeleteFunc(rf.runners, func(id string, _ *[recentMinutes]minuteFailures) bool {
		return !there[id]
	})
	rf.published.Store(&all)
}

// sum adds up the last minutes.
func (rf *runnerFailures) sum(now time.Time, to *RunnerFailures) {
	of := rf.runners[to.Runner]
	if of == nil {
		return
	}
	var causes store.Failures
	for _, m := range of {
		if now.Unix()/60-m.minute < recentMinutes {
			to.Answered, to.Failed = to.Answered+m.answered, to.Failed+m.failed
			for _, c := range m.causes {
				causes.Add(c)
			}
		}
	}
	to.Causes = work.ShownFailures(causes)
}

func (rf *runnerFailures) all() []RunnerFailures {
	if all := rf.published.Load(); all != nil {
		return *all
	}
	return nil
}
