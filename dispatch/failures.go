package dispatch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/humanize"
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
	Failing      bool
	Bad, Judged  int
	Since, Trial time.Time
}

// recentMinutes is the time over which failures of runners are shown.
const recentMinutes = 5

// Text says in a few words what the runner fails.
func (f RunnerFailures) Text() string {
	what := "lines"
	if len(f.Causes) > 0 {
		what = CauseText(f.Causes[0])
	}
	if f.Failing {
		return fmt.Sprintf("failing: %s, %d of the last %d", what, f.Bad, f.Judged)
	}
	return fmt.Sprintf("%s: %d of %d lines of the last %d minutes failed", what, f.Failed,
		f.Answered+f.Failed, recentMinutes)
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
func (rf *runnerFailures) count(now time.Time, f *flight) {
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
	if f.Outcome == plan.Succeeded {
		m.answered++
		return
	}
	m.failed++
	cause := f.failure.cause(f.Start.Runner)
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
	to.Causes = shownFailures(causes)
}

func (rf *runnerFailures) all() []RunnerFailures {
	if all := rf.published.Load(); all != nil {
		return *all
	}
	return nil
}

// shownFailures returns the most frequent causes as a list.
func shownFailures(f store.Failures) []store.Failure {
	top := f.Top()
	return slices.DeleteFunc(top[:], func(x store.Failure) bool { return x.Count == 0 })
}

// cause returns the failure as a cause, counted once.
func (a *failure) cause(runner string) store.Failure {
	c := store.Failure{Count: 1, Status: a.status, Code: a.code, Sample: a.message,
		Runner: runner}
	if a.code == "" {
		c.Code, c.Sample = readError(a.body)
	}
	c.Sample = sample(c.Sample)
	return c
}

// causeOf returns the cause of a row of an error file, counted once.
func causeOf(row []byte) store.Failure {
	var r struct {
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		}
		Error *struct{ Code, Message string }
	}
	if json.Unmarshal(row, &r) != nil {
		return store.Failure{Count: 1}
	}
	a := failure{}
	switch {
	case r.Response != nil:
		a.status, a.body = r.Response.Status, r.Response.Body
		if text := ""; json.Unmarshal(a.body, &text) == nil {
			a.body = []byte(text)
		}
	case r.Error != nil:
		a.code, a.message = r.Error.Code, r.Error.Message
	}
	return a.cause("")
}

// readError returns the code and the message of an error as APIs write it; of any other body, the
// text itself.
func readError(body []byte) (code, message string) {
	var e struct {
		Error   json.RawMessage
		Message string
		Code    any
	}
	if len(body) > shortError*4 || json.Unmarshal(body, &e) != nil {
		return "", string(body[:min(len(body), 2*maxSample)])
	}
	var inner struct {
		Message string
		Code    any
	}
	if json.Unmarshal(e.Error, &inner) == nil {
		e.Message, e.Code = cmp.Or(inner.Message, e.Message), inner.Code
	} else if text := ""; json.Unmarshal(e.Error, &text) == nil {
		e.Message = text
	}
	if text, ok := e.Code.(string); ok {
		code = text
	}
	if e.Message == "" {
		return code, string(body[:min(len(body), 2*maxSample)])
	}
	return code, e.Message
}

// maxSample limits the bytes of a sample.
const maxSample = 160

// sample returns the beginning of a text on one row.
func sample(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 2*maxSample)]), " ")
	if len(text) > maxSample {
		cut := maxSample
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return humanize.Printable(strings.ToValidUTF8(text, "\uFFFD"))
}
